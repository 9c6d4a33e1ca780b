"""Names for what trains models: equal only where the same code, the same settings and the same libraries do.

Code is followed as Python has it, not as text: the bytecode of functions, their constants, defaults and closures, the
globals and modules that they name, the classes of objects and their bases, and the state of objects as pickle sees it.
A file that was edited after it had been imported is not mistaken for what is running. Where code belongs to an
installed distribution or to Python, its name and the version stand for it.

What cannot be followed gets a name that never comes again: compiled code without a version, code without a file (typed
at a prompt, or executed from a string), and code that reads files or builds code while it runs. Such code is recognised
by the names of what it calls (`READING`), which an alias does not change, and of arguments (`READING_ARGUMENTS`), by
the modules that these belong to (`PLAIN_MODULES`, `READING_MODULES`), and by texts that are paths of files. A false
alarm costs time only: results are computed anew. What stays possible is an installed package that reads by itself, or
that is made to read by a name that does not look like it, with a path or a text of code that is put together in a run.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import hashlib
import importlib
import os
import re
import secrets
import sys
import sysconfig
import types
from collections.abc import Iterable
from functools import cache, cached_property
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from leakgauge._version import __version__

UNREPEATABLE = "unrepeatable"
"""What names begin with that never come again."""

ALWAYS = ("numpy", "scipy", "scikit-learn")
"""Distributions that the answers of every learner depend on."""

BACKENDS = ("torch", "xgboost", "lightgbm", "catboost", "tensorflow", "jax")
"""What the user's code and other packages may compute with although they do not name it."""

PLAIN_PACKAGES = frozenset(
    {"python", "leakgauge", "numpy", "scipy", "sklearn", "joblib", "pandas", "polars", "pyarrow", "narwhals"}
)
"""Packages that compute with none of these."""

READING = re.compile(
    r"""
    (im|mm|f|p)?read(_\w+)? | readlines? | scan_\w+ | fetch\w* | recv\w* | download\w*
    | (\w+_)?load(s|txt|mat|arff)? | load_(?!state_dict$)\w+ | (\w+_)?open(_\w+)? | genfromtxt | deserialize\w*
    | from_?(file|regex|path|disk|url|pretrained)\w* | (\w+_)?from_(file|directory) | get_file
    | \w*(File|FileIO|Store) | DataSource | InferenceSession | memmap | memory_map | mmap | connect | create_engine
    | url(open|retrieve)
    | environb? | getenvb? | os | io | sys | builtins
    | attrgetter | methodcaller | import_module | run_(path|module) | FunctionType | LambdaType | CodeType
    | eval | exec | __(builtins|code|dict|getattribute|globals|import|loader|self|spec|subclasses)__
    """,
    re.VERBOSE,
)
"""Names by which code reads what does not stand in it, or takes or makes what is not named in it."""

READING_ARGUMENTS = re.compile(r"(\w+_)?(dsn|file|filename|filepath|fname|path|uri|url)")
"""Names of arguments that say where to read."""

READING_BUILTINS = frozenset({"breakpoint", "compile", "getattr", "globals", "input", "locals", "vars"})
"""Names that do so in Python itself, while other packages mean something else by them."""

PLAIN_MODULES = frozenset(
    {
        "__future__", "_thread", "abc", "array", "base64", "binascii", "bisect", "builtins", "cmath", "collections",
        "concurrent", "contextlib", "contextvars", "copy", "copyreg", "dataclasses", "datetime", "decimal", "enum",
        "fractions", "functools", "graphlib", "hashlib", "heapq", "itertools", "json", "logging", "math", "numbers",
        "operator", "random", "re", "reprlib", "sre", "statistics", "string", "struct", "textwrap", "threading", "time",
        "types", "typing", "unicodedata", "warnings", "weakref", "zlib",
    }
)  # fmt: skip
"""Python's own modules that compute with what they are given; each of the others may reach for more."""

PLAIN_OF_OS = frozenset({"cpu_count", "getpid", "path.basename", "path.dirname", "path.join", "path.splitext", "sep"})
"""What code may take of `os`."""

READING_MODULES = re.compile(
    r"(aiohttp|boto3|botocore|duckdb|fsspec|h5py|httpx|huggingface_hub|netCDF4|pymongo|redis|requests|sqlalchemy|urllib3"
    r"|leakgauge\.records\.(datasets|reading)|pandas\.io|pyarrow\.(_?csv|_?dataset|_?feather|_?flight|_?fs|_?json|_?orc|_?parquet|ipc)|scipy\.(datasets|io)"
    r"|torch\.hub|torchvision\.datasets|torchaudio\.datasets)(\..*)?"
)
"""Modules of other packages that are there to read."""

NOT_BEHAVIOUR = frozenset(
    {
        "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate__",
        "__annotate_func__", "__annotations_cache__", "__static_attributes__", "__firstlineno__", "__type_params__",
        "__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl",
    }
)  # fmt: skip
"""Attributes of classes that change nothing that they do."""

HEAP_TYPE = 1 << 9
"""The flag of a class that was made by a ``class`` statement or in the same way (``Py_TPFLAGS_HEAPTYPE``)."""


def fingerprint(kind: str, *things: object) -> str:
    """Return a name for objects, equal in every process where they are made of the same code and values.

    Args:
        kind: what the name starts with.
        things: functions, classes, estimators, settings, other names: anything.

    Returns:
        ``<kind>-<64 hexadecimal digits>``, or a name that never comes again where an object cannot be followed.

    >>> fingerprint("sum", sum) == fingerprint("sum", sum)
    True
    """
    walk = _Walk()
    try:
        for thing in things:
            if isinstance(thing, str) and UNREPEATABLE in thing:
                return unrepeatable()
            walk.add(thing)
    except (Exception, SystemExit):  # an object of the user's may raise anything at all when it is looked into
        return unrepeatable()
    return f"{kind}-{walk.digest()}"


def unrepeatable() -> str:
    """Return a name that never comes again: what cannot be recognised is trained anew, never mistaken for another."""
    return f"{UNREPEATABLE}-{secrets.token_hex(16)}"


@cache
def versions() -> str:
    """Return the versions of the libraries that the answers of every learner depend on."""
    return " ".join([*map(_version, ALWAYS), sys.implementation.cache_tag or sys.version])


class _UnfollowableError(Exception):
    """Something whose behaviour cannot be told from what can be seen of it."""


class _Walk:
    """A hash of objects and of all that they refer to.

    Functions, classes and modules are visited once; of data, what is inside itself is named by its depth.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._visited: dict[int, int] = {}
        self._kept: list[object] = []  # alive, as another object could get the id of one that is gone
        self._around: dict[int, int] = {}
        self._say(versions())

    def digest(self) -> str:
        """The hash so far, hexadecimal."""
        return self._hash.hexdigest()

    def add(self, thing: Any) -> None:
        """Follow one object."""
        match thing:
            case type():
                self._class(thing)
            case types.FunctionType():
                self._function(thing)
            case types.ModuleType():
                self._module(thing)
            case None | bool() | int() | float() | complex() | str() | bytes() if type(thing).__module__ == "builtins":
                if isinstance(thing, str | bytes) and _is_path(os.fsdecode(thing)):
                    raise _UnfollowableError
                self._say(type(thing).__name__, thing)
            case np.generic():
                self._say("number", thing.dtype.str, thing.tobytes())
            case staticmethod() | classmethod() | types.MethodType():
                self._say(type(thing).__name__)
                self.add(thing.__func__)
                self.add(getattr(thing, "__self__", None) if isinstance(thing, types.MethodType) else None)
            case property():
                self._each("property", (thing.fget, thing.fset, thing.fdel))
            case cached_property():
                self._each("property", (thing.func,))
            case types.BuiltinFunctionType():
                self._builtin(thing)
            case types.MemberDescriptorType() | types.GetSetDescriptorType():
                self._known(thing.__objclass__.__module__, thing, slots=isinstance(thing, types.MemberDescriptorType))
            case types.WrapperDescriptorType() | types.MethodDescriptorType() | types.ClassMethodDescriptorType():
                self._known(thing.__objclass__.__module__, thing)
            case _:
                self._within(thing)

    # ------------------------------------------------------------ data

    def _within(self, thing: Any) -> None:
        """Objects that may hold others, and so themselves."""
        if id(thing) in self._around:
            self._say("itself", self._around[id(thing)])
            return
        self._around[id(thing)] = len(self._around)
        self._data(thing)
        del self._around[id(thing)]

    def _data(self, thing: Any) -> None:
        kind = type(thing)
        if kind in (list, tuple):
            self._each(kind.__name__, thing)
        elif kind in (dict, types.MappingProxyType):
            self._each("dict", (part for item in thing.items() for part in item))
        elif kind in (set, frozenset):
            self._say("set", sorted(_digest_alone(part) for part in thing))
        elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            self._class(kind)
            self._say("array", repr(thing.dtype), thing.shape)
            self._hash.update(np.ascontiguousarray(thing).tobytes())
        elif _is_tensor(thing):
            self._class(kind)
            self._say("tensor", str(thing.dtype), bool(thing.requires_grad))
            self.add(thing.detach().cpu().numpy())
        else:
            self._object(thing)

    def _object(self, thing: Any) -> None:
        """Anything else by what pickle would store of it: how it is made anew, and its state."""
        reduce = copyreg.dispatch_table.get(type(thing))
        made = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        if isinstance(made, str) and hasattr(thing, "__wrapped__"):  # a cache around a function
            self._each(made, (type(thing), thing.__wrapped__))
            return
        if isinstance(made, str):
            self._global_object(made, thing)
            return
        if self._is_compiled(type(thing)):
            raise _UnfollowableError
        self._say("object", len(made))
        for part in made[:3]:
            self.add(part)
        for items in made[3:5]:
            self._each("items", [] if items is None else list(items))

    def _global_object(self, name: str, thing: Any) -> None:
        """What pickle would store as the name of a global: such as a function of numpy that works on each element."""
        for module in (getattr(thing, "__module__", None), type(thing).__module__, "scipy.special"):
            if module and getattr(sys.modules.get(module), name, None) is thing:
                self._known(module, thing, name=name)
                return
        raise _UnfollowableError

    def _each(self, what: str, parts: Iterable[Any]) -> None:
        held = list(parts)
        self._say(what, len(held))
        for part in held:
            self.add(part)

    def _say(self, *parts: object) -> None:
        text = repr(parts).encode("utf-8", "backslashreplace")
        self._hash.update(len(text).to_bytes(8, "little") + text)

    # ------------------------------------------------------------ code

    def _seen(self, thing: object) -> bool:
        """Whether it was visited before; if so its place is said."""
        if id(thing) in self._visited:
            self._say("seen", self._visited[id(thing)])
            return True
        self._visited[id(thing)] = len(self._visited)
        self._kept.append(thing)
        return False

    def _class(self, kind: type) -> None:
        if self._seen(kind):
            return
        owner = self._owner(kind.__module__)
        self._say("class", owner, kind.__module__, kind.__qualname__)
        if owner:
            _require_plain(kind.__module__, kind.__name__)
        if owner and "<" not in kind.__qualname__:
            return
        if self._is_compiled(kind) or not (owner or _has_file(vars(sys.modules[kind.__module__]))):
            raise _UnfollowableError
        self._each("bases", (*kind.__bases__, type(kind)))
        for name, value in vars(kind).items():
            if name in NOT_BEHAVIOUR:
                continue
            self._say("attribute", name)
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if isinstance(plain, types.FunctionType):
                self._say(type(value).__name__)
                self._function(plain, has_file=True)  # Python makes methods of named tuples from strings
            else:
                self.add(value)

    def _is_compiled(self, kind: type) -> bool:
        """Whether its code cannot be seen and has no version either."""
        return not self._owner(kind.__module__) and not kind.__flags__ & HEAP_TYPE

    def _function(self, function: types.FunctionType, *, has_file: bool = False) -> None:
        if self._seen(function):
            return
        code, around = function.__code__, function.__globals__
        owner = self._owner(around.get("__name__"))  # where the code stands, which decorators hide
        if owner and "<" not in code.co_qualname:
            _require_plain(around["__name__"], code.co_name)
            self._say("function", owner, around["__name__"], code.co_qualname)
            return
        if not (owner or has_file or _has_file(around)):
            raise _UnfollowableError
        self._say("function", owner, code.co_qualname)
        self._code(code, None if owner else around)
        cells = [cell.cell_contents if _is_filled(cell) else None for cell in function.__closure__ or ()]
        self._each("holds", (function.__defaults__, function.__kwdefaults__, vars(function), *cells))

    def _code(self, code: types.CodeType, around: dict[str, Any] | None) -> None:
        """Bytecode with its constants; and, in the user's modules, what it names."""
        self._say(
            "code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable,
        )  # fmt: skip
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, around)
            else:
                self.add(constant)
        if around is None:
            return
        instructions = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
        module, last = None, -1  # the module that names are imported from, and the last place that was looked at
        for place, instruction in enumerate(instructions):
            name, following = instruction.argval, instructions[place + 1 :]
            if instruction.opname == "IMPORT_NAME":
                level = instructions[place - 2].argval
                module = self._imported("." * int(level or 0) + str(name), around.get("__package__"))
            elif instruction.opname == "IMPORT_FROM":
                self._taken(module, name)
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
                last = place + self._global(name, around, following)
            elif instruction.opname == "MATCH_CLASS":
                _require_plain("", *instructions[place - 1].argval)
            elif instruction.opname in ("KW_NAMES", "CALL_KW"):  # before Python 3.13, and since
                is_before = instruction.opname == "KW_NAMES"
                given = code.co_consts[instruction.arg or 0] if is_before else instructions[place - 1].argval
                if any(map(READING_ARGUMENTS.fullmatch, given)):
                    raise _UnfollowableError
            elif place > last and instruction.opname.startswith("LOAD_") and instruction.opcode in dis.hasname:
                # `eval` of modules of PyTorch takes nothing, and any that runs a text takes one
                _require_plain("", *() if name == "eval" and _is_call_of_nothing(following) else (name,))

    def _imported(self, name: str, package: str | None) -> types.ModuleType | None:
        """A module that a function imports when it is called; ``None`` where it is not there."""
        try:
            module = importlib.import_module(name, package)
        except ImportError:
            self._say("missing", name)
            return None
        self._module(module)
        return module

    def _global(self, name: str, around: dict[str, Any], following: list[dis.Instruction]) -> int:
        """What a name means in a module; of a module, the attribute that is taken of it.

        Returns:
            How many of the instructions that follow take attributes.
        """
        if name not in around:
            if name != "getattr" or not _is_plain_getattr(following):
                _require_plain("builtins", name)
            self._say("builtin" if hasattr(builtins, name) else "missing", name)
            return 0
        value, found, taken = around[name], around[name], 0
        loads = takewhile(lambda one: one.opname in ("LOAD_ATTR", "LOAD_METHOD"), following)
        attributes = [one.argval for one in loads]
        if value is os and (plain := PLAIN_OF_OS.intersection([".".join(attributes[:n]) for n in (1, 2)])):
            self._say("of os", *plain)
            return 1 + min(plain).count(".")
        for instruction in following:
            if not isinstance(found, types.ModuleType):
                break
            if instruction.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not hasattr(found, instruction.argval):
                break
            # Without an owner a module is the user's. Where it is used in any other way, all of it counts.
            is_own = not self._owner(found.__name__)
            self._taken(found, instruction.argval)
            found, taken = getattr(found, instruction.argval), taken + 1
            if is_own:
                value = found
        self._say("global", name)
        self.add(value)
        return taken

    def _taken(self, module: types.ModuleType | None, name: str) -> None:
        """Require that what is taken of a module reads nothing; the user's is looked into instead."""
        if module is not None and not self._owner(module.__name__):
            return
        thing = getattr(module, name, None)
        of = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
        if isinstance(of, str):
            self._owner(of)
            _require_plain(of, str(getattr(thing, "__name__", "")))
        _require_plain("", name)

    def _module(self, module: types.ModuleType) -> None:
        if module is builtins:
            raise _UnfollowableError
        if self._seen(module):
            return
        owner = self._owner(module.__name__)
        self._say("module", owner, module.__name__)
        if owner:
            return
        if not _has_file(vars(module)) or str(module.__file__).endswith(_COMPILED):
            raise _UnfollowableError
        for name, value in sorted(vars(module).items()):
            if not name.startswith("__") or name == "__getattr__":
                self._say("global", name)
                self.add(value)

    def _builtin(self, function: types.BuiltinFunctionType) -> None:
        """A compiled function, or such a method of an object."""
        of = function.__self__
        if of is None or isinstance(of, types.ModuleType):
            self._known(function.__module__ or "", function)
        else:
            self._say("method", function.__name__)
            self.add(of)

    def _known(self, module: str | None, thing: Any, *, name: str = "", slots: bool = False) -> None:
        """What is known by its name, if its module has a version; the slots of classes are what they are."""
        owner = self._owner(module)
        if not owner and not slots:
            raise _UnfollowableError
        if owner:
            _require_plain(str(module), name or thing.__name__)
        self._say("known", owner, module, name or getattr(thing, "__qualname__", thing.__name__))

    def _owner(self, module: str | None) -> str | None:
        """The distribution of a module with its version; ``None`` for the user's own code.

        Raises:
            _UnfollowableError: If the module is there to read.
        """
        owner = _owner_of(module) if module else None
        if module and owner and _is_reading(module, owner):
            raise _UnfollowableError
        if (owner.split()[0] if owner else "") not in PLAIN_PACKAGES:
            self._backends()
        return owner

    def _backends(self) -> None:
        """Say once what other packages may compute with."""
        if self._visited.setdefault(-1, 0) == 0:
            self._visited[-1] = 1
            self._say("backends", *map(_version, BACKENDS))


_COMPILED = (".so", ".pyd", ".dylib", ".dll")

_INSTALLED = ("site-packages", "dist-packages")


@cache
def _owner_of(module: str) -> str | None:
    """Whose module it is: Python's, a distribution's, both with their versions; ``None`` for any other."""
    top = module.partition(".")[0]
    if top == "leakgauge":
        return f"leakgauge {__version__}"
    found = sys.modules.get(module) or sys.modules.get(top)
    file = getattr(found, "__file__", None)
    if file is None:
        return _PYTHON if top in sys.builtin_module_names or top in sys.stdlib_module_names else None
    path = Path(file)
    if any(folder in path.parts for folder in _INSTALLED):
        version = _version_of_package(top)
        return None if version is None else f"{top} {version}"
    return _PYTHON if any(path.is_relative_to(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib")) else None


_PYTHON = f"python {sys.version}"


def _is_path(text: str) -> bool:
    """Whether a file has this path, or a folder, where the text has a separator and not only that."""
    return os.path.isfile(text) or (len(text) > 1 and os.sep in text and os.path.isdir(text))


def _is_reading(module: str, owner: str) -> bool:
    """Whether a module of Python's or of another package is there to read."""
    if owner == _PYTHON:
        return PLAIN_MODULES.isdisjoint({module.partition(".")[0], module.partition(".")[0].removeprefix("_")})
    return READING_MODULES.fullmatch(module) is not None


def _require_plain(module: str, *names: str) -> None:
    """Refuse names of what reads; ``module`` is whose they are, if that is known."""
    if any(READING.fullmatch(name) or (module == "builtins" and name in READING_BUILTINS) for name in names):
        raise _UnfollowableError


def _is_call_of_nothing(following: list[dis.Instruction]) -> bool:
    """Whether what was loaded last is called, without arguments."""
    call = next((one for one in following if one.opname not in ("PRECALL", "PUSH_NULL")), None)
    return call is not None and call.opname == "CALL" and call.arg == 0


def _is_plain_getattr(following: list[dis.Instruction]) -> bool:
    """Whether ``getattr`` is called for a name that stands in the code and is none of those that read.

    True only where the arguments are variables and constants, so that each instruction is one of them.
    """
    arguments = list(takewhile(lambda one: one.opname.startswith("LOAD_"), following))
    rest = (one for one in following[len(arguments) :] if one.opname != "PRECALL")
    call, values = next(rest, None), [one for one in arguments if one.opname != "LOAD_ATTR"]
    if call is None or call.opname != "CALL" or call.arg != len(values) or len(values) < 2:
        return False
    name = values[1]
    return name.opname == "LOAD_CONST" and isinstance(name.argval, str) and not READING.fullmatch(name.argval)


def _version_of_package(top: str) -> str | None:
    """The version that a package names itself, or its distributions'."""
    own = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(own, str):
        return own
    names = _distributions().get(top, [])
    return " ".join(sorted(map(_version, names))) or None


@cache
def _distributions() -> dict[str, list[str]]:
    return {package: list(names) for package, names in metadata.packages_distributions().items()}


@cache
def _version(distribution: str) -> str:
    try:
        return f"{distribution}={metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return f"{distribution} is not installed"


def _digest_alone(thing: object) -> str:
    walk = _Walk()
    walk.add(thing)
    return walk.digest()


def _has_file(around: dict[str, Any]) -> bool:
    """Whether the code of a module stands in a file."""
    file = around.get("__file__")
    return isinstance(file, str) and Path(file).is_file()


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_tensor(thing: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)
