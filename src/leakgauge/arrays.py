"""What arrays hold, in annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.floating[Any]]
"""In either precision."""
Flags: TypeAlias = NDArray[np.bool_]
Members: TypeAlias = NDArray[np.bool_]
"""Who is in a training set, ``[records]`` or ``[models, records]``."""
Indices: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int64]
"""Codes of classes."""
Codes: TypeAlias = NDArray[np.int64]
"""Codes of categories or bins."""
Rows: TypeAlias = NDArray[np.int32]
"""Places of records, as compiled loops take them."""
