"""Influence: how much does one record change the predictions of the model?"""

from leakgauge.influence.bounds import EVERY_QUERY, DtpBound, dtp_upper_bound, linear_bound, naive_bayes_bound
from leakgauge.influence.change import Changes, confirm_change, prediction_change
from leakgauge.influence.confirmation import Confirmation, confirm
from leakgauge.influence.delivered import OwnModels
from leakgauge.influence.dtp import Dtp, dtp
from leakgauge.influence.pdtp import Pdtp, own_influence, pairwise_floor, pdtp
from leakgauge.influence.removal import Removals, categorical_pdtp, remove_most_exposed
from leakgauge.influence.removal_curve import RemovalCurve, removal_curve
from leakgauge.influence.screening import MostInfluential, most_influential
from leakgauge.influence.search import Search, search
from leakgauge.influence.variation import Variation, sample_variation, seed_variation

__all__ = [
    "EVERY_QUERY",
    "Changes",
    "Confirmation",
    "Dtp",
    "DtpBound",
    "MostInfluential",
    "OwnModels",
    "Pdtp",
    "RemovalCurve",
    "Removals",
    "Search",
    "Variation",
    "categorical_pdtp",
    "confirm",
    "confirm_change",
    "dtp",
    "dtp_upper_bound",
    "linear_bound",
    "most_influential",
    "naive_bayes_bound",
    "own_influence",
    "pairwise_floor",
    "pdtp",
    "prediction_change",
    "removal_curve",
    "remove_most_exposed",
    "sample_variation",
    "search",
    "seed_variation",
]
