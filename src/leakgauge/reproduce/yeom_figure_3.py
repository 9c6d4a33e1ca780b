"""Yeom et al. 2018, Figure 3: genes of warfarin patients, inferred from regression trees.

The protocol is that of section 6.1 (`leakgauge.reproduce.yeom`), with the same divisions and deviations: how much more
often is the gene named for patients in the training set of a tree than for others? Three attacks: inversion, the
membership attack asked about every value, and the membership attack asked about one value drawn at random. The
membership attack is the threshold rule that knows the training error alone; priors are the frequencies in the whole
data set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.attributes import SensitiveAttribute, one_hot
from leakgauge.attributes.guesses import Guesses
from leakgauge.attributes.inversion import by_gaussian_error
from leakgauge.attributes.reductions import several_queries, uniform_guess
from leakgauge.membership import gaussian_error, left_out_error
from leakgauge.records import Records
from leakgauge.reproduce import yeom, yeom_figure_2_iwpc
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import COMPUTED, Experiment, Reproduction, Row, positive
from leakgauge.statistics import Estimate, mean
from leakgauge.training import HERE, DenseSubsets, Execution, Learner, everything, train_many

TOLERANCE = 0.01
"""Trees break ties between splits at random."""

GENES = ("vkorc1", "cyp2c9")

ATTACKS = (
    "inversion",
    "several queries",
    "several queries, lowest prior first",
    "one uniform guess",
)


@dataclass(frozen=True)
class AttackReference:
    """What an independent computation of the same protocol gave for one attack.

    Args:
        advantage: the difference of the next two.
        members: how often it is right about members; ``None`` where that was not noted down.
        others: likewise about others.
    """

    advantage: float
    members: float | None = None
    others: float | None = None


REFERENCES: dict[tuple[float, str], tuple[AttackReference, ...]] = {
    (3.0, "vkorc1"): (
        AttackReference(0.0015, 0.5527, 0.5511),
        AttackReference(0.0035, 0.4512, 0.4477),
        AttackReference(0.0027, 0.4358, 0.4331),
        AttackReference(0.0021),
    ),
    (3.0, "cyp2c9"): (
        AttackReference(-0.0008, 0.7518, 0.7526),
        AttackReference(0.0042, 0.5643, 0.5601),
        AttackReference(0.0001, 0.0297, 0.0295),
        AttackReference(0.0011),
    ),
    (5.0, "vkorc1"): (
        AttackReference(0.0108, 0.5622, 0.5514),
        AttackReference(0.0127, 0.4456, 0.4330),
        AttackReference(0.0128, 0.4440, 0.4313),
        AttackReference(0.0069),
    ),
    (5.0, "cyp2c9"): (
        AttackReference(0.0012, 0.7514, 0.7502),
        AttackReference(0.0150, 0.5768, 0.5618),
        AttackReference(0.0018, 0.1104, 0.1086),
        AttackReference(0.0034),
    ),
    (8.0, "vkorc1"): (
        AttackReference(0.0497, 0.5850, 0.5354),
        AttackReference(0.0508, 0.4707, 0.4199),
        AttackReference(0.0490, 0.4521, 0.4032),
        AttackReference(0.0260),
    ),
    (8.0, "cyp2c9"): (
        AttackReference(0.0161, 0.7564, 0.7403),
        AttackReference(0.0567, 0.5882, 0.5315),
        AttackReference(0.0218, 0.1609, 0.1392),
        AttackReference(0.0130),
    ),
    (10.0, "vkorc1"): (
        AttackReference(0.1017, 0.6204, 0.5187),
        AttackReference(0.1072, 0.5044, 0.3973),
        AttackReference(0.1032, 0.4920, 0.3887),
        AttackReference(0.0513),
    ),
    (10.0, "cyp2c9"): (
        AttackReference(0.0409, 0.7650, 0.7241),
        AttackReference(0.1172, 0.6091, 0.4919),
        AttackReference(0.0504, 0.1978, 0.1475),
        AttackReference(0.0256),
    ),
    (12.0, "vkorc1"): (
        AttackReference(0.1756, 0.6752, 0.4996),
        AttackReference(0.1904, 0.5545, 0.3641),
        AttackReference(0.1844, 0.5417, 0.3573),
        AttackReference(0.0860),
    ),
    (12.0, "cyp2c9"): (
        AttackReference(0.0842, 0.7789, 0.6946),
        AttackReference(0.2074, 0.6403, 0.4329),
        AttackReference(0.0923, 0.2449, 0.1526),
        AttackReference(0.0430),
    ),
    (15.0, "vkorc1"): (
        AttackReference(0.2961, 0.7750, 0.4789),
        AttackReference(0.3536, 0.6443, 0.2908),
        AttackReference(0.3458, 0.6283, 0.2826),
        AttackReference(0.1469),
    ),
    (15.0, "cyp2c9"): (
        AttackReference(0.1809, 0.8094, 0.6284),
        AttackReference(0.3781, 0.6993, 0.3212),
        AttackReference(0.1926, 0.3367, 0.1440),
        AttackReference(0.0735),
    ),
    (20.0, "vkorc1"): (
        AttackReference(0.4466, 0.9024, 0.4559),
        AttackReference(0.6362, 0.8063, 0.1701),
        AttackReference(0.6249, 0.7904, 0.1655),
        AttackReference(0.2376),
    ),
    (20.0, "cyp2c9"): (
        AttackReference(0.3612, 0.8694, 0.5081),
        AttackReference(0.6539, 0.8273, 0.1734),
        AttackReference(0.4044, 0.5102, 0.1058),
        AttackReference(0.1188),
    ),
    (30.0, "vkorc1"): (
        AttackReference(0.5000, 0.9483, 0.4484),
        AttackReference(0.8154, 0.9108, 0.0954),
        AttackReference(0.8066, 0.9010, 0.0944),
        AttackReference(0.2879),
    ),
    (30.0, "cyp2c9"): (
        AttackReference(0.4685, 0.9146, 0.4461),
        AttackReference(0.8149, 0.9098, 0.0949),
        AttackReference(0.5738, 0.6380, 0.0642),
        AttackReference(0.1440),
    ),
}
"""By depth and gene, for each of `ATTACKS`."""

DRAWN = (0, 1, 3)
"""The attacks of the picture."""


@dataclass(frozen=True, eq=False)
class Rates:
    """How often each of `ATTACKS` is right, division by division.

    Args:
        members: share of the members ``[attacks, divisions]``.
        others: share of the others, likewise.
        n_values: of the gene.
    """

    members: Floats
    others: Floats
    n_values: int

    @property
    def advantages(self) -> tuple[Estimate, ...]:
        """Means of the differences over the divisions, one for each attack."""
        return tuple(mean(row, lower=-1.0, upper=1.0) for row in self.members - self.others)

    def lead_of_several(self) -> Estimate:
        """How far several queries are ahead of the better of inversion and one uniform guess."""
        inversion, several, _, uniform = self.members - self.others
        return min((mean(several - other) for other in (inversion, uniform)), key=lambda one: one.value)

    def lead_of_membership(self) -> Estimate:
        """How far the membership attack, of which one uniform guess keeps one part in m, is ahead of inversion."""
        inversion, _, _, uniform = self.members - self.others
        return mean(self.n_values * uniform - inversion)


@dataclass(frozen=True)
class DepthResult:
    """What came out for trees of one depth.

    Args:
        sigma_in: training error that the attacks reckon with.
        rates: by gene.
    """

    sigma_in: float
    rates: dict[str, Rates]


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """All depths, or two of them; the ratio of errors trains a tree without each of 4,819 patients, as in Figure 2."""
    from leakgauge.records.datasets import load

    records = yeom_figure_2_iwpc.one_hot(load("iwpc-warfarin").records)
    depths = yeom_figure_2_iwpc.QUICK if quick else tuple(yeom_figure_2_iwpc.REFERENCES)
    measured, ratios = {}, {}
    for depth in depths:
        measured[depth] = measure(yeom_figure_2_iwpc.tree(depth), records, seed=seed, execution=execution)
        sigma_out = left_out_error(yeom_figure_2_iwpc.tree(depth), records, seed=seed, execution=execution)
        ratios[depth] = round(sigma_out, 4) / measured[depth].sigma_in
    rows = [row for depth in depths for gene in GENES for row in _rows(depth, gene, measured[depth].rates[gene])]
    rows += [row for gene in GENES for row in _claims(gene, {depth: measured[depth].rates[gene] for depth in depths})]
    settings = {"seed": seed, "divisions": yeom.N_SPLITS, "depth": list(depths)}
    remarks = [yeom.NOT_PRINTED.replace("section 6.1", "sections 6.1 and 6.3"), yeom.INTERVALS, SILENCE]
    return EXPERIMENT.result(rows, _picture(measured, ratios), settings=settings, remarks=remarks)


SILENCE = (
    "The reductions from membership predict no value for records that they take for non-members, which counts as "
    "incorrect: a high advantage of theirs need not mean that the gene can be inferred from the tree."
)


def gene_columns(records: Records, gene: str) -> SensitiveAttribute:
    """The group of columns of one gene."""
    columns = [name for name in records.schema.names if name.startswith(f"{gene}=")]
    return one_hot(records.schema, columns, name=gene, values=[name.partition("=")[2] for name in columns])


def measure(
    learner: Learner,
    records: Records,
    *,
    genes: tuple[str, ...] = GENES,
    n_splits: int = yeom.N_SPLITS,
    seed: int,
    execution: Execution = HERE,
) -> DepthResult:
    """Advantages of all attacks on the hidden columns of some genes.

    Args:
        learner: what is trained.
        records: the whole data set, genes in columns of 0 and 1.
        genes: the hidden ones, one at a time.
        n_splits: divisions, as in :func:`leakgauge.reproduce.yeom.measure`.
        seed: likewise.
        execution: where and how models are trained.
    """
    whole = train_many(learner, records, everything(len(records)), seed=seed, execution=execution)
    sigma_in = round(gaussian_error.sigma_in(records.labels - whole.values[0]), 4)
    hidden = {gene: gene_columns(records, gene) for gene in genes}
    queries = np.concatenate([one.completed(records.features) for one in hidden.values()], axis=1)
    members = yeom.divisions(len(records), n_splits, seed)
    table = train_many(
        learner,
        records,
        DenseSubsets(members),
        queries.reshape(-1, records.schema.n_features),
        seed=seed,
        execution=execution,
    )
    errors = records.labels[:, None] - table.values.reshape(n_splits, len(records), -1)
    starts = np.cumsum([0, *(len(one) for one in hidden.values())])
    rates = {
        gene: _rates(errors[:, :, start : start + len(one)], members, records, one, sigma_in, seed)
        for (gene, one), start in zip(hidden.items(), starts, strict=False)
    }
    return DepthResult(sigma_in, rates)


def _rates(
    errors: Floats, members: NDArray[np.bool_], records: Records, hidden: SensitiveAttribute, sigma_in: float, seed: int
) -> Rates:
    """From the errors of every tree with every value in place ``[splits, n, m]``."""
    truth = hidden.codes(records.features)
    prior = np.bincount(truth, minlength=len(hidden)) / len(truth)
    scale = float(records.labels.std())
    right = np.stack(
        [
            [guess.right(truth) for guess in _guesses(one, sigma_in, prior, scale, np.random.default_rng(seed))]
            for one in errors
        ],
        axis=1,
    )
    inside, outside = ((right * group).sum(axis=2) / group.sum(axis=1) for group in (members, ~members))
    return Rates(inside, outside, len(hidden))


def _guesses(
    errors: Floats, sigma_in: float, prior: Floats, scale: float, rng: np.random.Generator
) -> tuple[Guesses, ...]:
    membership = gaussian_error.known_sigma_in(errors.ravel(), sigma_in, scale=scale).reshape(errors.shape)
    return (
        by_gaussian_error(errors, sigma_in, prior, scale=scale),
        several_queries(membership, prior),
        several_queries(membership, prior, order="lowest_prior"),
        uniform_guess(membership, prior, rng=rng),
    )


def _rows(depth: float, gene: str, rates: Rates) -> list[Row]:
    both = zip(rates.members.mean(axis=1), rates.others.mean(axis=1), strict=True)
    return [
        _row(f"depth {depth:g}, {gene}: {attack}", reference, ours, *right)
        for attack, reference, ours, right in zip(ATTACKS, REFERENCES[depth, gene], rates.advantages, both, strict=True)
    ]


def _row(what: str, reference: AttackReference, ours: Estimate, members: float, others: float) -> Row:
    """The advantage, and whether it and both rates are those of the reference."""
    note = f"correct: {members:.4f} of members, {others:.4f} of non-members"
    pairs = [(reference.advantage, ours.value)]
    if reference.members is not None and reference.others is not None:
        note += f" (reference {reference.members:.4f}, {reference.others:.4f})"
        pairs += [(reference.members, members), (reference.others, others)]
    fits = all(abs(expected - found) <= TOLERANCE for expected, found in pairs)
    why_not = "" if fits else f"; more than {TOLERANCE:g} from the reference, which used the divisions of seed 0"
    return Row(what, None, ours, fits, note + why_not, reference.advantage, COMPUTED)


def _claims(gene: str, by_depth: dict[float, Rates]) -> list[Row]:
    """What section 6.3 says in words, at the depth that is closest to denying it."""
    leads = {
        "several queries minus best of inversion and guess": {d: one.lead_of_several() for d, one in by_depth.items()},
        "membership minus inversion": {d: one.lead_of_membership() for d, one in by_depth.items()},
    }
    return [_claim(f"{gene}: smallest difference of {what}", lead) for what, lead in leads.items()]


def _claim(what: str, leads: dict[float, Estimate]) -> Row:
    depth = min(leads, key=lambda depth: leads[depth].value)
    return positive(what, leads[depth], note=f"at depth {depth:g}", why_not="not at this depth")


def _picture(measured: dict[float, DepthResult], ratios: dict[float, float]) -> str:
    order = sorted(measured, key=lambda depth: ratios[depth])
    return plot(
        EXPERIMENT.title,
        "sigma_out / sigma_in",
        "attribute advantage",
        [
            Series(
                f"{gene}, {ATTACKS[attack]}",
                [ratios[depth] for depth in order],
                [measured[depth].rates[gene].advantages[attack].value for depth in order],
                "line",
            )
            for attack in DRAWN
            for gene in GENES
        ],
    )


EXPERIMENT = Experiment(
    name="yeom-figure-3",
    title="Genotypes inferred from regression trees on IWPC",
    source="Yeom et al. 2018, Figure 3",
    published="querying every value has a larger advantage than inversion and one guess; the points are not printed",
    data=("iwpc-warfarin",),
    run=run,
)
