"""Which learned attributes of two fitted steps differ, beside those that were compared."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from leakgauge.arrays import Floats

SAME_NUMBER = 1e-9
"""Largest difference of two numbers that are one but for rounding, relative, and to the largest of their array."""


def differing(old: Any, new: Any, compared: Collection[str]) -> list[str]:
    """Names of the learned attributes that differ by more than rounding and the order of their entries.

    Learned is what begins or ends with an underscore, as in scikit-learn; a private one goes by its public name.

    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0.0, 1.0, 2.0, 4.0])
    >>> old, new = LinearRegression().fit(X, y), LinearRegression().fit(X[:3], y[:3])  # the last is on the line
    >>> differing(old, new, {"coef_", "intercept_"})
    ['singular_']
    """
    names = {name for one in (old, new) for name in getattr(one, "__dict__", {}) if "_" in (name[0], name[-1])}
    different = [name for name in names if _differ(*(getattr(one, name, None) for one in (old, new)))]
    return sorted({_shown(old, name) for name in different} - set(compared))


def is_same(old: Any, new: Any) -> bool:
    """Whether two fitted steps hold the same, byte for byte, but for what lies between the fields of a tree's nodes.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = np.arange(8.0)[:, None], np.arange(8.0) ** 2
    >>> is_same(*(DecisionTreeRegressor(random_state=0).fit(X, y) for _ in range(2)))
    True
    """
    from joblib.hashing import NumpyHasher

    class Hasher(NumpyHasher):  # type: ignore[misc]
        def save(self, obj: Any) -> None:
            fields = obj.dtype.names if isinstance(obj, np.ndarray) else None
            super().save(obj if fields is None else [np.ascontiguousarray(obj[name]) for name in fields])

    try:
        return bool(Hasher("md5").hash(old) == Hasher("md5").hash(new))
    except Exception:  # what cannot be pickled cannot be compared
        return False


def _shown(estimator: Any, name: str) -> str:
    public = f"{name.strip('_')}_"
    return public if hasattr(estimator, public) else name


def _differ(old: Any, new: Any) -> bool:
    try:
        first, second = _numbers(old), _numbers(new)
    except (TypeError, ValueError):  # words, or an object of its own
        return not is_same(old, new)
    if first.shape != second.shape:
        return True
    kinds = [part.dtype for part in (np.asarray(old), np.asarray(new)) if part.dtype.kind == "f"]
    rounding = max([SAME_NUMBER, *(16 * float(np.finfo(kind).eps) for kind in kinds)])
    largest = float(np.abs(first).max(initial=0.0, where=np.isfinite(first)))
    return not np.allclose(second, first, rtol=rounding, atol=rounding * largest, equal_nan=True)


def _numbers(value: Any) -> Floats:
    """All entries in the order of their size, since that of records may be another one."""
    return np.sort(np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float), axis=None)
