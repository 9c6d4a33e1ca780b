"""ML Privacy Meter: the reference attack, whose models are trained on other records by this file; it trains none.

It ends in decisions at 100 rates; a record's score is at how many of these it is called a member.
"""

from __future__ import annotations

import numpy as np
import task
from privacy_meter.audit import Audit
from privacy_meter.constants import InferenceGame
from privacy_meter.dataset import Dataset
from privacy_meter.hypothesis_test import linear_itp_threshold_func, logit_rescale_threshold_func
from privacy_meter.information_source import InformationSource
from privacy_meter.information_source_signal import ModelLoss
from privacy_meter.metric import ReferenceMetric
from privacy_meter.model import Model

THRESHOLDS = {"linear": linear_itp_threshold_func, "logit": logit_rescale_threshold_func}
SMALLEST = 1e-12


class Queried(Model):
    """Any classifier, as the package's interface asks for it."""

    def __init__(self, given: task.Task, model: object) -> None:
        super().__init__(model, None)
        self.given = given

    def get_logits(self, batch_samples: np.ndarray) -> np.ndarray:
        return self.given.probabilities(self.model_obj, batch_samples)

    def get_loss(self, batch_samples: np.ndarray, batch_labels: np.ndarray, per_point: bool = True) -> np.ndarray:
        own = self.get_logits(batch_samples)[np.arange(len(batch_labels)), batch_labels]
        return -np.log(np.maximum(own, SMALLEST))

    def get_grad(self, batch_samples: np.ndarray, batch_labels: np.ndarray) -> None:
        return None

    def get_intermediate_outputs(self, layers: object, batch_samples: np.ndarray, forward_pass: bool = True) -> None:
        return None


def attack(given: task.Task, _: str) -> dict[str, np.ndarray]:
    rng, inside, n = np.random.default_rng(given.seed), given.member, int(given.member.sum())
    references = []
    for i in range(given.n_shadows):
        rows = rng.choice(len(given.other_y), n, replace=False)
        references.append(Queried(given, given.trained(given.other_x[rows], given.other_y[rows], 1 + i)))
    sides = {"train": inside, "test": ~inside}
    data = Dataset({name: {"x": given.X[side], "y": given.y[side]} for name, side in sides.items()}, "x", "y")
    sources = InformationSource([Queried(given, given.target)], [data]), InformationSource(references, [data])
    scores = {}
    for name, thresholds in THRESHOLDS.items():
        metric = ReferenceMetric(*sources, [ModelLoss()], thresholds)
        audit = Audit(metric, InferenceGame.PRIVACY_LOSS_MODEL, *sources, save_logs=False)
        audit.prepare()
        called = audit.run()[0][0].predicted_labels.sum(axis=0)
        scores[name] = given.in_pool_order(called[:n], called[n:])
    return scores


if __name__ == "__main__":
    task.answer(attack)
