"""What can go wrong, as a tree.

.. code-block:: text

    LeakgaugeError
    ├── InputError            what the user gave cannot be used (exit code 2)
    │   ├── DataError         records, columns, files
    │   ├── ModelError        a model, a learner, or what they answered
    │   ├── ConfigError       the TOML file or an option
    │   └── MissingExtra      an optional package is not installed
    ├── StoreError            the run folder cannot be read or written
    └── WorkerError           processes die, or a cluster cannot be reached

Every message is one sentence that names what was wrong and where, followed by what was expected and what to do.
"""

from __future__ import annotations


class LeakgaugeError(Exception):
    """Base of all errors raised on purpose by leakgauge."""


class InputError(LeakgaugeError, ValueError):
    """Something the user gave cannot be used."""


class DataError(InputError):
    """Records, columns or files of records are not as they must be."""


class ModelError(InputError):
    """A model or learner, or an answer of one, is not as it must be."""


class ConfigError(InputError):
    """The configuration names or holds something that is not possible."""


class MissingExtra(InputError, ImportError):  # noqa: N818 - reads as the message does
    """An optional dependency is needed and not installed."""


class StoreError(LeakgaugeError):
    """The run folder is damaged, locked, or belongs to another audit."""


class WorkerError(LeakgaugeError):
    """Processes that train models die again and again, or the cluster they are on cannot be reached."""
