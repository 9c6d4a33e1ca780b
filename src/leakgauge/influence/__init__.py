"""How far does one record move the model?"""

from leakgauge.influence.bounds import EVERY_QUERY, DtpBound, dtp_upper_bound, linear_bound, naive_bayes_bound
from leakgauge.influence.confirmation import Confirmation, confirm
from leakgauge.influence.pdtp import Pdtp, pairwise_floor, pdtp
from leakgauge.influence.removal import Removals, categorical_pdtp, remove_most_exposed
from leakgauge.influence.screening import MostInfluential, most_influential
from leakgauge.influence.solver import coarse_tolerance

__all__ = [
    "EVERY_QUERY",
    "Confirmation",
    "DtpBound",
    "MostInfluential",
    "Pdtp",
    "Removals",
    "categorical_pdtp",
    "coarse_tolerance",
    "confirm",
    "dtp_upper_bound",
    "linear_bound",
    "most_influential",
    "naive_bayes_bound",
    "pairwise_floor",
    "pdtp",
    "remove_most_exposed",
]
