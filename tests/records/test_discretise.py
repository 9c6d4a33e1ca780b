from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from leakgauge.errors import DataError
from leakgauge.records import FixedBins, Records, bin_counts, bin_edges

EDGES = ((0.0, 1.5, 4.0), None, (2.0,))


def refuses(match, call):
    with pytest.raises(DataError, match=match):
        call()


def test_edges_are_quantiles_of_numeric_columns_only():
    features = np.column_stack([np.arange(9.0), np.arange(9) % 2, np.ones(9), [0, 0, 0, 0, 0, 0, 0, 1, 9]])
    records = Records.from_arrays(features, np.arange(9) % 2, categorical=[1])
    # quantiles 0, 1/4, 1/2, 3/4, 1 of 0..8 are 0, 2, 4, 6, 8; of a constant its value; repeated ones are merged
    assert bin_edges(records, 4) == ((0.0, 2.0, 4.0, 6.0, 8.0), None, (1.0,), (0.0, 9.0))
    assert bin_counts(records.schema, bin_edges(records, 4)).tolist() == [4, 2, 1, 1]


def test_bins_include_their_lower_edge_and_the_outermost_take_all_beyond():
    values = np.array([[-1e9, 0, 2.0], [0.0, 1, 5.0], [1.4999, 0, -5.0], [1.5, 1, 2.0], [4.0, 0, 2.0], [1e9, 1, 2.0]])
    codes = FixedBins(EDGES).fit_transform(values)
    assert codes.dtype == np.int64
    assert codes[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    assert codes[:, 1].tolist() == [0, 1, 0, 1, 0, 1]
    assert codes[:, 2].tolist() == [0] * 6


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(1, 6))
def test_codes_agree_with_looking_for_the_bin_one_by_one(values, n_bins):
    records = Records.from_arrays(np.array(values)[:, None], np.zeros(len(values)), classes=[0.0])
    (edges,) = bin_edges(records, n_bins)
    codes = FixedBins((edges,)).transform(records.features)[:, 0]
    slow = [max(sum(value >= edge for edge in edges[1:-1]), 0) for value in values]
    assert codes.tolist() == slow
    assert codes.max(initial=0) < bin_counts(records.schema, (edges,))[0]


def test_it_keeps_no_state():
    bins = FixedBins(EDGES)
    check_is_fitted(bins)
    before = dict(vars(bins))
    bins.fit(np.zeros((3, 3)))
    assert vars(bins) == before
    assert clone(bins).edges == EDGES
    copy = pickle.loads(pickle.dumps(bins))
    row = np.array([[2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(copy.transform(row), bins.transform(row))
    assert bins.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert bins.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


def test_naive_bayes_on_a_mixed_table_has_the_same_width_on_every_subset(few):
    coded = few.as_codes()
    edges = bin_edges(coded.as_codes(), 3)
    assert edges == bin_edges(few, 3)
    counts = bin_counts(coded.schema, edges)
    model = make_pipeline(FixedBins(edges), CategoricalNB(min_categories=counts))
    for some in (coded, coded[[0, 1]], coded[[3, 1]]):
        fitted = clone(model).fit(some.schema.decode(some.features), some.labels)
        assert [table.shape[1] for table in fitted[-1].feature_log_prob_] == counts.tolist()
        assert fitted.predict_proba(coded.features).shape == (5, 2)


def test_errors(few):
    refuses("n_bins must be at least 1, got 0", lambda: bin_edges(few, 0))
    refuses("at least one record, got none", lambda: bin_edges(few[:0], 3))
    refuses("edges for 3 columns but 2 columns", lambda: bin_counts(few.schema, EDGES))
    refuses("edges for 3 columns but 2 columns", lambda: FixedBins(EDGES).fit(np.zeros((1, 2))))
    refuses(
        r"edges of column 1 must be finite and ascend, got \(1.0, 1.0\)",
        lambda: FixedBins((None, (1.0, 1.0))).fit([[0, 0]]),
    )
    refuses("edges of column 0 must be finite and ascend", lambda: FixedBins(((),)).fit([[0]]))
    refuses("column 1 has no edges, so it must hold codes", lambda: FixedBins(EDGES).transform([[0, 0.5, 0]]))
    refuses("encoded matrix, which holds numbers only", lambda: FixedBins(EDGES).transform([[0, "Ulm", 0]]))
    refuses("matrix .* of finite numbers", lambda: FixedBins(EDGES).transform([[0, np.nan, 0]]))
