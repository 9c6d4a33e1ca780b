from __future__ import annotations

from hypothesis import settings

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
