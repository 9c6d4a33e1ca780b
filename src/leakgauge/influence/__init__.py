"""Influence: how much does one record change the predictions of the model?"""

from leakgauge.influence.bounds import EVERY_QUERY, DtpBound, dtp_upper_bound, linear_bound, naive_bayes_bound
from leakgauge.influence.change import Changes, confirm_change, prediction_change
from leakgauge.influence.confirmation import Confirmation, confirm
from leakgauge.influence.delivered import OwnModels
from leakgauge.influence.dtp import Dtp, dtp, dtp_on_train
from leakgauge.influence.pdtp import Pdtp, own_influence, pairwise_floor, pdtp
from leakgauge.influence.removal import Cells, largest_left
from leakgauge.influence.screening import MostInfluential, most_influential
from leakgauge.influence.search import QuerySearch, search

__all__ = [
    "EVERY_QUERY",
    "Cells",
    "Changes",
    "Confirmation",
    "Dtp",
    "DtpBound",
    "MostInfluential",
    "OwnModels",
    "Pdtp",
    "QuerySearch",
    "confirm",
    "confirm_change",
    "dtp",
    "dtp_on_train",
    "dtp_upper_bound",
    "largest_left",
    "linear_bound",
    "most_influential",
    "naive_bayes_bound",
    "own_influence",
    "pairwise_floor",
    "pdtp",
    "prediction_change",
    "search",
]
