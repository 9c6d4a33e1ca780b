"""ART's PDTP of a few records, to be run by a Python that has ART: art_pdtp.py TABLE.npz NAME RECORDS.

    python -m venv .venv-art && .venv-art/bin/pip install adversarial-robustness-toolbox scikit-learn packaging

Prints the seconds of processor time for one record and one of ART's repetitions.
"""

import sys
import time

import numpy as np
from art.estimators.classification.scikitlearn import SklearnClassifier
from art.metrics import PDTP
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

ESTIMATORS = {
    "GaussianNB": GaussianNB(),
    "LogisticRegression": LogisticRegression(),
    "DecisionTreeClassifier": DecisionTreeClassifier(),
}


def main() -> None:
    table, name, n_records = np.load(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    X, y = table["X"], table["y"]
    estimator = ESTIMATORS[name]
    target = SklearnClassifier(clone(estimator).fit(X, y))
    extra = SklearnClassifier(clone(estimator))
    start = time.process_time()
    PDTP(target, extra, X, y, indexes=np.arange(n_records), num_iter=1)
    print((time.process_time() - start) / n_records)


if __name__ == "__main__":
    main()
