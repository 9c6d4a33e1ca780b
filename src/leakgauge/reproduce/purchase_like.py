"""A synthetic stand-in for the Purchase data of Long et al. 2017, which cannot be passed on.

The original: 836 binary attributes (whether a customer bought of a category within a year), about 300,000 customers,
and as the class to predict the index of ten clusters found by k-means++. Here customers are made up from ten tastes,
an activity of their own and the popularity of each category; the classes are found as in the paper. Nothing is tuned
to the attacks: the constants give a table as sparse as such tables are, in which networks are right about all of their
training records and a little above half of the others, as in the paper.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from leakgauge.records import Column, Kind, Records, Role, Schema

N_CUSTOMERS = 10_000
N_CATEGORIES = 836
N_CLUSTERS = 10
N_TASTES = 10
N_SPARE = 20
SEED = 2017


@cache
def purchase_like() -> Records:
    """All customers, always the same: 836 columns of 0 and 1, ten classes."""
    from sklearn.cluster import KMeans

    from leakgauge.training.threads import one_thread

    bought = _baskets(np.random.default_rng(SEED))
    with one_thread():
        found = KMeans(N_CLUSTERS + N_SPARE, init="k-means++", n_init=1, random_state=SEED).fit(bought)
    # Single customers with odd baskets make clusters of their own, so there are some to spare: the largest remain.
    largest = np.argsort(np.bincount(found.labels_))[-N_CLUSTERS:]
    clusters = found.transform(bought)[:, np.sort(largest)].argmin(axis=1)
    columns = tuple(Column(f"category_{j}", dtype="uint8") for j in range(N_CATEGORIES))
    target = Column("cluster", Kind.CATEGORICAL, Role.TARGET, tuple(range(N_CLUSTERS)), dtype="int64")
    return Records(bought, clusters.astype(np.int64), Schema(columns, target), np.arange(N_CUSTOMERS))


def _baskets(rng: np.random.Generator) -> NDArray[np.float64]:
    """Who bought what, 0 or 1 ``[customers, categories]``."""
    popularity = rng.normal(-3.0, 1.0, N_CATEGORIES)
    liked = rng.random((N_TASTES, N_CATEGORIES)) < 0.15
    tastes = np.where(liked, rng.normal(0.0, 1.5, liked.shape), 0.0)
    mixture = rng.dirichlet(np.full(N_TASTES, 0.2), N_CUSTOMERS)
    # Bounded: a few customers who buy everything would make clusters of their own.
    activity = rng.uniform(-0.8, 0.8, (N_CUSTOMERS, 1))
    log_odds = popularity + mixture @ tastes + activity
    return (rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))).astype(np.float64)
