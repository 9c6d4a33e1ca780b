"""The reference pages of the site, made from the code: commands, tables of the TOML file, and public names.

Each function returns Markdown. The commands come from the typer application, keys with their defaults and descriptions
from the settings, and names from the ``__all__`` of each package, so that a page cannot differ from the code.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
import pkgutil
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from pydantic_core import PydanticUndefined

import leakgauge
from leakgauge.auditing.config import Config
from leakgauge.auditing.tables import Or
from leakgauge.cli.main import app


def command_line() -> str:
    """Every command with its arguments, options, defaults and examples."""
    parts = []
    for name, command in commands():
        usage = " ".join([name, *(one.metavar or one.name.upper() for one in arguments(command)), "[OPTIONS]"])
        parts += [f"## `{name}`", _prose(command.help), f"```text\n{usage}\n```"]
        rows = [(f"`{one.metavar or one.name.upper()}`", _said(one)) for one in arguments(command)]
        rows += [(_option(one), _said(one)) for one in options(command)]
        parts.append(_table(("argument or option", "what it does"), rows))
    return "\n\n".join(parts)


def commands() -> Iterator[tuple[str, Any]]:
    """Names and commands, subcommands in the place of the group that holds them."""
    group: Any = typer.main.get_command(app)
    yield "leakgauge", group
    for name, command in group.commands.items():
        yield f"leakgauge {name}", command
        for inner, below in getattr(command, "commands", {}).items():
            yield f"leakgauge {name} {inner}", below


def arguments(command: Any) -> list[Any]:
    """What is given by position."""
    return [one for one in command.params if one.param_type_name == "argument"]


def options(command: Any) -> list[Any]:
    """What is given by name."""
    return [one for one in command.params if one.param_type_name == "option" and not one.hidden]


def _option(one: Any) -> str:
    names = " / ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    return names + (f" `{one.metavar}`" if one.metavar else "")


def _said(one: Any) -> str:
    shown = one.show_default if isinstance(one.show_default, str) else one.default
    default = "" if shown in (None, False, ()) else f" Default: {shown.value if isinstance(shown, Enum) else shown}."
    needed = " Required." if one.required and one.param_type_name == "option" else ""
    return _plain((one.help or "") + needed + default)


def _prose(text: str | None) -> str:
    """Help of the command line as Markdown: marks of rich go, examples stay indented."""
    lines = re.sub(r"\[/?(?:dim|bold)\]", "", text or "").split("\n")
    return "\n".join(line if line.startswith("    ") else _plain(line) for line in lines)


def _plain(text: str) -> str:
    """Text in which nothing is a sign of Markdown: ``<``, ``$`` and ``*`` are escaped."""
    return re.sub(r"([<$*])", r"\\\1", text)


def settings_file() -> str:
    """Every table of the TOML file with its keys: what they hold, their defaults and descriptions."""
    shown: dict[type, tuple[str, ...]] = {}
    parts = []
    for path, part in Config.sections.items():
        if part in shown:
            continue
        shown[part] = path
        parts += [f"## {_table_name(path)}", _doc(part)]
        fields = part.model_fields.items()
        rows = [(f"`{key}`", _kind(one), _default(one), _plain(one.description or "")) for key, one in fields]
        parts.append(_table(("key", "holds", "default", "what it is"), rows))
    return "\n\n".join(parts)


def _table_name(path: tuple[str, ...]) -> str:
    """A heading that names the table as it is written.

    >>> _table_name(("models", "file", "learner", "recipe")), _table_name(("rule",)), _table_name(())
    ('`[models.learner]` of kind `recipe`', '`[rule]`', 'At the top of the file')
    """
    if not path:
        return "At the top of the file"
    kind = f" of kind `{path[-1]}`" if path[0] == "models" else ""
    name = ".".join(path[:3:2] if kind else path)
    return (f"`[[{name}]]`" if name in ("models", "data.columns", "properties") else f"`[{name}]`") + kind


def _doc(part: type) -> str:
    """What a table is for, without its name, which is the heading."""
    text = inspect.cleandoc(part.__doc__ or "").split("\n\nArgs:")[0].split("\n\n>>>")[0]
    text = re.sub(r"^\[+[\w.]+\]+[^:]*: ", "", text).replace("``", "`")
    return text[:1].upper() + text[1:]


def _kind(field: Any) -> str:
    words = [one.word for one in field.metadata if isinstance(one, Or)]
    return " or ".join([*_kinds(field.annotation), *(f'`"{word}"`' for word in words)])


def _kinds(kind: Any) -> list[str]:
    """What a type is called in a TOML file.

    >>> _kinds(int | None), _kinds(tuple[str, ...]), _kinds(dict[str, float])
    (['whole number'], ['list of text'], ['table of numbers'])
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _kinds(inner[0])
    if origin in (typing.Union, types.UnionType):
        found = [word for one in inner if one is not type(None) for word in _kinds(one)]
        return list(dict.fromkeys(found))
    if origin is typing.Literal:
        return [f'`"{one}"`' if isinstance(one, str) else f"`{one}`" for one in inner]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [f'`"{one.value}"`' for one in kind]
    many = {"number": "numbers", "whole number": "whole numbers", "table": "tables"}
    if isinstance(origin, type) and issubclass(origin, (tuple, list)):
        return ["list of " + " or ".join(many.get(one, one) for one in _kinds(inner[0]))]
    if isinstance(origin, type) and issubclass(origin, (dict, Mapping)):
        return ["table of " + " or ".join(many.get(one, one) for one in _kinds(inner[1]))]
    plain: dict[Any, str] = {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}
    return [plain.get(kind, "table")]


def _default(field: Any) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required" if field.default_factory is None else "–"
    if value is None:
        words = [one.word for one in field.metadata if isinstance(one, Or)]
        return f'`"{words[0]}"`' if words else "–"
    plain = value.value if isinstance(value, Enum) else value
    return f"`{json.dumps(plain)}`" if plain not in ("", ()) else "–"


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.replace("|", r"\|").split()) for cell in row) + " |" for row in lines
    )


@functools.cache
def packages() -> list[types.ModuleType]:
    """The package itself, and all within it that say what they export."""
    inner = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(leakgauge.__path__, "leakgauge.")
        if one.ispkg
    ]
    return [one for one in (leakgauge, *inner) if hasattr(one, "__all__")]


def package(module: types.ModuleType) -> str:
    """The page of a package: what it is for, how it is imported, and each name with its docstring.

    Names that an outer package exports too are described there, and named here.
    """
    homes = {name: _home(module, name) for name in module.__all__}
    here = [name for name, home in homes.items() if home is module]
    there = {name: home.__name__ for name, home in homes.items() if home is not module}
    classes = [name for name in here if isinstance(getattr(module, name), type)]
    parts = [f"# `{module.__name__}`", "```{eval-rst}", f".. automodule:: {module.__name__}", "```"]
    parts += ["```python", _import(module, here), "```"]
    if there:
        named = ", ".join(f"{{py:obj}}`{name} <{home}.{name}>`" for name, home in there.items())
        parts.append(f"\nExported here too, and described where an outer package exports them: {named}.")
    if here:
        parts.append(
            "\nOn this page: " + ", ".join(f"{{py:obj}}`{name} <{module.__name__}.{name}>`" for name in here) + "."
        )
    for title, names in (
        ("Classes", classes),
        ("Functions and values", [name for name in here if name not in classes]),
    ):
        if names:
            parts += [f"\n## {title}\n", "```{eval-rst}", *(_entry(module, name) for name in names), "```"]
    return "\n".join(parts)


def errors() -> str:
    """The page of the errors, which users catch and no package exports."""
    return """# `leakgauge.errors`

```python
from leakgauge.errors import LeakgaugeError
```

```{eval-rst}
.. automodule:: leakgauge.errors
   :members:
   :show-inheritance:
```
"""


def _home(module: types.ModuleType, name: str) -> types.ModuleType:
    """The outermost package that exports the same object."""
    value = getattr(module, name)
    outer = (one for one in packages() if module.__name__.startswith(one.__name__) and name in one.__all__)
    return next(one for one in outer if getattr(one, name) is value)


def _import(module: types.ModuleType, names: list[str]) -> str:
    if module is leakgauge or not names:
        return "import leakgauge as lg"
    return f"from {module.__name__} import {names[0]}"


def _entry(module: types.ModuleType, name: str) -> str:
    value, full = getattr(module, name), f"{module.__name__}.{name}"
    if isinstance(value, type):
        members = "   :undoc-members:\n" if issubclass(value, Enum) else ""
        return f".. autoclass:: {full}\n   :members:\n{members}"
    if inspect.isroutine(value):
        return f".. autofunction:: {full}\n"
    return f".. py:data:: {full}\n\n" + textwrap.indent(_docstring(module, name), "   ") + "\n"


def _docstring(module: types.ModuleType, name: str) -> str:
    """The string below a constant, in whichever module of the package assigns it."""
    for path in sorted(Path(inspect.getfile(module)).parent.rglob("*.py")):
        if name in (found := _constants(path)):
            return found[name]
    return ""


@functools.cache
def _constants(path: Path) -> dict[str, str]:
    """Names that a module assigns, with the string below each."""
    found = {}
    for one, below in itertools.pairwise(ast.parse(path.read_text("utf-8")).body):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found |= {target.id: inspect.cleandoc(text) for target in targets if isinstance(target, ast.Name)}
    return found
