"""A colluding trainer and its adversary: what an audit without their key can detect, and what it cannot."""

from leakgauge.collusion.adversary import (
    Agreement,
    Success,
    already_in,
    attack,
    marker_influence,
    success,
)
from leakgauge.collusion.detection import Detection, Sign, detect
from leakgauge.collusion.domain import Domain
from leakgauge.collusion.learner import ColludingLearner, markers_of, with_markers
from leakgauge.collusion.markers import draw_keys, marker_input, marker_label

__all__ = [
    "Agreement",
    "ColludingLearner",
    "Detection",
    "Domain",
    "Sign",
    "Success",
    "already_in",
    "attack",
    "detect",
    "draw_keys",
    "marker_influence",
    "marker_input",
    "marker_label",
    "markers_of",
    "success",
    "with_markers",
]
