from __future__ import annotations

import subprocess
import sys
import types

import pytest

import leakgauge.statistics
import leakgauge.theory


@pytest.mark.parametrize("package", [leakgauge.statistics, leakgauge.theory])
def test_public_names_are_listed(package):
    visible = [
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    ]
    assert set(package.__all__) == set(visible)


def test_nothing_slow_is_imported():
    """The command line imports these packages; scipy.stats alone would cost it most of a second."""
    code = (
        "import sys, leakgauge.statistics as s, leakgauge.theory; "
        "s.auc([1.0], [0.0]), s.tpr_at_fpr([1.0], [0.0], 0.5), s.pearson([1, 2, 3, 4], [1, 3, 2, 4]); "
        "print([m for m in ('scipy.stats', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
