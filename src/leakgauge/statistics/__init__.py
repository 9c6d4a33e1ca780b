"""Pure functions from arrays to estimates with their intervals; nothing here knows a model.

Every rate is a fraction, every score points up (higher means member), every interval is two-sided at its
stated confidence, and randomness comes in as a `numpy.random.Generator`.
"""

from __future__ import annotations

from leakgauge.statistics.advantage import (
    advantage,
    advantage_exact,
    advantage_of_decisions,
    balanced_accuracy,
    census_advantage,
    census_mean_difference,
    mean_difference,
)
from leakgauge.statistics.correlation import Correlation, pearson, spearman
from leakgauge.statistics.epsilon import (
    GuessGrid,
    RankGrid,
    ThresholdGrid,
    epsilon_clopper_pearson,
    epsilon_of_guesses,
    epsilon_one_run,
    p_value_one_run,
    p_values_one_run,
)
from leakgauge.statistics.estimate import Estimate
from leakgauge.statistics.exposure import (
    Dependence,
    IdentifiedRecords,
    exposed_records,
    outside_p_values,
)
from leakgauge.statistics.games import (
    FEWEST_FALSE_POSITIVES,
    FEWEST_FALSE_RECORDS,
    GameMean,
    GameTpr,
    as_correlation,
    game_auc,
    game_mean,
    game_tpr,
    joint_correlation,
    joint_quantile,
    outlier_p_value,
)
from leakgauge.statistics.intervals import clopper_pearson, clustered_mean, mean, wilson
from leakgauge.statistics.multiple import benjamini_hochberg, benjamini_yekutieli, bonferroni_confidence
from leakgauge.statistics.one_run import ApproximateDp, OneRunResult, OneRunTest
from leakgauge.statistics.overlap import (
    most_to_tell,
    odds_without_overlap,
    pairs_by_chance,
    repeats_beyond_chance,
    shared_share,
    without_overlap,
)
from leakgauge.statistics.roc import (
    Roc,
    auc,
    delong_variances,
    resolvable_fpr,
    roc,
    tpr_at_fpr,
)
from leakgauge.statistics.sequential import wealth_against_claim
from leakgauge.statistics.tail import (
    SMALLEST_GROUP,
    GamesTail,
    TailOdds,
    games_tail,
    games_tail_bound,
    smallest_sure_games_tail,
    smallest_sure_tail,
    tail_bound,
    tail_odds,
)
from leakgauge.statistics.trade_off import (
    GaussianTradeOff,
    ProfileTradeOff,
    TradeOff,
    gaussian_epsilon,
    gaussian_mu,
    mu_of_guesses,
    mu_one_run,
    p_value_trade_off,
)

__all__ = [
    "FEWEST_FALSE_POSITIVES",
    "FEWEST_FALSE_RECORDS",
    "SMALLEST_GROUP",
    "ApproximateDp",
    "Correlation",
    "Dependence",
    "Estimate",
    "GameMean",
    "GameTpr",
    "GamesTail",
    "GaussianTradeOff",
    "GuessGrid",
    "IdentifiedRecords",
    "OneRunResult",
    "OneRunTest",
    "ProfileTradeOff",
    "RankGrid",
    "Roc",
    "TailOdds",
    "ThresholdGrid",
    "TradeOff",
    "advantage",
    "advantage_exact",
    "advantage_of_decisions",
    "as_correlation",
    "auc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bonferroni_confidence",
    "census_advantage",
    "census_mean_difference",
    "clopper_pearson",
    "clustered_mean",
    "delong_variances",
    "epsilon_clopper_pearson",
    "epsilon_of_guesses",
    "epsilon_one_run",
    "exposed_records",
    "game_auc",
    "game_mean",
    "game_tpr",
    "games_tail",
    "games_tail_bound",
    "gaussian_epsilon",
    "gaussian_mu",
    "joint_correlation",
    "joint_quantile",
    "mean",
    "mean_difference",
    "most_to_tell",
    "mu_of_guesses",
    "mu_one_run",
    "odds_without_overlap",
    "outlier_p_value",
    "outside_p_values",
    "p_value_one_run",
    "p_value_trade_off",
    "p_values_one_run",
    "pairs_by_chance",
    "pearson",
    "repeats_beyond_chance",
    "resolvable_fpr",
    "roc",
    "shared_share",
    "smallest_sure_games_tail",
    "smallest_sure_tail",
    "spearman",
    "tail_bound",
    "tail_odds",
    "tpr_at_fpr",
    "wealth_against_claim",
    "wilson",
    "without_overlap",
]
