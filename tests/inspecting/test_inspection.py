"""What fitted models hold is found, and where there is nothing, nothing is found."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import (
    calibration,
    cluster,
    compose,
    covariance,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    dummy,
    ensemble,
    gaussian_process,
    impute,
    isotonic,
    kernel_approximation,
    kernel_ridge,
    linear_model,
    manifold,
    mixture,
    model_selection,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    semi_supervised,
    svm,
    tree,
)
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import leakgauge as lg
from leakgauge.errors import ConfigError, DataError
from leakgauge.inspecting import Kind, inspect
from leakgauge.records import Records

N = 60
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
CLASSES = (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int)
VALUES = X @ [1.0, 2.0, 3.0] + rng.normal(size=N)
WORDS = np.array(["north", "south"])[CLASSES].astype(object)
WORDS[7] = "Zanzibar"
TABLE = np.column_stack([WORDS, WORDS[::-1]]).astype(object)
SOME = np.where(rng.random(N) < 0.5, -1, CLASSES)

ROWS, ENTRY, VALUE, MIDPOINT = Kind.ROWS, Kind.PER_RECORD, Kind.VALUE, Kind.MIDPOINT
COUNT, WORD, SCORE, CURVE, SEED = Kind.COUNT, Kind.WORD, Kind.SCORE, Kind.CURVE, Kind.SEED
MLP = functools.partial(neural_network.MLPClassifier, (5,), max_iter=20, random_state=0)


def grid(estimator, **settings):
    return model_selection.GridSearchCV(estimator, settings, cv=2)


# Each with what it was given, and some of what it must be found to hold: where, what, whether prediction needs it.
HOLDERS = [
    (neighbors.KNeighborsClassifier(algorithm="kd_tree"), CLASSES, {("_fit_X", ROWS, True), ("_tree", ROWS, True)}),
    (neighbors.KNeighborsRegressor(algorithm="ball_tree"), VALUES, {("_tree", ROWS, True), ("_y", ENTRY, True)}),
    (neighbors.RadiusNeighborsClassifier(5.0), CLASSES, {("_fit_X", ROWS, True)}),
    (neighbors.NearestNeighbors(), None, {("_fit_X", ROWS, True)}),
    (neighbors.LocalOutlierFactor(), None, {("_fit_X", ROWS, True), ("negative_outlier_factor_", ENTRY, False)}),
    (neighbors.KernelDensity(), None, {("tree_", ROWS, True)}),
    (impute.KNNImputer(), None, {("_fit_X", ROWS, True)}),
    (svm.SVC(), CLASSES, {("support_vectors_", ROWS, True), ("support_", ENTRY, False)}),
    (svm.NuSVC(), CLASSES, {("support_vectors_", ROWS, True)}),
    (svm.SVR(), VALUES, {("support_vectors_", ROWS, True)}),
    (svm.OneClassSVM(), None, {("support_vectors_", ROWS, True)}),
    (gaussian_process.GaussianProcessRegressor(), VALUES, {("X_train_", ROWS, True), ("y_train_", ENTRY, False)}),
    (
        gaussian_process.GaussianProcessClassifier(),
        CLASSES,
        {("base_estimator_.X_train_", ROWS, True), ("base_estimator_.f_cached", ENTRY, False)},
    ),
    (kernel_ridge.KernelRidge(), VALUES, {("X_fit_", ROWS, True), ("dual_coef_", ENTRY, True)}),
    (decomposition.KernelPCA(2), None, {("X_fit_", ROWS, True)}),
    (
        kernel_approximation.Nystroem(n_components=10),
        None,
        {("components_", ROWS, True), ("component_indices_", ENTRY, False)},
    ),
    (semi_supervised.LabelSpreading(), SOME, {("X_", ROWS, True), ("transduction_", ENTRY, False)}),
    (
        semi_supervised.SelfTrainingClassifier(linear_model.LogisticRegression()),
        SOME,
        {("transduction_", ENTRY, False), ("labeled_iter_", ENTRY, False)},
    ),
    (cluster.HDBSCAN(copy=True), None, {("_raw_data", ROWS, False), ("labels_", ENTRY, False)}),
    (cluster.AffinityPropagation(), None, {("cluster_centers_", ROWS, True), ("labels_", ENTRY, False)}),
    (cluster.MeanShift(bandwidth=0.5), None, {("cluster_centers_", ROWS, True)}),
    (cluster.Birch(threshold=0.1), None, {("subcluster_centers_", ROWS, True), ("root_", ROWS, False)}),
    (cluster.KMeans(40, random_state=0), None, {("cluster_centers_", ROWS, True), ("labels_", ENTRY, False)}),
    (cluster.DBSCAN(2.0), None, {("components_", ROWS, False)}),
    (cluster.OPTICS(), None, {("reachability_", ENTRY, False)}),
    (cluster.SpectralClustering(2), None, {("affinity_matrix_", ENTRY, False)}),
    (manifold.Isomap(), None, {("nbrs_._fit_X", ROWS, True), ("dist_matrix_", ENTRY, True)}),
    (manifold.LocallyLinearEmbedding(), None, {("nbrs_._fit_X", ROWS, True), ("embedding_", ENTRY, True)}),
    (manifold.MDS(n_init=1, max_iter=5, init="random"), None, {("embedding_", ENTRY, False)}),
    (cross_decomposition.PLSRegression(), VALUES, {("_x_scores", ENTRY, False)}),
    (covariance.EllipticEnvelope(random_state=0), None, {("dist_", ENTRY, False), ("support_", ENTRY, False)}),
    (linear_model.RANSACRegressor(random_state=0), VALUES, {("inlier_mask_", ENTRY, False)}),
    (linear_model.HuberRegressor(), VALUES, {("outliers_", ENTRY, False)}),
    (linear_model.RidgeCV(store_cv_results=True), VALUES, {("cv_results_", SCORE, False)}),
    (linear_model.LassoCV(cv=2), VALUES, {("mse_path_", SCORE, False)}),
    (linear_model.LogisticRegressionCV(cv=2), CLASSES, {("scores_", SCORE, False)}),
    (
        tree.DecisionTreeRegressor(),
        VALUES,
        {("tree_.value", VALUE, True), ("tree_.threshold", MIDPOINT, True), ("tree_.n_node_samples", COUNT, False)},
    ),
    (tree.DecisionTreeClassifier(), CLASSES, {("tree_.value", Kind.DISCLOSURE, True)}),
    (
        ensemble.RandomForestClassifier(3, random_state=0, oob_score=True),
        CLASSES,
        {("estimators_[*].random_state", SEED, False), ("oob_decision_function_", ENTRY, False)},
    ),
    (ensemble.BaggingRegressor(n_estimators=3, random_state=0), VALUES, {("_seeds", SEED, False)}),
    (ensemble.IsolationForest(n_estimators=3), None, {("estimators_[*].tree_.n_node_samples", COUNT, False)}),
    (ensemble.GradientBoostingRegressor(n_estimators=3), VALUES, {("train_score_", CURVE, False)}),
    (
        ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, early_stopping=True),
        CLASSES,
        {("validation_score_", CURVE, False), ("_predictors[*][0].nodes.count", COUNT, False)},
    ),
    (
        MLP(early_stopping=True, solver="adam"),
        CLASSES,
        {("validation_scores_", SCORE, False), ("_optimizer", Kind.OPTIMISER, False)},
    ),
    (grid(linear_model.Ridge(), alpha=[1, 2]), VALUES, {("cv_results_", SCORE, False), ("best_score_", SCORE, False)}),
    (preprocessing.TargetEncoder(random_state=0), VALUES, {("categories_[*]", VALUE, True)}),
    (preprocessing.QuantileTransformer(n_quantiles=N), None, {("quantiles_", VALUE, True)}),
    (preprocessing.MinMaxScaler(), None, {("data_min_", VALUE, True), ("data_max_", VALUE, True)}),
    (preprocessing.MaxAbsScaler(), None, {("max_abs_", VALUE, True)}),
    (preprocessing.KBinsDiscretizer(quantile_method="averaged_inverted_cdf"), None, {("bin_edges_[*]", VALUE, True)}),
    (preprocessing.SplineTransformer(), None, {("bsplines_[*]._t", VALUE, True)}),
    (preprocessing.RobustScaler(), None, {("center_", MIDPOINT, True)}),
    (impute.SimpleImputer(strategy="median"), None, {("statistics_", MIDPOINT, True)}),
    (dummy.DummyRegressor(strategy="quantile", quantile=1.0), VALUES, {("constant_", VALUE, True)}),
    (
        calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="isotonic", cv=2),
        CLASSES,
        {("calibrated_classifiers_[*].calibrators[0].X_thresholds_", VALUE, True)},
    ),
    (multiclass.OneVsRestClassifier(svm.SVC()), CLASSES, {("estimators_[0].support_vectors_", ROWS, True)}),
    (
        ensemble.VotingClassifier([("k", neighbors.KNeighborsClassifier()), ("l", linear_model.LogisticRegression())]),
        CLASSES,
        {("estimators_[0]._fit_X", ROWS, True)},
    ),
]


def named(case):
    return type(case).__name__ if hasattr(case, "fit") else ""


def fitted(estimator, y, table=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(table) if y is None else estimator.fit(table, y)


def places(found):
    return {(one.where, one.kind, one.needed) for one in found.findings}


@pytest.mark.parametrize(("estimator", "y", "expected"), HOLDERS, ids=named)
def test_what_an_estimator_holds_is_found(estimator, y, expected):
    found = inspect(fitted(estimator, y), (X, CLASSES if y is None else y))
    assert expected <= places(found), places(found)
    assert found.exit_code == 1


@pytest.mark.parametrize(("estimator", "y", "expected"), HOLDERS, ids=named)
def test_what_is_known_of_an_estimator_is_found_without_records(estimator, y, expected):
    """All but values, rows and midpoints of centres and medians, which may be means."""
    found = {(where.replace("[0]", "[*]"), needed) for where, _, needed in places(inspect(fitted(estimator, y)))}
    means = ("cluster_centers_", "subcluster_centers_", "categories_[*]", "bin_edges_[*]")
    wanted = {(where.replace("[0]", "[*]"), needed) for where, _, needed in expected if where not in means}
    assert wanted <= found


PLENTY = np.random.default_rng(1).normal(size=(400, 3))
BY_FIRST = (PLENTY[:, 0] + np.random.default_rng(2).normal(size=400) > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        dummy.DummyClassifier(),
        dummy.DummyRegressor(),
        linear_model.LogisticRegression(),
        linear_model.Ridge(),
        linear_model.LinearRegression(),
        linear_model.SGDClassifier(),
        svm.LinearSVC(),
        naive_bayes.GaussianNB(),
        discriminant_analysis.LinearDiscriminantAnalysis(),
        decomposition.PCA(2),
        mixture.GaussianMixture(2),
        cluster.FeatureAgglomeration(),
        preprocessing.StandardScaler(),
        impute.SimpleImputer(),
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]),
    ],
    ids=named,
)
def test_nothing_is_found_where_there_is_nothing(estimator):
    found = inspect(fitted(estimator, BY_FIRST, PLENTY), (PLENTY, BY_FIRST))
    assert found.findings == ()
    assert found.exit_code == 0
    assert inspect(estimator).findings == ()


@pytest.mark.parametrize("columns", [2, 5])
def test_whole_numbers_do_not_agree_by_chance(columns):
    """Ages and counts of 300 records, of which some are single persons', against models that hold none of them."""
    ages = np.random.default_rng(3).integers(0, 90, size=(300, columns)).astype(float)
    y = (ages[:, 0] > 45).astype(int)
    for estimator in (linear_model.LogisticRegression(), naive_bayes.GaussianNB(), MLP()):
        kinds = {finding.kind for finding in inspect(fitted(estimator, y, ages), (ages, y)).findings}
        assert not kinds & {ROWS, VALUE, MIDPOINT, ENTRY, WORD}


def test_a_planted_name_in_a_vocabulary():
    texts = ["fever and cough"] * 40 + ["cough of Ravenscroft"]
    vectorizer = CountVectorizer().fit(texts)
    (finding,) = inspect(vectorizer, (texts, np.zeros(41))).findings
    assert (finding.where, finding.kind, finding.needed) == ("vocabulary_", WORD, True)
    assert (finding.n_entries, finding.n_records) == (2, 2)  # the name, and the "of" beside it
    assert "avenscroft" not in str(inspect(vectorizer, (texts, np.zeros(41))))


@pytest.mark.parametrize(
    ("encoder", "table", "where"),
    [
        (preprocessing.OneHotEncoder(), TABLE, "categories_[*]"),
        (preprocessing.OrdinalEncoder(), TABLE, "categories_[*]"),
        (TfidfVectorizer(), WORDS.tolist(), "vocabulary_"),
    ],
    ids=named,
)
def test_a_category_of_one_person(encoder, table, where):
    found = inspect(fitted(encoder, None, table), (table, CLASSES))
    assert (where, WORD, True) in places(found)
    assert "anzibar" not in str(found)


def test_names_of_a_dictionary():
    vectorizer = DictVectorizer().fit([{"town": "Zanzibar"}, {"town": "south"}])
    assert ("vocabulary_", WORD, True) in places(inspect(vectorizer))
    assert "Zanzibar" not in str(inspect(vectorizer))


def test_a_planted_value_as_an_edge():
    ages = np.r_[np.repeat(np.arange(20.0, 70.0), 4), 103.0][:, None]
    edges = preprocessing.KBinsDiscretizer(3, strategy="uniform").fit(ages)
    (finding,) = inspect(edges, (ages, np.zeros(len(ages)))).findings
    assert (finding.where, finding.kind, finding.n_records) == ("bin_edges_[0]", VALUE, 1)


def test_two_rows_of_one_person_are_no_two_persons():
    """A value that one person has twice is that person's; one that two persons have is nobody's."""
    ages = np.r_[np.repeat(np.arange(20.0, 70.0), 4), 103.0, 103.0][:, None]
    scaler, y = preprocessing.MinMaxScaler().fit(ages), np.zeros(len(ages))
    whose = np.arange(len(ages))
    assert inspect(scaler, (ages, y)).findings == ()
    whose[-1] = whose[-2]
    (finding,) = inspect(scaler, (ages, y), persons=whose).findings
    assert (finding.where, finding.n_records) == ("data_max_", 1)


def test_records_are_searched_for_as_each_step_sees_them():
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(town=WORDS)
    encode = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["a", "b"]), (preprocessing.OneHotEncoder(), ["town"]), remainder="drop"
    )
    model = pipeline.make_pipeline(encode, svm.SVC()).fit(table, CLASSES)
    found = inspect(model, (table, CLASSES))
    assert ("steps[0].transformers_[1].categories_[0]", WORD, True) in places(found)
    (support,) = [one for one in found.findings if one.where == "steps[1].support_vectors_"]
    assert support.n_records == len(model[-1].support_)


def test_an_attribute_that_no_table_knows():
    """The general walk finds rows in single precision, entries, texts, paths and names in what a user added."""
    model = fitted(linear_model.LogisticRegression(), CLASSES)
    model.kept = X[:5].astype(np.float32)
    model.flags = CLASSES.astype(bool)
    model.deep = {"a": [(X[3, 1], "x")]}
    model.log = "/home/meier/study/run.log"
    model.closure = (lambda held: lambda: held)(X[9])
    found = {one.where: (one.kind, one.n_records) for one in inspect(model, (X, CLASSES)).findings}
    assert found["kept"] == (ROWS, 5)
    assert found["flags"] == (ENTRY, N)
    assert found["deep[0][0][0]"] == (VALUE, 1)
    assert found["log"] == (Kind.NAME, None)
    assert found["closure.__closure__[0]"][0] is VALUE


def test_records_of_the_package_and_frames(tmp_path):
    records = Records.from_arrays(X, CLASSES)
    model = fitted(svm.SVC(), CLASSES)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=CLASSES)
    expected = lg.inspect(model, (X, CLASSES))
    assert lg.inspect(model, records) == expected
    assert lg.inspect(model, frame, target="y") == expected


def test_bad_arguments_are_clear():
    model = fitted(svm.SVC(), CLASSES)
    with pytest.raises(ConfigError, match="rule 'other' is not known; use one of 'leakgauge', 'sacro'"):
        inspect(model, rule="other")
    with pytest.raises(DataError, match="60 records and 3 labels"):
        inspect(model, (X, CLASSES[:3]))
    with pytest.raises(DataError, match="60 records and 3 persons"):
        inspect(model, (X, CLASSES), persons=[1, 2, 3])
    with pytest.raises(DataError, match="must be Records, a pair"):
        inspect(model, X)


def test_isotonic_regression():
    found = inspect(isotonic.IsotonicRegression().fit(X[:, 0], VALUES), (X[:, :1], VALUES))
    assert ("X_thresholds_", VALUE, True) in places(found)
