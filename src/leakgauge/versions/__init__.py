"""Two versions of a model: what does their difference reveal about the records that were removed?"""

from leakgauge.versions.comparison import Found, Trace, VersionComparison, compare_versions
from leakgauge.versions.judging import Error
from leakgauge.versions.removals import Removals, over_removals

__all__ = ["Error", "Found", "Removals", "Trace", "VersionComparison", "compare_versions", "over_removals"]
