import math

import numpy as np
import pytest

from leakgauge.theory import (
    FREQUENCY_DELTA,
    bin_centres,
    binned_ceiling,
    linear_queries_delta,
    lipschitz_bound,
    logistic_lipschitz,
    naive_bayes_delta,
    normalised_naive_bayes_bound,
    smoothed_naive_bayes_delta,
    softmax_lipschitz,
    stability_bound,
    stability_gamma,
)

PRINTED = 4 / 3  # Long et al. 2017, propositions 6.3, 6.7 and 6.8


def test_without_influence_the_bound_is_the_constant_alone():
    """Null: PDTP of 0 says no more than that DTP is at most ln delta."""
    assert stability_bound(0.0, 1.5) == pytest.approx(math.log(1.5))
    assert stability_gamma(1.5, 0.0) == pytest.approx(1.5)
    assert (lipschitz_bound(7.0, [1.0, 2.0], [[1.0, 2.0]]) == 0).all()
    assert binned_ceiling(0.0) == 0


class TestFrequencies:
    """Bayes inference: labels with a of b records, one of the a removed; 1/b of the others' share moves too."""

    def violations(self, delta):
        found = []
        for b in range(2, 200):
            for a in range(2, b):  # own label still possible without t; another label has the other b - a
                own = math.log(a / b) - math.log((a - 1) / (b - 1))
                other = math.log(b / (b - 1))
                if max(abs(own), other) > math.log(stability_gamma(delta, abs(own))) + 1e-12:
                    found.append((a, b))
        return found

    def test_the_printed_constant_fails_for_two_of_three_records_and_for_no_other_count(self):
        # Proposition 6.3 prints 4/3; its proof turns an inequality round
        assert self.violations(PRINTED) == [(2, 3)]

    def test_three_halves_holds_for_all_counts(self):
        assert self.violations(FREQUENCY_DELTA) == []
        assert self.violations(FREQUENCY_DELTA - 1e-6) == [(2, 3)]

    def test_the_worked_example(self):
        # three records with the same features, labels A, A, B; an A is removed
        own, other = math.log((2 / 3) / (1 / 2)), math.log((1 / 2) / (1 / 3))
        assert own == pytest.approx(0.2876820724, abs=1e-9)
        assert other == pytest.approx(0.4054651081, abs=1e-9)
        assert other > stability_bound(own, PRINTED)
        assert other <= stability_bound(own, FREQUENCY_DELTA) + 1e-15


def scores(codes, labels, queries, v, k, alpha):
    """Logs of unnormalised scores ``[q, k]``, written out."""
    found = np.empty((len(queries), k))
    with np.errstate(divide="ignore"):
        for c in range(k):
            own = codes[labels == c]
            found[:, c] = np.log(len(own) / len(codes))
            for j in range(codes.shape[1]):
                counts = np.bincount(own[:, j], minlength=v)
                found[:, c] += np.log((counts + alpha) / (len(own) + alpha * v))[queries[:, j]]
    return found


def posteriors(logs):
    return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


def ratios(before, after):
    with np.errstate(invalid="ignore"):
        return np.where(before == after, 0.0, np.abs(before - after))


class TestNaiveBayes:
    # eight records, Laplace +1, prior unsmoothed; reference values computed independently
    CODES = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1], [0, 1]])
    LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    QUERIES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    # DTP normalised, PDTP normalised, own label, DTP unnormalised = PDTP unnormalised
    TABLE = (
        (0.4290749737, 0.4290749737, 0.0693281300, 0.3648717111),
        (0.4290749737, 0.4290749737, 0.0693281300, 0.3648717111),
        (0.5967390045, 0.5967390045, 0.5967390045, 0.7703368193),
        (0.5364211710, 0.5052854434, 0.3985827685, 0.7703368193),
        (0.3471962000, 0.3471962000, 0.0866683826, 0.3003331900),
        (0.3471962000, 0.3471962000, 0.0866683826, 0.3003331900),
        (0.3471962000, 0.3471962000, 0.0866683826, 0.3003331900),
        (0.5637225699, 0.4601818909, 0.4601818909, 0.7057982981),
    )

    def test_the_constants_of_the_worked_example(self):
        assert naive_bayes_delta(4, 2, 8) == pytest.approx(1.5238095238, abs=1e-9)
        assert math.log(naive_bayes_delta(4, 2, 8)) == pytest.approx(0.4212134651, abs=1e-9)
        assert smoothed_naive_bayes_delta(4, 2, 2, 8) == pytest.approx(1.7142857143, abs=1e-9)
        assert math.log(smoothed_naive_bayes_delta(4, 2, 2, 8)) == pytest.approx(0.5389965007, abs=1e-9)
        assert normalised_naive_bayes_bound(0.0, 1.0, 8) == pytest.approx(0.1335313926, abs=1e-9)  # h alone

    @pytest.mark.parametrize("t", range(8))
    def test_the_table_of_the_worked_example(self, t):
        keep = np.delete(np.arange(8), t)
        before = scores(self.CODES, self.LABELS, self.QUERIES, 2, 2, 1.0)
        after = scores(self.CODES[keep], self.LABELS[keep], self.QUERIES, 2, 2, 1.0)
        at = int(np.flatnonzero((self.CODES[t] == self.QUERIES).all(axis=1))[0])
        moved, plain = np.abs(posteriors(before) - posteriors(after)), np.abs(before - after)
        expected = self.TABLE[t]
        assert moved.max() == pytest.approx(expected[0], abs=1e-9)
        assert moved[at].max() == pytest.approx(expected[1], abs=1e-9)
        assert moved[at, self.LABELS[t]] == pytest.approx(expected[2], abs=1e-9)
        assert plain.max() == pytest.approx(expected[3], abs=1e-9)
        assert plain[at].max() == pytest.approx(expected[3], abs=1e-9)
        # unnormalised scores obey theorem 6.2 with proposition 6.5, normalised ones the bound for them
        delta = smoothed_naive_bayes_delta(4, 2, 2, 8)
        assert plain.max() <= stability_bound(plain[at].max(), delta)
        assert moved.max() <= normalised_naive_bayes_bound(plain[at, self.LABELS[t]], delta, 8)

    def test_record_7_contradicts_the_printed_bound_for_normalised_posteriors(self):
        dtp, pdtp, own, unnormalised = self.TABLE[7]
        delta = smoothed_naive_bayes_delta(4, 2, 2, 8)
        assert dtp > stability_bound(pdtp, delta) == pytest.approx(0.5389965007, abs=1e-9)
        assert dtp > math.log(stability_gamma(delta, own))
        bound = normalised_naive_bayes_bound(unnormalised, delta, 8)
        assert bound == pytest.approx(0.8393296907, abs=1e-9)
        assert dtp <= bound

    def random_cases(self, n_cases, seed, alpha):
        """Data sets, with the smallest class and every record's moves at all queries."""
        rng = np.random.default_rng(seed)
        for _ in range(n_cases):
            k, m, v = int(rng.integers(2, 4)), int(rng.integers(1, 5)), 2
            n = int(rng.integers(2 * k, 13))
            codes, labels = rng.integers(0, v, (n, m)), np.r_[np.repeat(np.arange(k), 2), rng.integers(0, k, n - 2 * k)]
            queries = np.array(np.meshgrid(*[range(v)] * m)).reshape(m, -1).T
            before = scores(codes, labels, queries, v, k, alpha)
            for t in range(n):
                keep = np.delete(np.arange(n), t)
                after = scores(codes[keep], labels[keep], queries, v, k, alpha)
                at = int(np.flatnonzero((queries == codes[t]).all(axis=1))[0])
                yield n, m, v, int(np.bincount(labels).min()), before, after, at, int(labels[t])

    def test_the_constants_hold_for_unnormalised_scores(self):
        """Every record of 250 data sets without smoothing and 250 with it, at every query and label."""
        n_checked = 0
        for n, m, v, smallest, before, after, at, label in self.random_cases(250, 0, 1.0):
            moved = ratios(before, after)
            for sharp in (False, True):
                delta = smoothed_naive_bayes_delta(smallest, v, m, n, sharp=sharp)
                assert moved.max() <= max(math.log(delta), moved[at, label]) + 1e-12
            n_checked += 1
        for n, m, _, smallest, before, after, at, label in self.random_cases(250, 1, 0.0):
            if not np.isfinite(after[at, label]):
                continue  # definition 6.1 speaks of records whose own label stays possible
            moved = ratios(before, after)
            assert moved.max() <= max(math.log(naive_bayes_delta(smallest, m, n)), moved[at, label]) + 1e-12
            n_checked += 1
        assert n_checked > 2000

    def test_the_bound_for_posteriors_holds_where_the_printed_one_fails(self):
        n_above, closest = 0, math.inf
        for n, m, v, smallest, before, after, at, label in self.random_cases(250, 2, 1.0):
            dtp = np.abs(posteriors(before) - posteriors(after))
            delta = smoothed_naive_bayes_delta(smallest, v, m, n)
            bound = normalised_naive_bayes_bound(abs(before[at, label] - after[at, label]), delta, n)
            assert dtp.max() <= bound + 1e-12
            closest = min(closest, float(bound - dtp.max()))
            n_above += dtp.max() > stability_bound(dtp[at].max(), delta) + 1e-9
        assert n_above > 0, "for posteriors the printed bound is wrong"
        assert closest < 0.2, "a bound that nothing comes near says nothing"


def test_linear_queries_need_three_halves():
    """Long et al. 2017, proposition 6.7, prints (4/3)^q; reference values computed independently.

    1,000 records, a class with 3, seven features each equal to the record's value in 2 of the 3; the query differs in
    all of them.
    """
    n, members, m = 1000, 3, 7
    prior = (members / n) / ((members - 1) / (n - 1))
    own = prior * ((2 / 3) / (1 / 2)) ** m
    query = 1 / (prior * ((1 / 3) / (1 / 2)) ** m)  # at a value that 1 of 3, then 1 of 2 have
    assert own == pytest.approx(11.2260741, abs=1e-7)
    assert query == pytest.approx(11.4020270, abs=1e-7)
    printed = PRINTED ** (m + 1)
    assert printed == pytest.approx(9.9887212, abs=1e-7)
    assert query > stability_gamma(printed, math.log(own))
    assert query <= stability_gamma(linear_queries_delta(m + 1), math.log(own))


class TestLipschitz:
    def test_the_worked_example(self):
        # w = (0.8, -1.2, 0.3), b = 0.1 against w' = (0.75, -1.1, 0.28), b' = 0.13 on {-1, 1}^3; reference values
        u, other = np.array([0.8, -1.2, 0.3, 0.1]), np.array([0.75, -1.1, 0.28, 0.13])
        assert logistic_lipschitz(3) == 4
        bound = lipschitz_bound(logistic_lipschitz(3), u, other)
        assert bound == pytest.approx(0.4)
        corners = np.c_[np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T, np.ones(8)]
        moved = np.abs(np.logaddexp(0, corners @ u) - np.logaddexp(0, corners @ other)).max()
        moved = max(moved, np.abs(np.logaddexp(0, -corners @ u) - np.logaddexp(0, -corners @ other)).max())
        assert moved == pytest.approx(0.1781553087, abs=1e-9)
        assert moved <= bound

    def test_the_constant_of_softmax_holds_and_is_nearly_reached(self):
        rng, radius, closest = np.random.default_rng(0), 2.0, 0.0
        for _ in range(2000):
            x = rng.laplace(size=3)
            x = np.append(x * radius / np.abs(x).sum(), 1.0)
            weights = rng.normal(size=(3, 4)) * rng.choice([0.1, 3.0])
            signs = np.sign(rng.normal(size=(3, 1))) * np.sign(x)
            after = weights + 0.1 * signs
            logs = [row - np.logaddexp.reduce(row) for row in (weights @ x, after @ x)]
            moved = np.abs(logs[0] - logs[1]).max()
            bound = lipschitz_bound(softmax_lipschitz(radius), weights.ravel(), after.ravel())
            assert moved <= bound + 1e-12
            closest = max(closest, moved / bound)
        assert closest > 0.9

    def test_the_bound_is_for_each_record(self):
        np.testing.assert_allclose(lipschitz_bound(2.0, [0.0, 0.0], [[1.0, -3.0], [0.5, 0.0]]), [6.0, 1.0])


class TestBinned:
    def test_the_ceiling_is_never_exceeded_and_reached(self):
        """20,000 pairs of probabilities, many at edges of bins, for bins of three widths."""
        rng = np.random.default_rng(0)
        for width in (0.01, 0.1, 0.25):
            p, q = rng.uniform(0, 1, (2, 20_000))
            p[:10_000] = np.round(p[:10_000] / width) * width
            q[:5_000] = np.maximum(p[:5_000] - 1e-12, 0)
            ratio = np.abs(np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)))
            binned = np.abs(np.log(bin_centres(p, width)) - np.log(bin_centres(q, width)))
            assert (binned <= binned_ceiling(ratio, width) + 1e-12).all()

    def test_it_is_the_largest_over_all_pairs_of_bins(self):
        """Slow twin: bins i > j have probabilities i w and just below (j + 1) w."""
        pairs = [(math.log(i / (j + 1)), math.log((i + 0.5) / (j + 0.5))) for i in range(1, 100) for j in range(i)]
        for ratio in (1e-9, 0.1, 0.5, 1.0, 2.0, 4.0):
            twin = max(binned for plain, binned in pairs if plain <= ratio)
            assert binned_ceiling(ratio) == pytest.approx(twin, abs=1e-12)

    def test_it_grows_with_the_ratio_up_to_the_cap(self):
        found = binned_ceiling(np.linspace(0, 10, 500))
        assert (np.diff(found) >= 0).all()
        assert found[-1] == pytest.approx(5.2933048247, abs=1e-9)  # ln 199
        assert np.isnan(binned_ceiling(math.nan))
        assert binned_ceiling(math.inf) == found[-1]


def test_unknown_stays_unknown():
    assert np.isnan(stability_bound(math.nan, 1.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stability_bound(0.1, 1.0), "delta must be above 1, got 1.0"),
        (lambda: naive_bayes_delta(1, 2, 8), "smallest_class must be at least 2, got 1"),
        (lambda: naive_bayes_delta(2, 2, 1), "n_records must be at least 2, got 1"),
        (lambda: smoothed_naive_bayes_delta(1, 0, 2, 8), "n_values must be at least 1, got 0"),
        (lambda: linear_queries_delta(0), "n_queries must be at least 1, got 0"),
        (lambda: logistic_lipschitz(math.inf), "radius must be finite and at least 0, got inf"),
        (lambda: softmax_lipschitz(-1.0), "radius must be finite and at least 0, got -1.0"),
        (lambda: binned_ceiling(0.1, 0.03), "width must be in"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ratios_in_single_precision_are_bounded_in_double():
    own = np.array([0.7057982981, 0.1], dtype=np.float32)
    found = normalised_naive_bayes_bound(own, 12 / 7, 8)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, normalised_naive_bayes_bound(own.astype(float), 12 / 7, 8))
