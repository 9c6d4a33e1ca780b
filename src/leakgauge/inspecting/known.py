"""What the attributes of known estimators of scikit-learn, of boosters and of torch hold: one row for each.

The rows were found by fitting estimators to records whose values, labels and words occur once, and looking for these
in everything that the estimators held afterwards (scikit-learn 1.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leakgauge.inspecting.findings import Kind

DELETE = "remove with --clean"
OTHER_LEARNER = "it stores training records: use another learner, or give access to its outputs only"
LINEAR_OR_FEATURES = "use linear coefficients or random features in place of the kernel, or give access to outputs only"
INDUCING = "use few inducing points that are not training records, or give access to outputs only"
LARGE_GROUPS = "merge clusters and classes of fewer than 10 persons"
LARGE_LEAVES = "at least 10 persons in each leaf (min_samples_leaf), and rounded values"
PUBLIC_GRID = "round the columns to a public grid before training"
PUBLIC_RANGES = "use public ranges, edges and values in place of those of the data, or round them"
FREQUENT_WORDS = "keep words that 10 persons or more share (min_df=10), or give a public list"
FREQUENT_CATEGORIES = "give a public list of categories, or join rare ones before the fit: min_frequency keeps them"
SMOOTH = "smooth=10 or more, and no category of fewer than 10 persons"
ROUND_COUNTS = "remove the counts with --clean and round the log-probabilities"
FEW_QUANTILES = "few quantiles, rounded"


@dataclass(frozen=True)
class Known:
    """What an attribute holds.

    Args:
        classes: names of classes, separated by spaces; subclasses count.
        attributes: names of attributes of theirs, separated by spaces; empty for the object itself.
        kind: what they hold. Rows, entries, scores, curves, seeds and optimiser states are always such; of the other
            kinds only what is found to be. ``None`` where it looks like something of records and is not.
        needed: whether prediction needs it.
        remedy: what to do about it.
        typical: whether it is reported where the training records are not known too.
        strategies: values of the estimator's ``strategy`` with which it holds that; empty for all.
    """

    classes: str
    attributes: str
    kind: Kind | None
    needed: bool
    remedy: str = DELETE
    typical: bool = True
    strategies: tuple[str, ...] = ()

    def applies_to(self, holders: Sequence[Any]) -> bool:
        """Whether an estimator, the last of those around the attribute, holds that by its settings."""
        return not self.strategies or getattr(holders[-1], "strategy", None) in self.strategies


KNOWN = (
    # Nothing of records: one entry for each column, or for each quantile
    Known("FeatureAgglomeration", "labels_ children_ distances_", None, True),
    Known("QuantileTransformer", "references_", None, True),
    # Training records as they are
    Known("KDTree BallTree", "", Kind.ROWS, True, OTHER_LEARNER),
    Known("NeighborsBase KNNImputer IterativeImputer", "_fit_X _mask_fit_X", Kind.ROWS, True, OTHER_LEARNER),
    Known("NeighborsBase", "_y", Kind.PER_RECORD, True, OTHER_LEARNER),
    Known("LocalOutlierFactor", "_lrd _distances_fit_X_", Kind.PER_RECORD, True, OTHER_LEARNER),
    Known("LocalOutlierFactor", "negative_outlier_factor_ _neighbors_indices_fit_X_", Kind.PER_RECORD, False),
    Known("BaseLibSVM", "support_vectors_", Kind.ROWS, True, LINEAR_OR_FEATURES),
    Known("BaseLibSVM", "dual_coef_ _dual_coef_", Kind.PER_RECORD, True, LINEAR_OR_FEATURES),
    Known("BaseLibSVM", "support_", Kind.PER_RECORD, False),
    Known("GaussianProcessRegressor _BinaryGaussianProcessClassifierLaplace", "X_train_", Kind.ROWS, True, INDUCING),
    Known("GaussianProcessRegressor", "L_ alpha_", Kind.PER_RECORD, True, INDUCING),
    Known("GaussianProcessRegressor", "y_train_", Kind.PER_RECORD, False),
    Known("_BinaryGaussianProcessClassifierLaplace", "y_train_ L_ pi_ W_sr_", Kind.PER_RECORD, True, INDUCING),
    Known("_BinaryGaussianProcessClassifierLaplace", "f_cached", Kind.PER_RECORD, False),
    Known("KernelRidge KernelPCA", "X_fit_", Kind.ROWS, True, LINEAR_OR_FEATURES),
    Known("KernelRidge", "dual_coef_", Kind.PER_RECORD, True, LINEAR_OR_FEATURES),
    Known("KernelPCA", "eigenvectors_ X_transformed_fit_ dual_coef_", Kind.PER_RECORD, True, LINEAR_OR_FEATURES),
    Known("KernelCenterer", "K_fit_rows_", Kind.PER_RECORD, True, LINEAR_OR_FEATURES),
    Known("Nystroem", "components_", Kind.ROWS, True, LINEAR_OR_FEATURES),
    Known("Nystroem", "component_indices_", Kind.PER_RECORD, False),
    Known("BaseLabelPropagation", "X_", Kind.ROWS, True, OTHER_LEARNER),
    Known("BaseLabelPropagation", "label_distributions_", Kind.PER_RECORD, True, OTHER_LEARNER),
    Known("BaseLabelPropagation", "transduction_ y_", Kind.PER_RECORD, False),
    Known("HDBSCAN", "_raw_data", Kind.ROWS, False),
    Known("HDBSCAN", "_single_linkage_tree_ probabilities_ labels_", Kind.PER_RECORD, False),
    Known("HDBSCAN", "medoids_", Kind.ROWS, False),
    Known("DBSCAN", "components_", Kind.ROWS, False),
    Known("DBSCAN", "core_sample_indices_", Kind.PER_RECORD, False),
    Known("Isomap", "dist_matrix_", Kind.PER_RECORD, True, OTHER_LEARNER),
    Known("Isomap SpectralEmbedding MDS ClassicalMDS TSNE", "embedding_", Kind.PER_RECORD, False),
    Known("LocallyLinearEmbedding", "embedding_", Kind.PER_RECORD, True, OTHER_LEARNER),
    Known("AffinityPropagation", "cluster_centers_", Kind.ROWS, True, LARGE_GROUPS),
    Known("AffinityPropagation", "cluster_centers_indices_ affinity_matrix_", Kind.PER_RECORD, False),
    # One entry for each record
    Known("ClusterMixin", "labels_ affinity_matrix_ reachability_ ordering_ core_distances_ predecessor_",
          Kind.PER_RECORD, False),
    Known("AgglomerativeClustering", "children_ distances_", Kind.PER_RECORD, False),
    Known("OPTICS", "cluster_hierarchy_", Kind.PER_RECORD, False),
    Known("BiclusterMixin", "rows_ row_labels_", Kind.PER_RECORD, False),
    Known("Birch", "root_ dummy_leaf_ subcluster_labels_root_", Kind.ROWS, False),
    Known("SpectralEmbedding MDS ClassicalMDS", "affinity_matrix_ dissimilarity_matrix_", Kind.PER_RECORD, False),
    Known("_PLS PLSSVD", "x_scores_ _x_scores y_scores_ _y_scores", Kind.PER_RECORD, False),
    Known("MinCovDet", "dist_ support_ raw_support_", Kind.PER_RECORD, False),
    Known("RANSACRegressor", "inlier_mask_", Kind.PER_RECORD, False),
    Known("HuberRegressor", "outliers_", Kind.PER_RECORD, False),
    Known("SelfTrainingClassifier", "transduction_ labeled_iter_", Kind.PER_RECORD, False),
    Known("BaseForest BaseBagging", "oob_decision_function_ oob_prediction_", Kind.PER_RECORD, False),
    Known("BaseBagging", "_sample_weight", Kind.PER_RECORD, False),
    Known("FastICA", "_sources", Kind.PER_RECORD, False),
    # Trees, histograms, words and single values: what is found to be
    Known("Tree", "n_node_samples weighted_n_node_samples", Kind.COUNT, False),
    Known("Tree", "impurity", Kind.STATISTIC, False),
    Known("Tree", "value", Kind.VALUE, True, LARGE_LEAVES),
    Known("Tree", "threshold", Kind.MIDPOINT, True, PUBLIC_GRID),
    Known("TreePredictor", "nodes.count", Kind.COUNT, False),
    Known("TreePredictor", "nodes.gain", Kind.STATISTIC, False),
    Known("TreePredictor", "nodes.value", Kind.VALUE, True, LARGE_LEAVES),
    Known("TreePredictor", "nodes.num_threshold", Kind.MIDPOINT, True, PUBLIC_GRID),
    Known("_BinMapper", "bin_thresholds_", Kind.MIDPOINT, True, PUBLIC_GRID),
    Known("CountVectorizer", "vocabulary_", Kind.WORD, True, FREQUENT_WORDS),
    Known("DictVectorizer", "vocabulary_ feature_names_", Kind.WORD, True, FREQUENT_WORDS),
    Known("_BaseEncoder", "categories_", Kind.WORD, True, FREQUENT_CATEGORIES),
    Known("TargetEncoder", "encodings_", Kind.VALUE, True, SMOOTH),
    Known("ClassifierMixin", "classes_", Kind.WORD, True, LARGE_GROUPS, False),
    Known("LabelEncoder LabelBinarizer MultiLabelBinarizer", "classes_ _cached_dict", Kind.WORD, True, FREQUENT_WORDS),
    Known("QuantileTransformer", "quantiles_", Kind.VALUE, True, FEW_QUANTILES),
    Known("IsotonicRegression", "X_thresholds_ y_thresholds_ X_min_ X_max_ f_.x f_._y f_.y", Kind.VALUE, True,
          FEW_QUANTILES),
    Known("MinMaxScaler", "data_min_ data_max_", Kind.VALUE, True, PUBLIC_RANGES),
    Known("MaxAbsScaler", "max_abs_ scale_", Kind.VALUE, True, PUBLIC_RANGES),
    Known("RobustScaler", "center_", Kind.VALUE, True, PUBLIC_RANGES),
    Known("SimpleImputer", "statistics_", Kind.VALUE, True, PUBLIC_RANGES, strategies=("median", "most_frequent")),
    Known("KBinsDiscretizer", "bin_edges_", Kind.VALUE, True, PUBLIC_RANGES),
    Known("BSpline", "t _t", Kind.VALUE, True, PUBLIC_RANGES),
    Known("DummyRegressor", "constant_", Kind.VALUE, True, PUBLIC_RANGES, strategies=("median", "quantile")),
    Known("KMeans MiniBatchKMeans BisectingKMeans MeanShift", "cluster_centers_", Kind.VALUE, True, LARGE_GROUPS,
          False),
    Known("Birch", "subcluster_centers_", Kind.VALUE, True, LARGE_GROUPS, False),
    Known("NearestCentroid", "centroids_ true_classes_centroids_", Kind.VALUE, True, LARGE_GROUPS, False),
    Known("GaussianNB", "theta_", Kind.VALUE, True, LARGE_GROUPS, False),
    Known("LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis BaseMixture", "means_", Kind.VALUE, True,
          LARGE_GROUPS, False),
    Known("_BaseDiscreteNB", "class_count_ feature_count_ category_count_", Kind.COUNT, False, ROUND_COUNTS),
    Known("GaussianNB", "class_count_", Kind.COUNT, False),
    # How well it did, and how it came about
    Known("RidgeCV _RidgeGCV RidgeClassifierCV", "cv_results_", Kind.PER_RECORD, False),
    Known("BaseSearchCV RFECV RidgeCV _RidgeGCV RidgeClassifierCV GraphicalLassoCV", "cv_results_ best_score_",
          Kind.SCORE, False),
    Known("BaseGradientBoosting BaseHistGradientBoosting",
          "train_score_ validation_score_ oob_improvement_ oob_scores_ oob_score_", Kind.CURVE, False),
    Known("BaseForest BaseBagging", "oob_score_", Kind.SCORE, False),
    Known("BaseMultilayerPerceptron", "loss_curve_ loss_ best_loss_", Kind.CURVE, False),
    Known("BaseMultilayerPerceptron", "validation_scores_ best_validation_score_", Kind.SCORE, False),
    Known("BaseMultilayerPerceptron", "_optimizer _best_coefs _best_intercepts _random_state", Kind.OPTIMISER, False),
    Known("LogisticRegressionCV", "scores_ coefs_paths_", Kind.SCORE, False),
    Known("LinearModelCV OrthogonalMatchingPursuitCV LarsCV LassoLarsCV", "mse_path_ cv_alphas_", Kind.SCORE, False),
    Known("BayesianRidge ARDRegression SparsePCA MiniBatchSparsePCA", "scores_ error_", Kind.CURVE, False),
    Known("SelfTrainingClassifier", "n_iter_ termination_condition_", Kind.CURVE, False),
    Known("BaseForest BaseBagging BaseDecisionTree BaseGradientBoosting", "random_state _rng", Kind.SEED, False),
    Known("BaseBagging", "_seeds", Kind.SEED, False),
    Known("XGBModel LGBMModel", "random_state", Kind.SEED, False),
    Known("lightgbm", "bagging_seed", Kind.SEED, False),
    # Other libraries
    Known("xgboost", "sum_hessian", Kind.COUNT, False),
    Known("xgboost", "loss_changes base_weights", Kind.STATISTIC, False),
    Known("xgboost", "split_conditions", Kind.VALUE, True, PUBLIC_GRID),
    Known("xgboost", "leaf_values", Kind.VALUE, True, LARGE_LEAVES),
    Known("XGBModel LGBMModel CatBoost", "evals_result_ _evals_result", Kind.CURVE, False),
    Known("LGBMModel", "_best_score", Kind.SCORE, False),
    Known("lightgbm", "leaf_count internal_count", Kind.COUNT, False),
    Known("lightgbm", "leaf_weight internal_weight internal_value split_gain", Kind.STATISTIC, False),
    Known("lightgbm", "feature_infos", Kind.VALUE, False),
    Known("lightgbm", "threshold", Kind.MIDPOINT, True, PUBLIC_GRID),
    Known("lightgbm", "leaf_value", Kind.VALUE, True, LARGE_LEAVES),
    Known("lightgbm", "pandas_categorical", Kind.WORD, True, FREQUENT_CATEGORIES),
    Known("catboost", "leaf_weights", Kind.COUNT, False),
    Known("catboost", "borders border", Kind.MIDPOINT, True, PUBLIC_GRID),
    Known("catboost", "leaf_values", Kind.VALUE, True, LARGE_LEAVES),
    Known("catboost", "train_finish_time best_iteration", Kind.CURVE, False),
    Known("torch", "momentum_buffer exp_avg exp_avg_sq max_exp_avg_sq sum square_avg grad_avg acc_delta",
          Kind.OPTIMISER, False),
    Known("torch", "running_mean running_var", Kind.VALUE, True, "train with batches of 10 records or more", False),
)  # fmt: skip
"""The table."""

WHOLE = frozenset({Kind.ROWS, Kind.PER_RECORD, Kind.SCORE, Kind.CURVE, Kind.SEED, Kind.OPTIMISER, Kind.STATISTIC})
"""Kinds that an attribute is of whatever it holds: it is reported as one, and not looked into."""

_BY_PLACE = {
    (owner, attribute): row
    for row in reversed(KNOWN)
    for owner in row.classes.split()
    for attribute in row.attributes.split() or [""]
}


def known(owners: Iterable[str], attribute: str) -> Known | None:
    """The row about an attribute, of the class itself or the nearest that it inherits from.

    Args:
        owners: names of the class and of those it inherits from.
        attribute: the path from the object; positions do not matter.
    """
    name = attribute.partition("[")[0]
    return next((row for owner in owners if (row := _BY_PLACE.get((owner, name))) is not None), None)
