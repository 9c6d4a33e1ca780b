"""Claims of differential privacy, tested with canaries, and training loops checked step by step."""

from leakgauge.claims.canaries import Canaries, Coins, Design, decode_jointly, make_canaries, score_canaries
from leakgauge.claims.claim import Claim
from leakgauge.claims.files import read_canaries, read_coins, read_values, write_canaries
from leakgauge.claims.learners import measure_learner
from leakgauge.claims.loops import (
    DpSgdLoop,
    LoopCheck,
    LoopFinding,
    LoopStep,
    Trace,
    TrainingLoop,
    Verdict,
    check_loop,
    share_at_clip,
    train_with_canaries,
)
from leakgauge.claims.measuring import ClaimTest, Outcome, measure_claim, measure_claim_many

__all__ = [
    "Canaries",
    "Claim",
    "ClaimTest",
    "Coins",
    "Design",
    "DpSgdLoop",
    "LoopCheck",
    "LoopFinding",
    "LoopStep",
    "Outcome",
    "Trace",
    "TrainingLoop",
    "Verdict",
    "check_loop",
    "decode_jointly",
    "make_canaries",
    "measure_claim",
    "measure_claim_many",
    "measure_learner",
    "read_canaries",
    "read_coins",
    "read_values",
    "score_canaries",
    "share_at_clip",
    "train_with_canaries",
    "write_canaries",
]
