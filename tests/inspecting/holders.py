"""Fitted estimators and what they hold, as it was found by hand (scikit-learn 1.9)."""

import functools
import warnings

import numpy as np
from sklearn import (
    calibration,
    cluster,
    covariance,
    cross_decomposition,
    decomposition,
    dummy,
    ensemble,
    gaussian_process,
    impute,
    kernel_approximation,
    kernel_ridge,
    linear_model,
    manifold,
    model_selection,
    multiclass,
    neighbors,
    neural_network,
    preprocessing,
    semi_supervised,
    svm,
    tree,
)

from leakgauge.inspecting import Kind

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
    (linear_model.RidgeCV(store_cv_results=True), VALUES, {("cv_results_", ENTRY, False)}),
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
