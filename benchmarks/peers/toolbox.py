"""ART: the learned black-box attack on the answers of its ShadowModels, which are trained on other records."""

from __future__ import annotations

import numpy as np
import task
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox, ShadowModels
from art.estimators.classification import SklearnClassifier


def attack(given: task.Task, kind: str) -> dict[str, np.ndarray]:
    target = SklearnClassifier(given.target)
    shadows = ShadowModels(target, num_shadow_models=given.n_shadows, random_state=given.seed)
    one_hot = np.eye(given.n_classes)
    inside, outside = shadows.generate_shadow_dataset(given.other_x, one_hot[given.other_y])
    learned = MembershipInferenceBlackBox(target, attack_model_type=kind)
    learned.fit(inside[0], inside[1], outside[0], outside[1], inside[2], outside[2])
    return {
        kind: np.asarray(learned.infer(given.X, one_hot[given.y], probabilities=True)).reshape(len(given.y), -1)[:, -1]
    }


if __name__ == "__main__":
    task.answer(attack)
