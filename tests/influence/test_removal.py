"""PDTP of cells and the removal of the most exposed: nothing to find, by hand, and against models really trained."""

import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB

from leakgauge.influence.removal import MOST_ATTRIBUTES, CellInfluence, Cells, largest_left
from leakgauge.theory import log_ratio


def categorical_pdtp(codes, labels, n_categories, *, alpha=1.0, fit_prior=True):
    cells = Cells.of(codes, labels, n_categories)
    return CellInfluence(cells, alpha, fit_prior).values()[cells.of_record]


def trained_pdtp(codes, labels, widths, alpha, fit_prior):
    """Every record left out and a model trained anew; NaN where there is none, or it gives no number."""
    everyone = np.arange(len(codes))
    values = np.full(len(codes), np.nan)
    for t in everyone:
        with np.errstate(all="ignore"):
            full = trained(codes, labels, widths, alpha, fit_prior, everyone >= 0, t)
            without = trained(codes, labels, widths, alpha, fit_prior, everyone != t, t)
        if not np.isnan(full + without).any():
            values[t] = log_ratio(full, without).max()
    return values


def trained(codes, labels, widths, alpha, fit_prior, members, t):
    model = CategoricalNB(alpha=alpha, fit_prior=fit_prior, min_categories=widths, force_alpha=True)
    logs = np.full(labels.max() + 1, -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(codes[members], labels[members])
    logs[model.classes_] = model.predict_log_proba(codes[t : t + 1])[0]
    return logs


def some_people(seed):
    """A small table with lonely categories, empty classes, one class, one category, copies."""
    rng = np.random.default_rng([3, seed])
    n, widths = int(rng.integers(3, 30)), rng.integers(1, 6, rng.integers(1, 5))
    codes, labels = rng.integers(0, widths, (n, len(widths))), rng.integers(0, rng.integers(1, 5), n)
    return codes, labels, widths, float(rng.choice([0.0, 1e-3, 1.0, 10.0])), bool(rng.integers(2))


def assert_equal(found, expected):
    """To 1e-10, infinities and NaN in the same places."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[np.isinf(expected)], expected[np.isinf(expected)])
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=1e-10)


# ---------------------------------------------------------------- nothing to find


def test_one_label_has_nothing_to_tell():
    codes = np.arange(6)[:, None] % 3
    np.testing.assert_array_equal(categorical_pdtp(codes, np.zeros(6, dtype=int), np.array([3])), 0.0)
    assert largest_left(Cells.of(codes, np.zeros(6, dtype=int), np.array([3])), 3, resort=True).tolist() == [0.0] * 4


def test_overwhelming_smoothing_and_no_prior_hide_everyone():
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 4, (50, 3)), rng.integers(0, 2, 50)
    values = categorical_pdtp(codes, labels, np.full(3, 4), alpha=1e12, fit_prior=False)
    assert values.max() < 1e-9


def test_a_million_copies_hide_each_other():
    codes, labels = np.zeros((1_000_000, 2), dtype=np.int8), np.arange(1_000_000, dtype=np.int8) % 2
    assert categorical_pdtp(codes, labels, np.array([2, 2])).max() < 2e-6


# ---------------------------------------------------------------- by hand


def test_the_prior_alone_by_hand():
    # One attribute of one category: what is left is the share of the class, 3 of 5, without the record 2 of 4.
    values = categorical_pdtp(np.zeros((5, 1), dtype=int), np.array([0, 0, 0, 1, 1]), np.array([1]))
    np.testing.assert_allclose(values[0], np.log((2 / 4) / (2 / 5)), rtol=1e-12)
    np.testing.assert_allclose(values[4], np.log((2 / 5) / (1 / 4)), rtol=1e-12)


def test_the_last_of_a_class_is_exposed_without_limit():
    values = categorical_pdtp(np.zeros((3, 1), dtype=int), np.array([0, 0, 1]), np.array([2]))
    assert np.isinf(values).tolist() == [False, False, True]
    cells = Cells.of(np.zeros((3, 1), dtype=int), np.array([0, 0, 1]), np.array([2]))
    assert largest_left(cells, 1, resort=True).tolist() == [np.inf, 0.0]


# ---------------------------------------------------------------- the slow twin


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 13 else pytest.mark.slow) for seed in range(40)]
)
def test_equals_training_without_each(seed):
    """Random tables, exact: no false alarms."""
    codes, labels, widths, alpha, fit_prior = some_people(seed)
    found = categorical_pdtp(codes, labels, widths, alpha=alpha, fit_prior=fit_prior)
    assert_equal(found, trained_pdtp(codes, labels, widths, alpha, fit_prior))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=() if seed < 8 else pytest.mark.slow) for seed in range(20)])
def test_removals_equal_training_anew_after_each(seed):
    """Random tables, exact: no false alarms. Whoever has the largest value goes."""
    codes, labels, widths, alpha, fit_prior = some_people(seed)
    cells, left = Cells.of(codes, labels, widths), np.arange(len(codes))
    exposure = CellInfluence(cells, alpha, fit_prior)
    for _ in range(min(4, len(codes) - 1)):
        values = exposure.values()
        assert_equal(values[cells.of_record[left]], trained_pdtp(codes[left], labels[left], widths, alpha, fit_prior))
        if np.isnan(values).all():
            break
        record = left[np.argmax(cells.of_record[left] == np.nanargmax(values))]
        exposure.remove(cells.of_record[record])
        left = left[left != record]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 13 else pytest.mark.slow) for seed in range(40)]
)
def test_dtp_equals_training_without_each_and_asking_everything(seed):
    """Random tables of two labels, exact: no false alarms."""
    codes, labels, widths, alpha, fit_prior = some_people(seed)
    labels = labels % 2
    labels[0] = 1
    cells = Cells.of(codes, labels, widths)
    found = CellInfluence(cells, alpha or 0.5, fit_prior).dtp()[cells.of_record]
    assert_equal(found, trained_dtp(codes, labels, widths, alpha or 0.5, fit_prior))


def trained_dtp(codes, labels, widths, alpha, fit_prior):
    """Every record left out, a model trained anew, and both asked every combination; NaN where there is no model."""
    queries = np.stack(np.meshgrid(*map(np.arange, widths), indexing="ij"), axis=-1).reshape(-1, len(widths))
    everyone = np.arange(len(codes))

    def answers(members):
        model = CategoricalNB(alpha=alpha, fit_prior=fit_prior, min_categories=widths).fit(
            codes[members], labels[members]
        )
        logs = np.full((len(queries), 2), -np.inf)
        logs[:, model.classes_] = model.predict_log_proba(queries)
        return logs

    full = answers(everyone)
    return np.array([log_ratio(full, answers(np.delete(everyone, t))).max() for t in everyone])


def test_dtp_where_no_query_can_differ():
    """One category and one label: the other label is impossible with the record and without."""
    cells = Cells.of(np.zeros((4, 2), dtype=int), np.array([1, 1, 1, 0]), np.array([1, 1]))
    exposure = CellInfluence(cells, 1.0, True)
    np.testing.assert_allclose(exposure.dtp(), exposure.values(), atol=1e-12)
    exposure.remove(0)  # the only one of label 0
    np.testing.assert_array_equal(exposure.dtp(), [np.nan, 0.0])
    exposure.remove(1)
    exposure.remove(1)  # one record is left, and without it there is no model
    assert np.isnan(exposure.dtp()).all()


def test_dtp_is_refused_where_patterns_do_not_settle_it():
    codes, labels = np.zeros((3, 2), dtype=int), np.array([0, 1, 2])
    many = np.zeros((3, MOST_ATTRIBUTES + 1), dtype=int)
    for table, own, alpha, said in (
        (codes, labels, 1.0, "got 3, 1.0 and 2"),
        (codes, labels % 2, 0.0, "got 2, 0.0 and 2"),
        (many, labels % 2, 1.0, f"got 2, 1.0 and {MOST_ATTRIBUTES + 1}"),
    ):
        exposure = CellInfluence(Cells.of(table, own, np.ones(table.shape[1], dtype=int)), alpha, True)
        with pytest.raises(ValueError, match=said):
            exposure.dtp()


# ---------------------------------------------------------------- counting


@pytest.mark.parametrize("width", [3, 10**6, 10**9])
def test_cells_are_the_same_counted_or_sorted(width):
    """However many combinations there could be."""
    rng = np.random.default_rng(2)
    codes, labels = rng.integers(0, 3, (200, 2)).astype(np.int32), rng.integers(0, 2, 200).astype(np.uint8)
    cells = Cells.of(codes, labels, np.array([3, width]))
    np.testing.assert_array_equal(cells.codes[:, cells.of_record].T, codes)
    np.testing.assert_array_equal(cells.labels[cells.of_record], labels)
    np.testing.assert_array_equal(cells.counts, np.bincount(cells.of_record))
    assert len(cells.counts) == len(np.unique(np.column_stack([codes, labels]), axis=0))
    order = np.lexsort((*cells.codes[::-1], cells.labels))
    np.testing.assert_array_equal(order, np.arange(len(order)))


def test_errors_name_what_is_wrong():
    codes, labels = np.zeros((3, 2), dtype=int), np.array([0, 1, 0])
    for arguments, message in (
        ((codes * 1.0, labels, [1, 1]), "codes must be whole numbers, got float64"),
        ((codes, labels[:2], [1, 1]), r"got shapes \(3, 2\), \(2,\) and \(2,\)"),
        ((codes, labels, [1]), "got shapes"),
        ((codes, labels - 1, [1, 1]), "labels must be at least 0, got -1"),
        ((codes + 4, labels, [5, 4]), r"codes\[:, 1\] must be in \[0, 4\), got 4 to 4"),
        ((codes, labels, [2**31, 2**31]), "more combinations than can be numbered"),
    ):
        with pytest.raises(ValueError, match=message):
            categorical_pdtp(*arguments)
    with pytest.raises(ValueError, match="alpha must be at least 0, got -1"):
        categorical_pdtp(codes, labels, [1, 1], alpha=-1)
