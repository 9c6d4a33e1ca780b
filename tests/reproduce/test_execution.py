"""Experiments train where and how they are told: in workers, with finished work kept, and with progress shown."""

from __future__ import annotations

import pytest

from leakgauge.reproduce import EXPERIMENTS
from leakgauge.training import Execution

TRAINS = [
    one
    for one in EXPERIMENTS
    if not one.name.startswith(("chase", "izzo")) and one.name not in ("yeom-figure-1", "long-figure-6")
]
"""Those whose first models are trained within seconds; some train none, or each by itself."""


@pytest.mark.long
@pytest.mark.usefixtures("published_data")
@pytest.mark.parametrize(
    "experiment",
    [pytest.param(experiment, marks=() if i % 3 == 0 else pytest.mark.slow) for i, experiment in enumerate(TRAINS)],
    ids=[one.name for one in TRAINS],
)
def test_progress_is_told_to_whoever_started_it(experiment) -> None:
    """And may stop it, as Ctrl-C does, before any model was trained."""

    def stop(*done: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(quick=True, seed=5, execution=Execution(progress=stop))
