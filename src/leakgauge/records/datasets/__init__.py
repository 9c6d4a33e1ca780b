"""Public data sets about people, for measuring models: use them for that only, and identify nobody.

Those of scikit-learn come with it; the others are read from local copies or fetched, and checked either way.
"""

from __future__ import annotations

from leakgauge.records.datasets._loading import Dataset, enron_messages, enron_spam, load, names

__all__ = ["Dataset", "enron_messages", "enron_spam", "load", "names"]
