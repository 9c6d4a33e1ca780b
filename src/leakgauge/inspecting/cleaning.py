"""A copy of a model without what prediction does not need, checked to answer the same.

Attributes that prediction does not need are deleted; what cannot be deleted is set to numbers that say nothing: counts
and impurities of trees to 1, seeds to ``None``, row numbers to 0, 1, 2, ... Of compiled trees this goes through the
state by which they are stored. Lost are ``feature_importances_``, further fits with ``warm_start``, and out-of-bag
estimates.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leakgauge.errors import ModelError
from leakgauge.inspecting.converting import ROUNDING, written_as_skops
from leakgauge.inspecting.findings import Kind, ModelFinding
from leakgauge.inspecting.formats import Content, bare_onnx, bare_safetensors, onnx_content, safetensors_content
from leakgauge.inspecting.queries import answers_of, equal_answers, queries_for
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.searching import findings_of, sightings
from leakgauge.inspecting.walking import Place, is_tree, walk
from leakgauge.models.libraries import lightgbm_booster, read_by_library
from leakgauge.models.writing import require_new, write_new

Undo: TypeAlias = Callable[[], None]
Edit: TypeAlias = Callable[[], Undo]


@dataclass(frozen=True)
class Cleaned:
    """A copy of a model without what prediction does not need.

    Args:
        model: the copy.
        removed: findings that are gone.
        left: findings that remain. Of those that the table of known attributes calls not needed, ``needed`` is true
            where the copy answered otherwise without them.
        compared: methods whose answers were found to be the same; none where none could be asked.
        queries: what they were asked.
        note: why nothing had to be compared; empty where something had.
    """

    model: Any
    removed: tuple[ModelFinding, ...]
    left: tuple[ModelFinding, ...]
    compared: tuple[str, ...]
    queries: str
    note: str = ""


def cleaned(model: Any, seen: RecordsSeen | None = None) -> Cleaned:
    """Return a copy of a model without what prediction does not need.

    What is not known to be needed is removed as well, where answers could be compared and stay the same.

    Args:
        model: a fitted estimator, or a booster; it is not changed.
        seen: the training records, as the model was given them.

    Raises:
        ModelError: it cannot be copied, or is of a kind of which no copy can be made.
    """
    before = findings_of(model, seen)
    if isinstance(model, Content) and isinstance(model.source, bytes):
        return _without_metadata(model, model.source, before, seen)
    if isinstance(model, Content):
        model = _of_content(model)
    try:
        made = copy.deepcopy(model)
    except Exception as error:  # objects of the user's may refuse
        raise ModelError(f"the {type(model).__name__} cannot be copied ({type(error).__name__})") from None
    queries = queries_for(model, seen)
    made = _with_boosters(made)
    expected = answers_of(made, queries)  # a copy lies elsewhere in memory, and may round otherwise than the model
    restored = _edited(made, seen, lambda: equal_answers(expected, answers_of(made, queries)), bool(expected))
    if not equal_answers(answers_of(model, queries), answers_of(made, queries), ROUNDING):
        raise ModelError(f"the cleaned {type(model).__name__} answers otherwise; it was not written")
    after = tuple(_needed(finding, restored) for finding in findings_of(made, seen))
    left = {(_pattern(one.where), one.kind) for one in after}
    removed = tuple(one for one in before if (_pattern(one.where), one.kind) not in left)
    return Cleaned(made, removed, after, queries.methods, queries.told)


METADATA = {
    "onnx": (".onnx", bare_onnx, onnx_content),
    "torch": (".safetensors", bare_safetensors, safetensors_content),
}
"""Files of tensors, which answer by these alone: how they end, what makes a bare one, and what it holds."""


def _without_metadata(
    content: Content, source: bytes, before: tuple[ModelFinding, ...], seen: RecordsSeen | None
) -> Cleaned:
    """A file of tensors without what stands beside them."""
    _, bare, read = METADATA[content.library]
    made = read(bare(source))
    after = findings_of(made, seen)
    left = {(_pattern(one.where), one.kind) for one in after}
    removed = tuple(one for one in before if (_pattern(one.where), one.kind) not in left)
    return Cleaned(made, removed, after, (), "", "The nodes and tensors are byte for byte the same.")


def _needed(finding: ModelFinding, restored: set[str]) -> ModelFinding:
    """A finding that is still there since the copy answered otherwise without it."""
    pattern = _pattern(finding.where)
    if not any(re.match(re.escape(one) + r"($|[.\[])", pattern) for one in restored):
        return finding
    return ModelFinding(finding.where, finding.kind, finding.n_entries, finding.n_records, True, finding.remedy)


def _pattern(path: str) -> str:
    return re.sub(r"\[(\d+|\*)\]", "[*]", path)


def _edited(model: Any, seen: RecordsSeen | None, same: Callable[[], bool], can_compare: bool) -> set[str]:
    """Edit a model in place; the patterns of what had to be restored since it answered otherwise without.

    Args:
        model: to edit.
        seen: the training records.
        same: whether it still answers the same.
        can_compare: whether there are answers to compare.
    """
    edits: dict[str, list[Edit]] = {}
    for pattern, edit in _edits(model, seen, can_compare):
        edits.setdefault(pattern, []).append(edit)
    undone = [undo for group in edits.values() for undo in _applied(group)]
    if same():
        return set()
    for undo in reversed(undone):
        undo()
    restored = set()
    for pattern, group in edits.items():
        undone = _applied(group)
        if not same():
            restored.add(pattern)
            for undo in reversed(undone):
                undo()
    return restored


def _applied(edits: Iterable[Edit]) -> list[Undo]:
    return [edit() for edit in edits]


def _edits(model: Any, seen: RecordsSeen | None, can_compare: bool) -> list[tuple[str, Edit]]:
    """What to change, with the pattern of the path of each."""
    found: dict[tuple[int, str], tuple[str, Edit]] = {}
    for place in walk(model, None, lambda _: True):
        if is_tree(place.value) and place.attribute.isidentifier():
            found[id(place.holder[-1]), place.attribute] = _setting(place, place.attribute, _bare_tree(place.value))
        elif place.attribute == "nodes" and "TreePredictor" in place.owners:
            found[id(place.holder[-1]), "nodes"] = _setting(place, "nodes", _bare_nodes(place.value))
    for place, sighting in sightings(model, seen):
        if sighting.needed or (sighting.needed is None and not can_compare) or not place.holder:
            continue
        edit = _edit(place, sighting.kind)
        if edit is not None:
            found.setdefault((id(place.holder[-1]), _name(place)), edit)
    return list(found.values())


def _edit(place: Place, kind: Kind) -> tuple[str, Edit] | None:
    """How to remove what was found at a place."""
    owner = place.holder[-1]
    name = _name(place)
    if isinstance(owner, Content) or is_tree(owner) or not hasattr(owner, name):
        return None
    if kind is Kind.SEED and place.is_setting:
        return _setting(place, name, None)
    if place.is_setting:
        default = _default_of(type(owner), name)
        return None if default is inspect.Parameter.empty else _setting(place, name, default)
    if name == "support_" and "BaseLibSVM" in place.owners:
        return _setting(place, name, np.arange(len(owner.support_), dtype=owner.support_.dtype))
    return _deleting(place, name)


def _name(place: Place) -> str:
    """The attribute of the owner of a place in which it is."""
    return re.split(r"[\[.]", place.attribute)[0]


def _default_of(kind: type, name: str) -> Any:
    """The default of a setting; ``Parameter.empty`` where it has none."""
    try:
        return inspect.signature(kind).parameters[name].default
    except (KeyError, TypeError, ValueError):
        return inspect.Parameter.empty


def _head(place: Place, name: str) -> str:
    """The pattern of the path to an attribute of the owner of a place."""
    return _pattern(place.path[: len(place.path) - len(place.attribute)] + name)


def _setting(place: Place, name: str, value: Any) -> tuple[str, Edit]:
    owner = place.holder[-1]

    def edit() -> Undo:
        old = getattr(owner, name)
        setattr(owner, name, value)
        return lambda: setattr(owner, name, old)

    return _head(place, name), edit


def _deleting(place: Place, name: str) -> tuple[str, Edit]:
    owner = place.holder[-1]

    def edit() -> Undo:
        old = getattr(owner, name)
        try:
            delattr(owner, name)
        except AttributeError:  # an attribute of a class, or of a compiled object
            return lambda: None
        return lambda: setattr(owner, name, old)

    return _head(place, name), edit


def _bare_tree(tree: Any) -> Any:
    """A tree of scikit-learn with 1 for all counts, weights and impurities, and 0 for the values of inner nodes.

    The value of a node is the mean of those below it by their counts, which would follow from it.
    """
    kind, arguments, state = tree.__reduce__()
    nodes, values = state["nodes"].copy(), state["values"].copy()
    for name in ("n_node_samples", "weighted_n_node_samples", "impurity"):
        nodes[name] = 1
    values[nodes["left_child"] != -1] = 0
    made = kind(*arguments)
    made.__setstate__({**state, "nodes": nodes, "values": values})
    return made


def _bare_nodes(nodes: Any) -> Any:
    """The same of the nodes of a tree on histograms."""
    made = nodes.copy()
    made["count"], made["gain"] = 1, 0
    made["value"][made["is_leaf"] == 0] = 0
    return made


def _with_boosters(model: Any) -> Any:
    """A model with bare boosters in place of its own; the model itself where it is none."""
    if _is_booster(model):
        return _bare_booster(model)
    for place in list(walk(model, None, lambda one: not _is_booster(one.value))):
        if _is_booster(place.value) and place.holder and "[" not in place.attribute:
            setattr(place.holder[-1], place.attribute, _bare_booster(place.value))
    return model


def _library_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_booster(value: Any) -> bool:
    is_catboost = _library_of(value) == "catboost" and hasattr(value, "load_model")
    return is_catboost or (type(value).__name__ == "Booster" and _library_of(value) in ("xgboost", "lightgbm"))


def _bare_booster(booster: Any) -> Any:
    """A booster with 1 or 0 for what it does not need to predict."""
    if _library_of(booster) == "catboost":
        return _bare_catboost(booster)
    if _library_of(booster) == "lightgbm":
        text = bare_lightgbm(booster.model_to_string(num_iteration=-1))
        return type(booster)(model_str=text)
    document = json.loads(bytes(booster.save_raw("json")))
    learner = document["learner"]
    learner["attributes"] = {}
    gradient_booster = learner["gradient_booster"]
    for tree in gradient_booster.get("gbtree", gradient_booster).get("model", {}).get("trees", []):
        inner = np.array(tree["left_children"]) != -1
        tree["sum_hessian"] = [1.0] * len(inner)
        tree["loss_changes"] = [0.0] * len(inner)
        tree["base_weights"] = np.where(inner, 0.0, tree["base_weights"]).tolist()
    return type(booster)(model_file=bytearray(json.dumps(document).encode()))


_LIGHTGBM_BARE = {
    **dict.fromkeys(("leaf_count", "internal_count", "leaf_weight", "internal_weight"), "1"),
    **dict.fromkeys(("internal_value", "split_gain"), "0"),
}


def bare_lightgbm(text: str) -> str:
    """The text of a model of LightGBM with 1 for counts and weights, and without extremes and parameters."""
    head, start, body = text.partition("\n\nTree=0\n")
    trees_text, end, _ = body.partition("end of trees")
    trees = [
        "\n".join(map(_bare_line, tree.strip("\n").split("\n")))
        for tree in re.split(r"^Tree=\d+\n", trees_text, flags=re.MULTILINE)
    ]
    blocks = [f"Tree={place}\n{tree}\n\n\n" for place, tree in enumerate(trees)] if start else []
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    head = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", head, flags=re.MULTILINE)
    head = re.sub(r"\[[^\]\s]*:[^\]\s]*\]", "[-inf:inf]", head)
    found = re.search(r"^pandas_categorical:.*$", text, re.MULTILINE)
    categories = found[0] if found else "pandas_categorical:null"
    rest = "feature_importances:\n\nparameters:\n[boosting: gbdt]\nend of parameters"
    return f"{head}\n\n{''.join(blocks)}{end}\n\n{rest}\n\n{categories}\n"


def _bare_line(line: str) -> str:
    name, _, value = line.partition("=")
    if name not in _LIGHTGBM_BARE:
        return line
    return f"{name}={' '.join([_LIGHTGBM_BARE[name]] * len(value.split()))}"


def _bare_catboost(model: Any) -> Any:
    """A model of CatBoost with 1 for the weights of leaves, and nothing about its training but classes and loss."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text("utf-8"))
        for tree in document.get("oblivious_trees", []):
            tree["leaf_weights"] = [1] * len(tree["leaf_weights"])
        told = document["model_info"]
        classes = {name: told[name] for name in ("class_params",) if name in told}
        loss = {"loss_function": told["params"]["loss_function"], "flat_params": {}}
        document["model_info"] = {**classes, "params": loss}
        path.write_text(json.dumps(document), "utf-8")
        return type(model)().load_model(str(path), format="json")


def _of_content(content: Content) -> Any:
    """What can answer queries, of the content of a file.

    Raises:
        ModelError: no clean copy can be made of its kind.
        MissingExtra: the library is not installed.
    """
    if content.library != "lightgbm" or not isinstance(content.source, str):
        raise ModelError(f"no clean copy can be made of a file of {content.library}; give the estimator that holds it")
    text = content.source.encode()
    return read_by_library(Path("model.txt"), "lightgbm", "lightgbm", lambda library: lightgbm_booster(library, text))


def _suffix(booster: Any, target: Path) -> str:
    """The ending that the file of a booster must have."""
    if _library_of(booster) == "xgboost":
        return ".json" if target.suffix.lower() == ".json" else ".ubj"
    return {"lightgbm": ".txt", "catboost": ".cbm"}[_library_of(booster)]


def _bytes_of(booster: Any, target: Path) -> bytes:
    if _library_of(booster) == "xgboost":
        return bytes(booster.save_raw(_suffix(booster, target)[1:]))
    if _library_of(booster) == "lightgbm":
        return str(booster.model_to_string(num_iteration=-1)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.cbm")
        booster.save_model(str(path))
        return path.read_bytes()


def written(made: Cleaned, source: Path, target: Path) -> tuple[str, ...]:
    """Write a cleaned model as a file that holds no code, and check what was written.

    Args:
        made: the copy.
        source: the file it came from.
        target: the file to write, which must not exist.

    Returns:
        Full names of the types in a skops file that have to be trusted by name.

    Raises:
        ModelError: the file exists or has another ending than the model's kind, or the library cannot store it.
    """
    model = made.model
    if isinstance(model, Content) and isinstance(model.source, bytes):
        require_new(target, METADATA[model.library][0])
        write_new(target, model.source)
        return ()
    if _is_booster(model):
        require_new(target, _suffix(model, target))
        write_new(target, _bytes_of(model, target))
        return ()
    if not hasattr(model, "get_params"):
        raise ModelError(f"a {type(model).__name__} cannot be written without pickle; give an estimator or a booster")
    return written_as_skops(model, source, target).trusted
