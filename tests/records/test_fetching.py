"""Finding, checking and fetching files, against a small server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from leakgauge.errors import DataError
from leakgauge.records.datasets import _catalogue, _files, load
from leakgauge.records.datasets._files import SourceFile, StoredForm, cache_folder, obtain, unpacked

BODY = b"race,age\nwhite,1\n" * 1000


@dataclass
class Server:
    """What it answers per path: bytes, an error status, or a redirect; `cut` answers break off half way."""

    address: str = ""
    answers: dict[str, bytes | int | str] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.lstrip("/")
            state.asked.append(path)
            answer = state.answers.get(path, 404)
            if isinstance(answer, int):
                self.send_error(answer)
                return
            self.send_response(302 if isinstance(answer, str) else 200)
            if isinstance(answer, str):
                self.send_header("Location", answer)
                self.end_headers()
                return
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2] if path in state.cut else answer)

        def log_message(self, *args):
            pass

    monkeypatch.setenv("no_proxy", "*")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield state
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, and no folder of data sets."""
    monkeypatch.delenv("LEAKGAUGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "leakgauge"


@dataclass(frozen=True)
class Text:
    """Content whose digest is that of its bytes."""

    content: bytes

    def digest(self) -> str:
        return sha(self.content)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def joined(paths) -> Text:
    return Text(b"".join(unpacked(path, 1 << 20) for path in paths))


def form(*files: SourceFile, digest: str | None = None) -> StoredForm:
    return StoredForm(files, joined, digest)


def at(server: Server, name: str = "set/a.csv", **changes) -> SourceFile:
    file = SourceFile(name, sha(BODY), url=server.url(Path(name).name), max_bytes=1 << 20)
    return replace(file, **changes)


def get(*forms: StoredForm, path: Path | None = None) -> bytes:
    return obtain("a-set", forms, path=path, progress=False).content.content


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refuses(match: str, call) -> str:
    with pytest.raises(DataError, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_fetched_is_kept_for_the_owner_only_and_not_fetched_again(server, cache):
    server.answers["a.csv"] = BODY
    assert get(form(at(server))) == BODY
    assert files_in(cache) == ["set/a.csv"]
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache / "set").stat().st_mode) == 0o700
    assert stat.S_IMODE((cache / "set/a.csv").stat().st_mode) == 0o600
    assert get(form(at(server))) == BODY
    assert server.asked == ["a.csv"]


def test_several_files_are_kept_together_or_not_at_all(server, cache):
    server.answers["a.csv"] = BODY
    both = form(at(server), at(server, "set/b.csv"))
    refuses("b.csv answered 404 Not Found", lambda: get(both))
    assert files_in(cache) == []
    server.answers["b.csv"] = BODY
    assert get(both) == 2 * BODY
    assert files_in(cache) == ["set/a.csv", "set/b.csv"]


def test_not_found_anywhere_says_where_and_what_to_do(server, cache, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("LEAKGAUGE_DATA", str(tmp_path / "mine"))
    message = refuses("404 Not Found", lambda: get(form(SourceFile("set/a.csv.gz", "0")), form(at(server))))
    for part in (
        "data set 'a-set' was not found: looked for set/a.csv.gz or set/a.csv in",
        str(tmp_path / "mine"),
        str(cache),
        f"fetch by hand {server.url('a.csv')} as set/a.csv",
        "set LEAKGAUGE_DATA",
    ):
        assert part in message
    assert files_in(cache) == []


def test_a_cut_download_leaves_no_litter_and_the_next_try_works(server, cache):
    server.answers["a.csv"] = BODY
    server.cut.add("a.csv")
    refuses(rf"broke off after {len(BODY) // 2} of {len(BODY)} bytes", lambda: get(form(at(server))))
    assert files_in(cache) == []
    server.cut.clear()
    assert get(form(at(server))) == BODY
    assert files_in(cache) == ["set/a.csv"]


def test_a_wrong_checksum_names_both_and_keeps_nothing(server, cache):
    server.answers["a.csv"] = b"something else"
    refuses(
        f"what {server.url('a.csv')} sent has the checksum .* {sha(b'something else')}, expected {sha(BODY)}",
        lambda: get(form(at(server))),
    )
    assert files_in(cache) == []


def test_where_the_files_sum_is_unknown_the_contents_must_be_right(server, cache):
    unknown = at(server, sha256=None)
    server.answers["a.csv"] = BODY
    assert get(form(unknown, digest=sha(BODY))) == BODY
    (cache / "set/a.csv").unlink()
    server.answers["a.csv"] = b"something else"
    refuses(
        f"the content of {server.url('a.csv')} has the checksum .* {sha(b'something else')}, expected {sha(BODY)}",
        lambda: get(form(unknown, digest=sha(BODY))),
    )
    assert files_in(cache) == []
    (cache / "set/a.csv").write_bytes(b"changed later")
    refuses(f"the content of {cache / 'set/a.csv'} has the checksum", lambda: get(form(unknown, digest=sha(BODY))))


def test_a_form_without_any_checksum_is_a_mistake_of_ours(server):
    server.answers["a.csv"] = BODY
    with pytest.raises(AssertionError, match="needs the digest of its content"):
        get(form(at(server, sha256=None)))


def test_a_damaged_cached_file_is_refused_not_replaced(server, cache):
    server.answers["a.csv"] = BODY
    get(form(at(server)))
    (cache / "set/a.csv").write_bytes(BODY[:-1])
    message = refuses("delete it and fetch it again", lambda: get(form(at(server))))
    assert str(cache / "set/a.csv") in message
    assert sha(BODY) in message
    assert sha(BODY[:-1]) in message
    assert server.asked == ["a.csv"]


def test_a_packed_file_is_checked_by_what_it_holds(server):
    server.answers["a.csv"] = gzip.compress(BODY, mtime=12345)
    assert get(form(at(server, unpacked=True))) == BODY
    server.answers["b.csv"] = b"<html>not found</html>"
    refuses(
        "what .*b.csv sent cannot be read .BadGzipFile.",
        lambda: get(form(at(server, "set/b.csv", unpacked=True))),
    )


def test_what_cannot_be_parsed_is_named_by_its_address(server, cache):
    def fails(paths):
        raise KeyError("features")

    server.answers["a.csv"] = BODY
    broken = StoredForm((at(server, sha256=None),), fails, digest="0")
    refuses(rf"{server.url('a.csv')} cannot be parsed \(KeyError\)", lambda: get(broken))
    server.answers["b.csv"] = gzip.compress(BODY)[:-9]
    cut = form(at(server, "set/b.csv", sha256=None), digest="0")
    message = refuses("b.csv cannot be unpacked", lambda: get(cut))
    assert ".part-" not in message
    assert files_in(cache) == []


def test_a_download_that_is_too_long_is_stopped(server, cache):
    server.answers["a.csv"] = BODY
    refuses("sends more than the 100 bytes", lambda: get(form(at(server, max_bytes=100))))
    assert files_in(cache) == []


def test_redirects_are_followed_but_not_to_unsafe_places(server):
    server.answers.update({"a.csv": server.url("b.csv"), "b.csv": BODY})
    assert get(form(at(server))) == BODY
    server.answers["c.csv"] = "http://example.org/c.csv"
    refuses("example.org/c.csv is not fetched, since only https is safe", lambda: get(form(at(server, "set/c.csv"))))


def test_only_https_is_fetched(server):
    refuses("only https is safe", lambda: get(form(at(server, url="http://example.org/a.csv"))))
    refuses("only https is safe", lambda: get(form(at(server, url="file:///etc/hosts"))))


def test_an_unreachable_home(server, cache):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refuses("could not be reached", lambda: get(form(at(server, url=f"http://127.0.0.1:{port}/a.csv"))))
    assert files_in(cache) == []


def test_a_connection_that_goes_silent(server, cache, monkeypatch):
    def silent(*args):
        raise TimeoutError("timed out")

    server.answers["a.csv"] = BODY
    monkeypatch.setattr(_files, "_copy", silent)
    refuses(r"the download of .*a.csv broke off \(timed out\)", lambda: get(form(at(server))))
    assert files_in(cache) == []


def test_a_given_folder_is_looked_at_alone(server, tmp_path):
    server.answers["a.csv"] = BODY
    refuses("was not found: looked for set/a.csv in", lambda: get(form(at(server)), path=tmp_path))
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a.csv").write_bytes(BODY)
    assert get(form(at(server)), path=tmp_path) == BODY
    assert server.asked == []


def test_the_folder_of_the_variable_comes_before_the_cache(server, cache, tmp_path, monkeypatch):
    for folder, body in ((tmp_path / "mine", b"mine"), (cache, b"cached")):
        (folder / "set").mkdir(parents=True)
        (folder / "set/a.csv").write_bytes(body)
    monkeypatch.setenv("LEAKGAUGE_DATA", str(tmp_path / "mine"))
    refuses(sha(b"mine"), lambda: get(form(at(server))))


def test_folders_must_exist(server, tmp_path, monkeypatch):
    refuses("none, named by path, is not a folder", lambda: get(form(at(server)), path=tmp_path / "none"))
    monkeypatch.setenv("LEAKGAUGE_DATA", str(tmp_path / "none"))
    refuses("named by the variable LEAKGAUGE_DATA, is not a folder", lambda: get(form(at(server))))


def test_a_cache_that_cannot_be_made(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    refuses("cannot be made .*; set XDG_CACHE_HOME", lambda: get(form(at(server))))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "leakgauge"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG specification says to ignore relative paths
    assert cache_folder() == tmp_path / ".cache" / "leakgauge"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("wanted", "ci", "drawn"),
    [
        (True, "", True),
        pytest.param(False, "", False, marks=pytest.mark.slow),
        pytest.param(True, "true", False, marks=pytest.mark.slow),
    ],
)
def test_progress_is_drawn_on_a_terminal_only(server, monkeypatch, capsys, wanted, ci, drawn):
    server.answers["a.csv"] = BODY
    monkeypatch.setenv("CI", ci)
    obtain("a-set", [form(at(server, "none/a.csv"))], path=None, progress=True)
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    obtain("a-set", [form(at(server))], path=None, progress=wanted)
    assert ("fetching set" in terminal.getvalue()) == drawn


def test_long_files_are_not_unpacked(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(10_000)))
    assert len(unpacked(tmp_path / "a.gz", 10_000)) == 10_000
    refuses("unpacks to more than 9999 bytes", lambda: unpacked(tmp_path / "a.gz", 9_999))


def rehome(monkeypatch, server: Server, name: str, contents: list[bytes]) -> None:
    """Let the home of a data set be the server, with those files."""
    entry = _catalogue.ENTRIES[name]
    forms = []
    for old in entry.forms:
        if old.can_be_fetched:
            files = tuple(replace(file, url=server.url(Path(file.name).name)) for file in old.files)
            forms.append(replace(old, files=files))
            for file, content in zip(files, contents, strict=True):
                server.answers[Path(file.name).name] = content
        else:
            forms.append(old)
    monkeypatch.setitem(_catalogue.ENTRIES, name, replace(entry, forms=tuple(forms)))


def census_originals(folder: Path) -> list[bytes]:
    files = []
    for part in ("train", "test"):
        text = unpacked(folder / f"census_income_kdd/census_income_kdd_{part}.csv.xz", 1 << 28)
        files.append(gzip.compress(text.partition(b"\n")[2].replace(b",", b", "), compresslevel=1))
    return files


def location_originals(folder: Path) -> list[bytes]:
    with np.load(folder / "location30/location30.npz") as archive:
        features, labels = archive["features"], archive["labels"]
    lines = [f'"{label}",' + ",".join(map(str, row)) for label, row in zip(labels, features, strict=True)]
    return [tar({"bangkok": "\n".join(lines).encode() + b"\n"})]


def mnist_originals(folder: Path) -> list[bytes]:
    with np.load(folder / "mnist/mnist.npz") as archive:
        arrays = [archive[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    return [gzip.compress(idx(array), compresslevel=1) for array in arrays]


def acs_originals(folder: Path) -> list[bytes]:
    lines = unpacked(folder / "acs_pums/acsincome_2018_35states.csv.xz", 1 << 28).decode().splitlines()
    states: dict[str, list[str]] = {}
    for line in lines[1:]:
        states.setdefault(line[:2], []).append(line[3:])
    header = lines[0].removeprefix("STATE,")
    return ["\n".join([header, *states[name], ""]).encode() for name in sorted(states)]


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def tar(members: dict[str, bytes]) -> bytes:
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def unzipped(folder: Path, *names: str) -> list[bytes]:
    return [unpacked(folder / name, 1 << 28) for name in names]


ORIGINALS = {
    "adult": lambda folder: unzipped(folder, "adult/adult.data.gz", "adult/adult.test.gz"),
    "iwpc-warfarin": lambda folder: unzipped(folder, "iwpc_warfarin/iwpc_scaled.csv.gz"),
    "eyedata": lambda folder: unzipped(folder, "eyedata/eyedata.csv.gz"),
    "location30": location_originals,
    "mnist": mnist_originals,
    "census-income": census_originals,
    "acs-income": acs_originals,
}


@pytest.mark.parametrize(
    "name",
    [
        "adult",
        "iwpc-warfarin",
        "eyedata",
        "location30",
        pytest.param("mnist", marks=pytest.mark.slow),
        pytest.param("census-income", marks=pytest.mark.slow),
        pytest.param("acs-income", marks=pytest.mark.slow),
    ],
)
def test_the_original_files_give_the_same_records_as_the_prepared_ones(monkeypatch, server, data_folder, cache, name):
    rehome(monkeypatch, server, name, ORIGINALS[name](data_folder))
    fetched = load(name, progress=False)
    assert fetched.records.digest() == load(name, path=data_folder).records.digest()
    assert len(files_in(cache)) == len(server.asked)
    assert load(name).records.ids.tolist() == fetched.records.ids.tolist()
    assert len(server.asked) == len(files_in(cache))  # the second time nothing was fetched


def test_the_original_archives_of_enron_spam_are_read_in_order_without_the_missing_message(tmp_path):
    from leakgauge.records.datasets._text import Corpus, Message, read_archives

    first = {
        "enron1/spam/0002.b.spam.txt": b"buy caf\xe9",
        "enron1/ham/0001.a.ham.txt": b"hello",
        "enron1/Summary.txt": b"x",
    }
    fourth = {"./enron4/spam/3111.x.spam.txt": b"left out", "./enron4/spam/3112.x.spam.txt": b"kept"}
    paths = []
    for name, members in (("first", first), ("fourth", fourth)):
        paths.append(tmp_path / name)
        paths[-1].write_bytes(tar(members))
    expected = (
        Message("enron1", "0001.a.ham.txt", "ham", "hello"),
        Message("enron1", "0002.b.spam.txt", "spam", "buy café"),
        Message("enron4", "3112.x.spam.txt", "spam", "kept"),
    )
    corpus = read_archives(paths)
    assert corpus == Corpus(expected)
    assert corpus.digest() != Corpus(expected[:2]).digest()


@pytest.mark.slow
def test_enron_spam_from_its_original_archives(monkeypatch, server, data_folder):
    import json

    archives: dict[str, dict[str, bytes]] = {}
    for line in unpacked(data_folder / "enron_spam/enron_spam.jsonl.xz", 1 << 28).decode().split("\n")[:-1]:
        message = json.loads(line)
        name = f"{message['part']}/{message['label']}/{message['file']}"
        archives.setdefault(message["part"], {})[name] = message["text"].encode("latin-1")
    archives["enron4"]["enron4/spam/3111.2005-01-01.GP.spam.txt"] = b"the message that is missing"
    rehome(monkeypatch, server, "enron-spam", [tar(archives[f"enron{i}"]) for i in range(1, 7)])
    assert len(load("enron-spam", progress=False).records) == 33_715


def test_the_binary_archive_of_cifar10(monkeypatch, server):
    rng = np.random.default_rng(5)
    images, labels = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10
    rows = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(12, -1)], axis=1)
    names = ["data_batch_5", "data_batch_1", "test_batch", "data_batch_2", "data_batch_4", "data_batch_3"]
    order = {
        "data_batch_1": 0,
        "data_batch_2": 2,
        "data_batch_3": 4,
        "data_batch_4": 6,
        "data_batch_5": 8,
        "test_batch": 10,
    }
    members = {f"cifar-10-batches-bin/{n}.bin": rows[order[n] : order[n] + 2].tobytes() for n in names}
    packed = tar({"cifar-10-batches-bin/readme.html": b"x", **members})
    entry = _catalogue.ENTRIES["cifar10"]
    binary = replace(entry.forms[0], files=(replace(entry.forms[0].files[0], sha256=sha(packed)),))
    monkeypatch.setitem(_catalogue.ENTRIES, "cifar10", replace(entry, forms=(binary, *entry.forms[1:])))
    rehome(monkeypatch, server, "cifar10", [packed])
    records = load("cifar10", progress=False).records
    np.testing.assert_array_equal(records.features.reshape(12, 32, 32, 3), images)
    assert records.labels.tolist() == labels.tolist()
    assert records.schema.classes[:2] == ("airplane", "automobile")
    assert records.schema.names[3] == "pixel_0_1_red"


def purchase_archive(rows: list[str]) -> bytes:
    return tar({"dataset_purchase": "\n".join([*rows, ""]).encode()})


@pytest.fixture
def small_purchase(monkeypatch) -> list[str]:
    """Four rows of three columns and two classes, as if this were all of Purchase-100."""
    from leakgauge.records.datasets import _tabular

    rows = ["2,0,1,1", "1,1,0,0", "1,0,0,0", "2,1,1,1"]
    md5 = hashlib.md5("\n".join([*rows, ""]).encode()).hexdigest()
    monkeypatch.setattr(_tabular, "PURCHASE", _tabular.PublishedForm(4, 3, 2, md5))
    return rows


def test_the_archive_of_purchase100(monkeypatch, server, cache, small_purchase):
    rehome(monkeypatch, server, "purchase100", [purchase_archive(small_purchase)])
    dataset = load("purchase100", progress=False)
    records = dataset.records
    assert records.features.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert records.schema.decode_labels(records.labels).tolist() == [2, 1, 1, 2]
    assert records.schema.names == ("bought_0", "bought_1", "bought_2")
    assert dataset.description.endswith("rows, columns, values and classes were checked.")
    assert files_in(cache) == ["purchase100/dataset_purchase.tgz"]
    assert load("purchase100").records.digest() == records.digest()
    assert server.asked == ["dataset_purchase.tgz"]


def test_another_version_of_purchase100_is_loaded_with_a_warning(monkeypatch, server, small_purchase):
    rehome(monkeypatch, server, "purchase100", [purchase_archive([*small_purchase[:3], "2,1,1,0"])])
    with pytest.warns(UserWarning, match=r"has the published form, but the checksum \(md5\) \w+, not \w+ as others"):
        assert load("purchase100", progress=False).records.features[3].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[:3], "holds 3 rows of 2 classes with values up to 1, expected 4 rows of 0 and 1"),
        (lambda rows: [*rows[:3], "2,1,2,1"], "with values up to 2"),
        (lambda rows: ["1,0,1,1", *rows[1:3], "1,1,1,1"], "4 rows of 1 classes"),
        (lambda rows: ["3,0,1,1", *rows[1:]], "4 rows of 3 classes"),
        (lambda rows: [*rows[:3], "2,1,1"], "cannot be read .ArrowInvalid."),
        (lambda rows: [*rows[:3], "2,1,,1"], "cannot be read .ArrowInvalid."),
        (lambda rows: [], "cannot be read .ArrowInvalid."),
    ],
)
def test_what_is_not_purchase100_is_refused(monkeypatch, server, cache, small_purchase, change, said):
    rehome(monkeypatch, server, "purchase100", [purchase_archive(change(small_purchase))])
    message = refuses(said, lambda: load("purchase100", progress=False))
    assert message.startswith(server.url("dataset_purchase.tgz"))
    assert files_in(cache) == []


def test_errors_of_archives(tmp_path):
    from leakgauge.records.datasets import _images, _tabular, _text

    for read in (_images.read_cifar10_binary, _text.read_archives, _tabular.read_location_archive):
        (tmp_path / "a").write_bytes(b"no archive")
        refuses("cannot be read as a tar archive", lambda read=read: read([tmp_path / "a"]))
    (tmp_path / "a").write_bytes(tar({"other": b""}))
    refuses("holds no file 'bangkok'", lambda: _tabular.read_location_archive([tmp_path / "a"]))
    refuses("holds no file 'dataset_purchase'", lambda: _tabular.read_purchase_archive([tmp_path / "a"]))
    refuses("lacks data_batch_1.bin, data_batch_2.bin", lambda: _images.read_cifar10_binary([tmp_path / "a"]))
    (tmp_path / "b").write_bytes(idx(np.zeros((2, 2), np.uint8))[:-1])
    refuses("is not an IDX file of bytes", lambda: _images.read_mnist_originals([tmp_path / "b"] * 4))
    (tmp_path / "c").write_bytes(b"race,age\nwhite,old\n")
    refuses("the table cannot be read .ArrowInvalid.", lambda: _tabular.read_warfarin([tmp_path / "c"]))


def test_no_archive_member_is_written_to_disk(tmp_path):
    from leakgauge.records.datasets._tabular import tar_member

    (tmp_path / "inner").mkdir()
    archive = tmp_path / "inner" / "a.tgz"
    archive.write_bytes(tar({"../bangkok": b"1,0"}))
    before = {path for path, _, _ in os.walk(tmp_path)}, files_in(tmp_path)
    assert tar_member(archive, "bangkok") == b"1,0"
    assert ({path for path, _, _ in os.walk(tmp_path)}, files_in(tmp_path)) == before
