"""LeakPro: its release on the package index holds no code, so that nothing comes after the import."""

from __future__ import annotations

import task
from leakpro import LeakPro

if __name__ == "__main__":
    task.answer(LeakPro)
