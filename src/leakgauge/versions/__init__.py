"""Two versions of a model: what does their difference reveal about the records that were removed?"""

from leakgauge.versions.comparison import Found, Trace, VersionComparison, compare_versions
from leakgauge.versions.judging import Error

__all__ = ["Error", "Found", "Trace", "VersionComparison", "compare_versions"]
