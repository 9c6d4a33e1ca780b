"""What an ONNX file says before it is opened, of messages written by hand: no package of ONNX is needed.

Field numbers are those of onnx.proto, and the encoding is that of protocol buffers.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from leakgauge.errors import ModelError
from leakgauge.inspecting.formats import bare_onnx, onnx_content
from leakgauge.models.onnx import checked_onnx


def whole(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    return bytes([value & 127 | 128]) + whole(value >> 7) if value > 127 else bytes([value])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(whole(number << 3) + whole(value))
        else:
            content = value.encode() if isinstance(value, str) else value
            parts.append(whole(number << 3 | 2) + whole(len(content)) + content)
    return b"".join(parts)


def operators(domain: str, version: int) -> tuple[int, bytes]:
    return 8, message((1, domain), (2, version))


STANDARD = operators("", 17)


def tensor(location: str) -> bytes:
    """Three numbers kept in another file, and fields of 4 and of 8 bytes before where that stands."""
    around = whole(40 << 3 | 5) + struct.pack("<f", 1.5) + whole(41 << 3 | 1) + struct.pack("<d", 2.5)
    return message((1, 3), (2, 1), (8, "w")) + around + message((13, message((1, "location"), (2, location))))


def graph(*fields: tuple[int, bytes]) -> tuple[int, bytes]:
    return 7, message((2, "graph"), *fields)


def attribute(number: int, content: bytes) -> tuple[int, bytes]:
    """One of a node of a graph."""
    return 1, message((4, "Add"), (5, message((1, "value"), (number, content))))


def sparse(number: int, location: str) -> bytes:
    return message((number, tensor(location)), (3, 4))


def everywhere(location: str) -> dict[str, bytes]:
    """A model for each place of the format at which a tensor can stand."""
    inner = graph((5, tensor(location)))[1]
    node = attribute(5, tensor(location))[1]
    function = message((1, "own"), (10, ""), (7, node))
    defaults = message((1, "own"), (10, ""), (11, message((1, "alpha"), (5, tensor(location)))))
    return {
        "weights": message(STANDARD, graph((5, tensor(location)))),
        "values of sparse weights": message(STANDARD, graph((15, sparse(1, location)))),
        "places of sparse weights": message(STANDARD, graph((15, sparse(2, location)))),
        "tensor of a node": message(STANDARD, graph(attribute(5, tensor(location)))),
        "one of several tensors": message(STANDARD, graph(attribute(10, b""), attribute(10, tensor(location)))),
        "graph in a node": message(STANDARD, graph(attribute(6, inner))),
        "graphs in a node": message(STANDARD, graph(attribute(11, inner))),
        "sparse tensor of a node": message(STANDARD, graph(attribute(22, sparse(1, location)))),
        "sparse tensors of a node": message(STANDARD, graph(attribute(23, sparse(1, location)))),
        "function": message(STANDARD, graph(), (25, function)),
        "defaults of a function": message(STANDARD, graph(), (25, defaults)),
        "first weights for training": message(STANDARD, graph(), (20, message((1, inner)))),
        "steps of training": message(STANDARD, graph(), (20, message((2, inner)))),
    }


def test_operator_sets_are_told_by_name_in_one_order() -> None:
    content = message((1, 8), (2, "made by hand"), operators("ai.onnx.ml", 3), operators("", 300), graph())
    assert checked_onnx(content, Path("model.onnx")) == "ai.onnx 300, ai.onnx.ml 3"


@pytest.mark.parametrize("place", everywhere(""))
def test_numbers_in_another_file_are_found_wherever_they_may_stand(place: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for location, words in (
        ("/etc/passwd", "refers to data outside its folder; export the model with its data in the same file"),
        ("../weights.bin", "refers to data outside its folder"),
        ("a\\..\\..\\weights.bin", "refers to data outside its folder"),
        ("C:\\weights.bin", "refers to data outside its folder"),
        ("C:weights.bin", "refers to data outside its folder"),
        ("wei\0ghts.bin", "refers to data outside its folder"),
        ("link.bin", "refers to data outside its folder"),
        ("absent.bin", "refers to a file beside it that is not there; put it there"),
        ("folder", "refers to a file beside it that is not there"),
    ):
        (tmp_path / "folder").mkdir(exist_ok=True)
        if not (tmp_path / "link.bin").is_symlink():
            (tmp_path / "link.bin").symlink_to("/etc/hostname")
        with pytest.raises(ModelError, match=words):
            checked_onnx(everywhere(location)[place], path)
    (tmp_path / "folder" / "weights.bin").write_bytes(bytes(12))
    assert checked_onnx(everywhere("folder/weights.bin")[place], path) == "ai.onnx 17"


def test_a_name_that_merely_says_location_is_no_reference() -> None:
    content = message(STANDARD, graph((5, message((8, "location"), (13, message((1, "offset"), (2, "/etc/passwd")))))))
    assert checked_onnx(content, Path("model.onnx")) == "ai.onnx 17"


def test_operators_of_others_are_refused_by_name_but_for_those_the_file_defines() -> None:
    own = (25, message((1, "Twice"), (7, message((4, "Add"))), (10, "mine")))
    given = [STANDARD, operators("mine", 1), graph()]
    assert checked_onnx(message(*given, own), Path("m.onnx")) == "ai.onnx 17, mine 1"
    with pytest.raises(ModelError, match=r"m\.onnx needs operators of 'a\.b', 'mine', which are not of the ONNX"):
        checked_onnx(message(operators("mine", 1), operators("a.b", 1), graph()), Path("m.onnx"))
    inside = (25, message((1, "Twice"), (9, operators("com.other", 1)[1]), (10, "mine")))
    with pytest.raises(ModelError, match=r"operators of 'com\.other', which"):
        checked_onnx(message(*given, inside), Path("m.onnx"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        message(STANDARD),  # no graph
        message(graph()),  # no operators
        message(STANDARD, graph())[:-1],
        message(STANDARD, graph()) + bytes([0x3B]),  # groups are of an older form
        message(STANDARD, graph()) + whole(2) + b"\0",  # no field has the number 0
        message(STANDARD, graph()) + whole(1 << 3) + b"\xff" * 10 + b"\0",  # more than 64 bits
        message(STANDARD, graph()) + whole(1 << 3 | 1) + bytes(7),  # 7 of 8 bytes
        message(STANDARD, graph()) + whole(1 << 3 | 5) + bytes(3),
        message(STANDARD, graph((5, tensor("w.bin")[:-3]))),
    ],
)
def test_what_is_no_whole_file_says_so(content: bytes) -> None:
    with pytest.raises(ModelError, match="is no whole ONNX file; export the model again"):
        checked_onnx(content, Path("model.onnx"))


def test_the_largest_whole_number_and_fields_of_all_lengths_are_read() -> None:
    more = whole(40 << 3) + whole(2**64 - 1) + whole(41 << 3 | 1) + bytes(8) + whole(42 << 3 | 5) + bytes(4)
    assert checked_onnx(more + message(STANDARD, graph()) + more, Path("model.onnx")) == "ai.onnx 17"


@pytest.mark.parametrize(("n_graphs", "found"), [(30, "absent.bin"), (60, None)])
def test_graphs_within_graphs_are_followed_as_deep_as_protocol_buffers_go(
    n_graphs: int, found: str | None, tmp_path: Path
) -> None:
    """Three messages for each of them, and at most 100 in all; deeper ones are refused, and not passed over."""
    inner = graph((5, tensor("absent.bin")))
    for _ in range(n_graphs):
        inner = graph(attribute(6, inner[1]))
    words = "refers to a file beside it" if found else "is no whole ONNX file"
    with pytest.raises(ModelError, match=words):
        checked_onnx(message(STANDARD, inner), tmp_path / "model.onnx")


# What a file holds, as it is looked into for records.


def floats(number: int, *values: float) -> bytes:
    """Numbers of 4 bytes, one field each."""
    return b"".join(whole(number << 3 | 5) + struct.pack("<f", value) for value in values)


def packed(*values: int) -> bytes:
    """Whole numbers one after the other; those below 0 as if they were of 64 bits."""
    return b"".join(whole(value % 2**64) for value in values)


def halves(*values: float) -> bytes:
    return np.array(values, "<f2").tobytes()


def first_tensor(*fields: tuple[int, int | bytes | str]) -> np.ndarray | list[str]:
    content = onnx_content(message(STANDARD, graph((5, message(*fields)))))
    return content["graph"]["initializer"][0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([(1, packed(2, 2)), (2, 1), (9, np.array([1.5, 2, 3, 4], "<f4").tobytes())], [[1.5, 2.0], [3.0, 4.0]]),
        ([(1, 2), (1, 1), (2, 11), (9, np.array([1.5, -2]).tobytes())], [[1.5], [-2.0]]),
        ([(1, 2), (2, 1), (4, np.array([0.5, 8], "<f4").tobytes())], [0.5, 8.0]),
        ([(1, 2), (2, 11), (10, np.array([0.5, 8]).tobytes())], [0.5, 8.0]),
        ([(1, 3), (2, 7), (7, packed(3, -4, 2**40))], [3, -4, 2**40]),
        ([(1, 2), (2, 6), (5, packed(7)), (5, packed(-1))], [7, -1]),
        ([(1, 2), (2, 13), (11, packed(7, 9))], [7, 9]),
        ([(1, 2), (2, 2), (9, bytes([3, 255]))], [3, 255]),
        ([(1, 2), (2, 9), (9, bytes([1, 0]))], [True, False]),
        ([(1, 2), (2, 10), (9, halves(1.5, -2))], [1.5, -2.0]),
        ([(1, 2), (2, 10), (5, packed(*np.array([1.5, -2], "<f2").view("<u2").tolist()))], [1.5, -2.0]),
        ([(1, 2), (2, 16), (9, np.array([0x3FC0, 0xC000], "<u2").tobytes())], [1.5, -2.0]),
        ([(1, 2), (2, 16), (5, packed(0x3FC0, 0xC000))], [1.5, -2.0]),
        ([(1, 1), (2, 14), (9, np.array([1.5 - 2j], "<c8").tobytes())], [[1.5, -2.0]]),
        ([(1, 1), (2, 14), (4, np.array([1.5, -2], "<f4").tobytes())], [[1.5, -2.0]]),
        ([(1, 1), (2, 15), (10, np.array([1.5, -2]).tobytes())], [[1.5, -2.0]]),
        ([(1, 3), (2, 17), (9, bytes([1, 2, 3]))], [1, 2, 3]),  # eight bits, whatever they mean
        ([(1, 2), (2, 8), (6, "north"), (6, "south")], ["north", "south"]),
    ],
)
def test_numbers_of_every_type_are_read_in_every_form(fields: list[tuple[int, int | bytes]], expected: list) -> None:
    found = first_tensor(*fields)
    assert (found if isinstance(found, list) else found.tolist()) == expected


def test_a_tensor_of_another_size_or_type_than_it_says_is_damaged() -> None:
    for fields in ([(1, 3), (2, 1), (9, bytes(8))], [(1, 1), (2, 99), (9, bytes(8))]):
        with pytest.raises(ValueError, match=r"type that is not known|cannot reshape"):
            first_tensor(*fields)


NODE = (
    message((4, "TreeEnsemble"), (6, "by Meier"))
    + message((5, message((1, "cuts")) + floats(7, 1.5, 2.5)), (5, message((1, "ids"), (8, packed(3, -1)))))
    + message((5, message((1, "one")) + floats(2, 0.5)), (5, message((1, "two"), (3, 2**64 - 2))))
    + message((5, message((1, "names"), (9, "a"), (9, "b"))), (5, message((1, "text"), (4, "c"))))
    + message((5, message((1, "odd name"), (5, message((1, 1), (2, 1), (9, struct.pack("<f", 4.5)))))))
    + message((5, message((1, "body"), (6, graph((10, "a remark"))[1]))))
)
TOLD = [(2, "maker"), (3, "1.2"), (4, "org.example"), (6, "remarks"), (14, message((1, "author"), (2, "Meier")))]


def test_what_stands_in_nodes_and_around_the_graph_is_found_by_its_name() -> None:
    content = onnx_content(message((1, 8), *TOLD, STANDARD, graph((1, NODE), (10, "of the graph"))))
    assert content["metadata"] == ["maker", "1.2", "org.example", "remarks", "author", "Meier"]
    assert content["graph"]["doc_string"] == ["of the graph"]
    (node,) = content["graph"]["node"]
    assert node["doc_string"] == ["by Meier"]
    assert (node["cuts"].tolist(), node["one"].tolist()) == ([1.5, 2.5], [0.5])
    assert (node["ids"].tolist(), node["two"].tolist()) == ([3, -1], [-2])
    assert (node["names"], node["text"]) == (["a", "b"], ["c"])
    (body,) = node["body"]
    assert body["doc_string"] == ["a remark"]
    ((odd,),) = [value for name, value in node.items() if name.startswith("[")]
    assert odd.tolist() == [4.5]


def test_a_bare_file_has_neither_maker_nor_remarks_and_the_same_numbers() -> None:
    kept, numbers = message((1, "x"), (2, 1)), message((1, 1), (2, 1), (9, struct.pack("<f", 4.5)))
    inner = graph((1, NODE), (5, numbers), (10, "note"), (11, kept))
    full = message((1, 8), *TOLD, (20, message((1, b""))), STANDARD, inner)
    bare = bare_onnx(full)
    for lost in (b"maker", b"1.2", b"remarks", b"author", b"Meier", b"note"):
        assert lost in full
        assert lost not in bare
    content = onnx_content(bare)
    assert content["metadata"] == ["org.example"]
    (node,) = content["graph"]["node"]
    assert "doc_string" not in node
    assert node["cuts"].tolist() == [1.5, 2.5]
    assert content["graph"]["initializer"][0].tolist() == [4.5]
    assert kept in bare
    assert bare_onnx(bare) == bare
