"""What can go wrong, as a tree.

.. code-block:: text

    LeakgaugeError
    ├── InputError            what the user gave cannot be used (exit code 2)
    │   ├── DataError         records, columns, files
    │   ├── ModelError        a model, a learner, or what they answered
    │   │   └── UserCodeError an exception of the user's own code: an estimator, a function, a transformer
    │   ├── ConfigError       the TOML file or an option
    │   └── MissingExtra      an optional package is not installed
    ├── StoreError            the run folder cannot be read or written
    ├── WorkerError           processes die, or a cluster cannot be reached
    └── EndpointError         a model behind an endpoint cannot be reached, or stops answering

Every message is one sentence that names what was wrong and where, followed by what was expected and what to do. It
holds names of columns and files and numbers of rows, and no cell value, id, class or text of somebody else's exception:
those are raised again ``from None``, with their class for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakgauge.escaping import several_lines


class LeakgaugeError(Exception):
    """Base of all errors raised on purpose by leakgauge; what does not print stands in the message as its escape."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(several_lines(one) if isinstance(one, str) else one for one in args))


class InputError(LeakgaugeError, ValueError):
    """Something the user gave cannot be used."""


class DataError(InputError):
    """Records, columns or files of records are not as they must be."""


class ModelError(InputError):
    """A model or learner, or an answer of one, is not as it must be."""


class UserCodeError(ModelError):
    """Code of the user's raised an exception; its class is named and its text is not, which may hold cell values."""


class ConfigError(InputError):
    """The configuration names or holds something that is not possible."""


class MissingExtra(InputError, ImportError):  # noqa: N818 - reads as the message does
    """An optional dependency is needed and not installed."""


class StoreError(LeakgaugeError):
    """The run folder is damaged, locked, or belongs to another audit."""


class WorkerError(LeakgaugeError):
    """Processes that train models die again and again, or the cluster they are on cannot be reached."""


class EndpointError(LeakgaugeError):
    """A model behind an endpoint cannot be reached, or stops answering; what it answered before is kept."""


@contextmanager
def user_code(owner: str, step: str) -> Iterator[None]:
    """Turn an exception of the user's code into a :class:`UserCodeError` that names its class alone.

    Errors of leakgauge about models and settings pass, and so does Ctrl-C. Its errors about data do not, which may
    quote a cell. Nor do ``SystemExit`` (the exit code is the verdict's) and other exceptions that are no ``Exception``.

    Args:
        owner: whose code runs, as messages call it.
        step: what it does, such as ``fit`` or ``predict_proba``.

    >>> with user_code("Pipeline", "predict"):
    ...     raise ValueError("unknown category 'Fabry'")
    Traceback (most recent call last):
    ...
    leakgauge.errors.UserCodeError: Pipeline raised ValueError in predict
    """
    try:
        yield
    except (ModelError, ConfigError, MissingExtra, StoreError, WorkerError, EndpointError, KeyboardInterrupt):
        raise
    except BaseException as error:  # code of the user's may raise anything at all
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise UserCodeError(f"{owner} raised {type(error).__name__} in {step}") from None


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C stands behind an exception, as where it falls into an import."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def place_of(error: BaseException) -> str:
    """The class of an exception and the line that raised it, without its text, which may hold values of records.

    >>> try:
    ...     {}["Mrs Meier"]
    ... except KeyError as error:
    ...     print(place_of(error).partition(" in ")[0])
    KeyError
    """
    trace, name = error.__traceback__, type(error).__name__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        name if trace is None else f"{name} in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
    )
