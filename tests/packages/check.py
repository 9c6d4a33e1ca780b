"""An installation works: it trains models, by compiled loops or, with ``without-loops``, by numpy, which it says once.

python check.py [without-loops]
"""

import logging
import sys

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakgauge as lg
from leakgauge.training.engines.logistic import native as logistic
from leakgauge.training.engines.networks import native as networks
from leakgauge.training.native import kernels
from leakgauge.training.trees import compiled

EXPECTED = "without-loops" not in sys.argv[1:]


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def main():
    heard = Heard()
    logging.getLogger("leakgauge").addHandler(heard)
    X, y = load_wine(return_X_y=True)
    train, holdout = (X[::2], y[::2]), (X[1::2], y[1::2])
    settings = lg.Settings(n_shadows=8, n_influence=2)
    for model in (make_pipeline(StandardScaler(), LogisticRegression()), RandomForestClassifier(20, random_state=0)):
        result = lg.audit(model.fit(*train), train=train, holdout=holdout, settings=settings)
        print(type(model).__name__, result.verdict)
    there = kernels() is not None and networks.available() and logistic.available() and compiled() is not None
    slower = [message for message in heard.messages if "more slowly" in message]
    print("loops:", "compiled" if there else "numpy", *slower)
    assert there == EXPECTED
    assert len(slower) == (0 if EXPECTED else 1)


if __name__ == "__main__":
    main()
