"""Untargeted membership attack: one classifier learns from shadow models what answers to members look like.

The attacker holds the candidate pool and the learning algorithm. It trains shadow models on random halves of
the pool, and for every shadow model and every record it knows whether the record was in. A small neural
network learns to tell the two from the record's label and the shadow model's answer (and, if given, the
record's features); the same network then judges the target model's answers on all records. Source: Long,
Bindschaedler, Gunter, "Towards Measuring Membership Privacy", 2017, section 5.3, untargeted attack, after
Shokri, Stronati, Song, Shmatikov, "Membership Inference Attacks Against Machine Learning Models", S&P 2017.

As printed: one hidden layer of 32 ReLU units, negative log-likelihood, learning rate 0.01, 30 epochs, 20
shadow models on a pool of 2,000, so 40,000 rows. Not printed and chosen here: Adam, 40 batches an epoch of at least
200 rows each, inputs standardised to mean 0 and variance 1 over the training rows, no weight decay. The two log-softmax
outputs of the paper are one logit here, their difference, which is the same model.

Scores point towards membership: ``score = log p_in - log p_out``, and the paper's rule ``p_in > p_out`` is
exactly ``score > 0``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import optional, whole
from leakgauge.errors import DataError, ModelError
from leakgauge.membership._checks import checked_labels, checked_members, checked_probabilities, thinned_groups
from leakgauge.membership.attack import PROBABILITIES, MembershipAttack
from leakgauge.training.engines.networks import batched, native
from leakgauge.training.engines.networks.draws import drawn
from leakgauge.training.engines.networks.group import Network

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

# Long et al. 2017, section 5.3: the attack model.
HIDDEN_UNITS = 32
LEARNING_RATE = 0.01
EPOCHS = 30
# 20 shadow models on a pool of 2,000 records.
PAPER_ROWS = 40_000
# Not printed. On 40,000 rows the final loss is the same as with batches of 200 to a few thousandths, in less than half
# the time.
MIN_BATCH_ROWS, N_BATCHES = 200, 40


def features(
    probabilities: ArrayLike, labels: ArrayLike, n_classes: int, *, record_features: ArrayLike | None = None
) -> NDArray[np.float64]:
    """What the attack model sees of a record: the model's answer, the label one-hot, and the record if given.

    Args:
        probabilities: [records, classes] or [models, records, classes], answers in [0, 1].
        labels: [records], whole numbers in 0..n_classes-1.
        n_classes: number of classes k, the last size of ``probabilities``.
        record_features: [records, d], finite numbers, the x of the paper; none by default.

    Returns:
        float64, the shape of ``probabilities`` with k + k + d in place of k.

    Raises:
        ModelError: probabilities have another shape, or are outside [0, 1] or NaN.
        DataError: labels or record features do not fit the records.

    Source:
        Long et al. 2017, section 5.3.

    >>> features([[0.9, 0.1]], [1], 2).tolist()
    [[0.9, 0.1, 0.0, 1.0]]
    """
    shape = "models, records, classes" if np.ndim(probabilities) == 3 else "records, classes"
    answers = checked_probabilities(probabilities, "probabilities", shape)
    if answers.shape[-1] != n_classes:
        raise ModelError(
            f"probabilities must have one column for each of n_classes = {n_classes}, got shape {answers.shape}."
        )
    n_records = answers.shape[-2]
    known = np.eye(n_classes)[checked_labels(labels, n_records, n_classes)]
    if record_features is not None:
        known = np.hstack([known, _checked_record_features(record_features, n_records)])
    repeated = np.broadcast_to(known, (*answers.shape[:-1], known.shape[1]))
    return np.concatenate([answers.astype(np.float64), repeated], axis=-1)


@dataclass(frozen=True, eq=False)
class ShadowClassifier:
    """A fitted attack model: numbers only, so that it can be kept and applied without what trained it.

    Attributes:
        n_classes: number of classes k of the models under attack.
        n_record_features: number d of record features it was fitted with, 0 for none.
        centre: [2k + d], subtracted from the inputs.
        spread: [2k + d], divides the inputs then; positive.
        hidden_weights: [2k + d, 32].
        hidden_bias: [32].
        output_weights: [32].
        output_bias: constant of the logit.
        n_rows: rows of shadow answers it was trained on.
        seed: the seed given to `fit`.
        training_loss: negative log-likelihood per row after the last epoch, in nats; ln 2 = 0.693 means that
            nothing was learned.
    """

    n_classes: int
    n_record_features: int
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    hidden_weights: NDArray[np.float64]
    hidden_bias: NDArray[np.float64]
    output_weights: NDArray[np.float64]
    output_bias: float
    n_rows: int
    seed: int
    training_loss: float

    def scores(
        self, target: ArrayLike, labels: ArrayLike, *, record_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Membership scores ``log p_in - log p_out``; higher means member, member means ``score > 0``.

        Args:
            target: [records, classes], the target model's answers, in [0, 1].
            labels: [records], whole numbers naming the columns of the records' labels.
            record_features: [records, d], needed if and only if the attack model was fitted with them.

        Returns:
            [records], float64, finite.

        Raises:
            ModelError: the answers have another shape or number of classes, or are outside [0, 1] or NaN.
            DataError: labels or record features do not fit the records, or the features are not those of the
                fit.

        Source:
            Long et al. 2017, section 5.3.
        """
        answers = checked_probabilities(target, "target", "records, classes")
        given = features(answers, labels, self.n_classes, record_features=record_features)
        n_given = given.shape[1] - 2 * self.n_classes
        if n_given != self.n_record_features:
            raise DataError(
                f"record_features must have the {self.n_record_features} columns the attack model was fitted "
                f"with, got {n_given}."
            )
        return self.logits(given)

    def logits(self, rows: Floats) -> Floats:
        """Scores of rows of :func:`features` ``[m, 2k + d]``, ``[m]``."""
        hidden = np.maximum((rows - self.centre) / self.spread @ self.hidden_weights + self.hidden_bias, 0.0)
        return hidden @ self.output_weights + self.output_bias


def fit(
    shadow_probabilities: ArrayLike,
    members: ArrayLike,
    labels: ArrayLike,
    *,
    seed: int,
    record_features: ArrayLike | None = None,
    max_rows: int | None = PAPER_ROWS,
    equal_groups: bool = True,
) -> ShadowClassifier:
    """Train the attack model on shadow answers; the target model plays no part: leave its row out.

    Every pair of a shadow model and a record is one row, labelled by whether the record was in. Each record
    gives as many rows of either kind. Without that the network could recognise a record, by its label or
    features, and answer with its share of members; in a table of complementary halves without the target's
    row, that share tells whether the target was trained on it, and a leak would be found where there is none.

    Args:
        shadow_probabilities: [models, records, classes], the shadow models' answers, in [0, 1].
        members: [models, records], bool: whether shadow model j was trained on record r.
        labels: [records], whole numbers naming the columns of the records' labels.
        seed: at least 0; decides which rows are drawn, the initial weights and the order of the batches. The
            same seed gives the same attack model.
        record_features: [records, d], finite numbers: encode categories and scale beforehand; none by
            default.
        max_rows: at most so many rows, drawn without replacement; None for all. The default is the paper's
            number.
        equal_groups: use equally many rows of either kind for each record, leaving the last models' surplus
            aside. False uses all rows, also of records that are in all or in none of the training sets (a
            single shadow model, say); do that only where the shadow models were drawn without regard to the
            target's training set.

    Returns:
        The attack model.

    Raises:
        ModelError: shadow answers have another shape, or are outside [0, 1] or NaN.
        DataError: members, labels or record features do not fit, or no rows of both kinds are left.
        ConfigError: the seed is negative or max_rows is below 2.

    Source:
        Long et al. 2017, section 5.3; Shokri et al. 2017.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random((20, 50)) < 0.5
    >>> first = np.where(members, 0.8, 0.6)
    >>> attack = fit(np.stack([first, 1 - first], axis=2), members, np.zeros(50, dtype=int), seed=1)
    >>> (attack.scores([[0.8, 0.2], [0.6, 0.4]], [0, 0]) > 0).tolist()
    [True, False]
    """
    whole(0)("seed", seed)
    optional(whole(2, hint="None takes all rows"))("max_rows", max_rows)
    table = checked_probabilities(shadow_probabilities, "shadow_probabilities", "models, records, classes")
    n_models, n_records, n_classes = table.shape
    inside = checked_members(members, n_models, n_records)
    rng = np.random.default_rng(seed)
    usable = np.logical_or(*thinned_groups(inside)) if equal_groups else np.ones_like(inside)
    return _fitted(lambda *drawn: table[drawn], inside, usable, labels, n_classes, seed, rng, record_features, max_rows)


def _fitted(
    answers: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.floating]],
    inside: NDArray[np.bool_],
    usable: NDArray[np.bool_],
    labels: ArrayLike,
    n_classes: int,
    seed: int,
    rng: np.random.Generator,
    record_features: ArrayLike | None = None,
    max_rows: int | None = PAPER_ROWS,
) -> ShadowClassifier:
    """The attack model of answers ``[rows, classes]`` of some models, each about a record; few of the table's."""
    model_of_row, record_of_row = _drawn_rows(usable, max_rows, rng)
    is_member = inside[model_of_row, record_of_row]
    if is_member.all() or not is_member.any():
        raise DataError(
            f"members: the {is_member.size} usable rows are not of both kinds, but the attack model needs "
            "members and non-members: train at least two shadow models, on random halves, or raise max_rows."
        )
    n_records = inside.shape[1]
    codes = checked_labels(labels, n_records, n_classes)
    known = None if record_features is None else _checked_record_features(record_features, n_records)
    rows = features(
        answers(model_of_row, record_of_row),
        codes[record_of_row],
        n_classes,
        record_features=None if known is None else known[record_of_row],
    )
    n_record_features = 0 if known is None else known.shape[1]
    return _trained(rows, is_member, n_classes, n_record_features, seed, rng)


def _drawn_rows(
    usable: NDArray[np.bool_], max_rows: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Model and record of each training row: all usable pairs, or ``max_rows`` of them drawn evenly."""
    n_usable = np.count_nonzero(usable, axis=1)
    n_rows = int(n_usable.sum())
    if max_rows is None or n_rows <= max_rows:
        model_of_row, record_of_row = np.nonzero(usable)
        return model_of_row, record_of_row
    drawn = np.sort(rng.choice(n_rows, size=max_rows, replace=False))
    ends = np.cumsum(n_usable)
    # Places of all pairs at once would take more memory than the answers.
    parts = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    starts = (ends - n_usable).tolist()
    records = [np.flatnonzero(own)[part - start] for own, part, start in zip(usable, parts, starts, strict=True)]
    return np.searchsorted(ends, drawn, side="right"), np.concatenate(records)


def _trained(
    rows: NDArray[np.float64],
    is_member: NDArray[np.bool_],
    n_classes: int,
    n_record_features: int,
    seed: int,
    rng: np.random.Generator,
) -> ShadowClassifier:
    """The attack model after exactly `EPOCHS` passes over the rows."""
    centre = rows.mean(axis=0)
    deviation = rows.std(axis=0)
    # The deviation of a constant column is 0 up to rounding; dividing by that would blow up other values.
    spread = np.where(deviation > 1e-12 * (1.0 + np.abs(centre)), deviation, 1.0)
    network = Network(
        widths=(rows.shape[1], HIDDEN_UNITS, 1),
        activation="relu",
        solver="adam",
        alpha=0.0,
        batch_size=min(max(MIN_BATCH_ROWS, len(rows) // N_BATCHES), len(rows)),
        learning_rate=LEARNING_RATE,
        n_epochs=EPOCHS,
        patience=np.inf,
    )
    inputs, places = ((rows - centre) / spread).astype(np.float32), np.arange(len(rows), dtype=np.int32)
    group = drawn(network, inputs, is_member.astype(np.int32), [int(rng.integers(2**31))], places[None])
    trained = native.train(group) if native.available() else batched.train(group)
    (hidden_weights, output_weights), (hidden_bias, output_bias) = (
        [layer[0].astype(np.float64) for layer in layers] for layers in (trained.weights, trained.biases)
    )
    fitted = ShadowClassifier(
        n_classes=n_classes,
        n_record_features=n_record_features,
        centre=centre,
        spread=spread,
        hidden_weights=hidden_weights,
        hidden_bias=hidden_bias,
        output_weights=output_weights[:, 0],
        output_bias=float(output_bias[0]),
        n_rows=len(rows),
        seed=seed,
        training_loss=np.nan,
    )
    wrong_by = np.where(is_member, -1.0, 1.0) * fitted.logits(rows)
    return replace(fitted, training_loss=float(np.logaddexp(0.0, wrong_by).mean()))


def _checked_record_features(values: ArrayLike, n_records: int) -> NDArray[np.float64]:
    """The record features as float64 [records, d], finite."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"record_features must be numbers, encode categories first: {problem}.") from problem
    if table.ndim != 2 or table.shape[0] != n_records or table.shape[1] == 0:
        raise DataError(
            f"record_features must have shape [records, features] with {n_records} records and at least one "
            f"feature, got {table.shape}."
        )
    if not np.isfinite(table).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(table))[0])
        raise DataError(
            f"record_features[{row}, {column}] is {table[row, column]}; every value must be finite: impute or drop it."
        )
    return table


def _train(evidence: MembershipEvidence) -> Callable[[MembershipEvidence], Floats]:
    table, members = evidence.shadow_table, evidence.shadow_table.members
    usable, n_classes = np.logical_or(*thinned_groups(members)), table.answers.shape[2]

    def answers(models: NDArray[np.intp], records: NDArray[np.intp]) -> Floats:
        return evidence.in_bins(table.log_probabilities[models, records])

    rng = np.random.default_rng(evidence.seed)
    fitted = _fitted(answers, members, usable, evidence.codes, n_classes, evidence.seed, rng)
    table.let_go()
    return lambda of_target: fitted.scores(of_target.binned, of_target.codes)


def _score(evidence: MembershipEvidence) -> Floats:
    return _train(evidence)(evidence)


ATTACK = MembershipAttack(
    "shadow-classifier",
    "Shadow classifier",
    "one classifier trained on shadow models’ predictions",
    "Shokri et al. 2017; Long et al. 2017, untargeted attack",
    PROBABILITIES,
    True,
    _score,
    train=_train,
)
