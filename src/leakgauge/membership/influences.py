"""Influence: which records' influence on all outputs adds up to how this model differs from others of its learner?

Most attacks look at what a model outputs about one record. Where columns hang together, or a model has many parameters,
a record shows more in the outputs about all others than in its own. Let B be how far the outputs about all candidates
move when each of them is left out of a model of all candidates, and a how far the target's outputs are from the mean of
shadow models. To first order a is what the target's training records add, up to a factor, with noise from all that is
not linear: a regression of membership on outputs, in which B is known from the learner, and no coefficient has to be
found. The scores are

    B (BᵀB + ρ I)⁻¹ a,

the ridge regression; above 0 for members if half of the candidates are. Outputs are log-odds, or values, in units of
the noise that is left in shadow models; ρ is the one of a few that finds most in these, whose training records the
attacker knows.

The models without each candidate are exact, and had where an engine solves for them so that none is trained. Members
and others are treated alike, so that where membership has nothing to do with the outputs the expected advantage is 0.

Source: derived; influence as in Cook and Weisberg 1982, of the learner's own models. Ye et al. 2023 (arXiv 2309.17310)
look at models with and without one record, in all outputs about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.membership.evidence import MembershipEvidence, ModelsWithout
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units
from leakgauge.streams import AuditStream
from leakgauge.training import Execution, Job, Learner, PredictionTable, Randomness, leave_units_out, plan

MAX_OUTPUTS = 2000
"""Of more units than this so many outputs are looked at, at most."""

MAX_NUMBERS = 20_000_000
"""Outputs of all models without a unit, at most: seconds, and some hundred megabytes."""

MAX_UNITS = MAX_NUMBERS // MAX_OUTPUTS
"""Candidates, or persons, at most."""

RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
"""Of which one is taken, in units of the mean squared influence of a record."""

NOISE = 1e-3
"""Share of the variance of an output that counts as noise at least."""

SMALLEST_LOG = -20.0
"""Logarithms of probabilities below are cut off where some are those of 0: of 1 - 1e-10 few digits are left."""

LARGEST_DEVIATION = 1e6
"""Standard deviations of an output beyond which it counts no further."""

SMALLEST_SPREAD = 1e-9
"""Standard deviation of an output, in units of the largest, below which it says nothing."""


@dataclass(frozen=True, eq=False)
class PlannedWithout:
    """Models of all candidates but one unit each, none of which is trained.

    Args:
        job: the models.
        asked: about which of the candidates, int ``[J]``.
        units: that are left out.
    """

    job: Job
    asked: Indices
    units: Units

    __repr__ = shapes

    @classmethod
    def of(cls, learner: Learner, records: Records, units: Units, seed: int) -> PlannedWithout | None:
        """Those of a learner, or ``None`` where no engine solves for them, or there are too many units."""
        if not 2 <= len(units) <= MAX_UNITS:
            return None
        n_classes = len(records.schema.classes)
        most = (MAX_OUTPUTS if len(units) > MAX_OUTPUTS else MAX_NUMBERS // len(units)) // (
            n_classes if n_classes > 2 else 1
        )
        asked = np.arange(len(records))
        if most < len(records):
            asked = np.sort(AuditStream.INFLUENCE_OUTPUTS.generator(seed).choice(len(records), most, replace=False))
        job = Job(learner, records, leave_units_out(units), records.features[asked], seed, Randomness.COMMON)
        try:
            return None if plan(job).engine.trains else cls(job, asked, units)
        except (DataError, ModelError):
            return None

    def train(self, execution: Execution) -> ModelsWithout:
        """Their outputs.

        Raises:
            ModelError: they cannot be had.
        """
        found = plan(self.job).train(execution)
        return ModelsWithout(found.answers, self.asked, self.units.of_row)


def signals(kind: AnswerKind, answers: Floats, lowest: float) -> Floats:
    """Log-odds, or values, of each output ``[models, J * c]``: what records add to a model nearly adds up in these.

    Args:
        kind: of the answers.
        answers: log-probabilities, or values ``[models, J, k]``.
        lowest: logarithms below are cut off.
    """
    if kind is AnswerKind.VALUES:
        found = answers
    else:
        logs = np.maximum(answers, lowest)
        # Of two classes the second against the first; of more each against their geometric mean.
        found = logs[..., 1:] - logs[..., :1] if logs.shape[-1] == 2 else logs - logs.mean(axis=-1, keepdims=True)
    return np.asarray(found, dtype=np.float64).reshape(len(answers), -1)


@dataclass(frozen=True, eq=False)
class _Regression:
    """Of membership on outputs.

    Args:
        kind: of the outputs.
        lowest: logarithm that counts.
        middle: mean of each output over shadow models ``[J * c]``.
        sizes: of its noise ``[J * c]``; infinite where it says nothing.
        influence: of each unit, in these ``[u, J * c]``.
        factor: the Cholesky factor of what is inverted.
        gap: by how much the scores of members are higher.
    """

    kind: AnswerKind
    lowest: float
    middle: Floats
    sizes: Floats
    influence: Floats
    factor: tuple[Floats, bool]
    gap: float = 0.0

    __repr__ = shapes

    @classmethod
    def of(cls, table: PredictionTable, without: ModelsWithout, lowest: float) -> _Regression:
        """Of shadow models, whose training records are known, with the ridge that finds most in them."""
        answers = table.answers[:, without.asked]
        told = signals(table.kind, answers, lowest)
        with np.errstate(invalid="ignore"):  # of infinite ones
            middle, spread = told.mean(axis=0), told.std(axis=0)
        spread = np.where(np.isfinite(spread), spread, 0.0)
        says = spread > SMALLEST_SPREAD * spread.max(initial=0.0)
        influence = -signals(table.kind, without.answers, lowest)
        influence = np.where(says, np.nan_to_num(influence - np.nanmean(influence, axis=0)), 0.0)
        inside = without.members(table.members)
        centred = inside - inside.mean(axis=1, keepdims=True)
        deviations = np.where(says, told - middle, 0.0)
        sizes = _noise(deviations, centred @ influence, np.where(says, spread, np.inf))
        influence /= sizes
        narrow = influence.shape[1] < len(influence)
        products = influence.T @ influence if narrow else influence @ influence.T
        unit = float(np.trace(products)) / len(influence) or 1.0
        best, most = None, -np.inf
        for ridge in RIDGES:
            try:
                factor = cho_factor(products + ridge * unit * np.eye(len(products)))
            except LinAlgError:  # singular up to rounding
                continue
            found = cls(table.kind, lowest, middle, sizes, influence, factor)
            scores = found.scores(deviations / sizes)
            apart = float(np.mean([_correlation(*pair) for pair in zip(scores, centred, strict=True)]))
            if apart > most:
                gap = np.mean([own[one].mean() - own[~one].mean() for own, one in zip(scores, inside, strict=True)])
                best, most = replace(found, gap=max(0.0, float(gap))), apart
        if best is None:
            raise ModelError("the influence of records on outputs is not finite; leave out the attack 'influence'")
        return best

    def scores(self, deviations: Floats) -> Floats:
        """Of the deviations of some models in units of noise ``[m, J * c]``, the score of each unit ``[m, u]``."""
        if len(self.factor[0]) == len(self.influence):
            return np.asarray(cho_solve(self.factor, self.influence @ deviations.T).T)
        return np.asarray(cho_solve(self.factor, deviations.T).T @ self.influence.T)

    def judged(self, answers: Floats, share_in: float) -> Floats:
        """Scores of the units ``[u]`` by what a model outputs ``[J, k]``, of a share of which it was trained on."""
        with np.errstate(invalid="ignore"):
            deviations = np.nan_to_num((signals(self.kind, answers[None], self.lowest) - self.middle) / self.sizes)
        deviations = np.clip(deviations, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        return np.asarray(self.scores(deviations)[0] - self.gap * (1 - 2 * share_in) / 2)


def _noise(deviations: Floats, added: Floats, spread: Floats) -> Floats:
    """How much of each output is not what records add ``[J * c]``, as a standard deviation.

    Args:
        deviations: of the outputs of models ``[m, J * c]``.
        added: by their records, up to a factor that all have in common.
        spread: standard deviation of each output, infinite where it says nothing.
    """
    own, by = deviations / spread, added / spread
    whole = float((by**2).sum())
    factor = max(0.0, float((own * by).sum()) / whole) if whole else 0.0
    return np.asarray(np.sqrt(np.mean((deviations - factor * added) ** 2, axis=0) + NOISE * spread**2))


def _correlation(scores: Floats, centred: Floats) -> float:
    scores = scores - scores.mean()
    size = float(np.linalg.norm(scores) * np.linalg.norm(centred))
    return float(scores @ centred) / size if size else 0.0


def _trained(evidence: MembershipEvidence) -> Callable[[MembershipEvidence], Floats]:
    """The attack with what is learned from shadow models."""
    table, without = evidence.shadow_table, evidence.models_without
    if without is None:
        raise ModelError("this attack needs outputs of models without each record, which are not in the evidence")
    exact = np.isfinite(table.answers[:, without.asked]).all() and not np.isneginf(without.answers).any()
    known = dict[float, _Regression]()

    def judged(target: MembershipEvidence) -> Floats:
        answers = target.answers[without.asked]
        lowest = -np.inf if exact and np.isfinite(answers).all() else SMALLEST_LOG
        if lowest not in known:
            known[lowest] = _Regression.of(table, without, lowest)
        share_in = 0.5 if target.members is None else float(without.members(target.members[None]).mean())
        return known[lowest].judged(answers, share_in)[without.of_row]

    return judged


def _score(evidence: MembershipEvidence) -> Floats:
    return _trained(evidence)(evidence)


ATTACK = MembershipAttack(
    "influence",
    "Influence (all outputs)",
    "leave-one-out influence on all outputs that adds up to how the model differs from shadow models",
    "derived, Cook and Weisberg 1982",
    NUMBERS,
    True,
    _score,
    needs_models_without=True,
    train=_trained,
)
