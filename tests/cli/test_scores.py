"""Files of scores on the command line: a run folder like any other, and errors of one line that quote no cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PERSON, CLASS, SITE, MODEL = "zqMeier", "zqFabry", "zqKlinik", "zqNetz"
N = 60
AUDIT = '[[models]]\nkind = "scores"\npath = "scores.csv"\n{}[attacks]\ngroups = ["site"]\n[rule]\ndtp = "none"\n'
REFERENCES = 'references = "references.csv"\n'

Cli = Callable[..., tuple[int, str, str]]
Write = Callable[[str, str], Path]


def files() -> tuple[str, str]:
    """A table of probabilities about 60 people, and one of four reference models."""
    rng = np.random.default_rng(0)
    scores, references = ["id,member,label,site,p_well,p_ill"], ["id,model,member,p_well,p_ill"]
    halves = [np.arange(N) % 4 < 2, np.arange(N) % 8 < 4]
    for i in range(N):
        p = rng.random(5).round(3)
        scores.append(f"{PERSON}{i},{i % 2},{'well' if i % 3 else 'ill'},{SITE}{i % 2},{p[0]:.3f},{1 - p[0]:.3f}")
        for k, inside in enumerate([*halves, *(~half for half in halves)]):
            references.append(f"{PERSON}{i},{MODEL}{k},{int(inside[i])},{p[1 + k]:.3f},{1 - p[1 + k]:.3f}")
    return "\n".join(scores) + "\n", "\n".join(references) + "\n"


@pytest.mark.parametrize("references", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_run_folder_like_any_other(cli: Cli, write: Write, references: bool) -> None:
    scores, others = files()
    write("scores.csv", scores)
    write("references.csv", others)
    write("audit.toml", AUDIT.format(REFERENCES * references))
    explained, out, _ = cli("explain", "audit.toml")
    assert explained == 0
    assert re.search(r"audit: scores of \d+ training and \d+ holdout records", out)
    assert "Nothing is trained." in out
    code, out, err = cli("audit", "audit.toml", "--run", "run")
    assert code in (0, 1, 3), err
    assert "Only scores were given" in " ".join(out.split())
    document = json.loads(Path("run/result.json").read_text())
    assert ("lira" in {one["name"] for one in document["audits"][0]["attacks"]}) is references
    page = Path("run/report.html").read_text()
    assert "Only scores were given" in page
    assert "<dt>Columns</dt>" not in page, "there are none"
    for canary in (PERSON, MODEL):
        assert canary not in out + err + page + json.dumps(document)
    assert PERSON in Path("run/ids.csv").read_text()
    assert cli("gate", "run")[0] == code
    assert PERSON in cli("records", "run", "--show-ids")[1]
    assert cli("audit", "audit.toml", "--run", "run")[0] == code, "again, into the same folder"
    write("scores.csv", scores.replace("0.1", "0.2", 1))
    code, _, err = cli("audit", "audit.toml", "--run", "run")
    assert code == 2


def edited(old: str, new: str, n: int = -1) -> Callable[[str, str], tuple[str, str]]:
    return lambda scores, references: (scores.replace(old, new, n), references)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited("member", "membership"), ["scores.csv: there is no column 'member'", "'membership'"]),
        (
            edited(",well,", f",{CLASS},", 1),
            ["column 'label'", "1 of 60 rows name a class that has no column", "row 2"],
        ),
        (
            edited(f"{PERSON}7,", f"{PERSON}8,"),
            ["column 'id'", "id of a row before them", "must be unique", "'record'"],
        ),
        (edited("site", "town"), ["scores.csv: there is no column 'site'"]),
        (edited(",", ";"), ["scores.csv", "separated by semicolons, expected commas"]),
        (edited(",", "\t"), ["scores.csv", "separated by tabs, expected commas"]),
        (lambda s, r: (s.replace(",", ";").replace(".", ","), r), ["scores.csv", "semicolons", "decimal point"]),
        (lambda s, r: ("", r), ["scores.csv is empty", "expected a line of column names"]),
        (lambda s, r: (s.partition("\n")[0] + "\n", r), ["scores.csv has no rows"]),
        (lambda s, r: (re.sub(",0,(well|ill)", r",1,\1", s), r), ["all records are members", "was not trained on"]),
        (lambda s, r: (re.sub(",1,(well|ill)", r",0,\1", s), r), ["all records are non-members", "was trained on"]),
        (lambda s, r: (re.sub(",1,(well|ill)", rf",{CLASS},\1", s), r), ["column 'member' holds", "1 or true"]),
        (lambda s, r: (s.partition("\n")[2], r), ["scores.csv: there is no column"]),
        (lambda s, r: (s, r.rsplit("\n", 2)[0] + "\n"), ["references.csv: 1 of 4 reference models", "lacks 1", "add"]),
        (
            lambda s, r: (s, r.replace(f"{PERSON}7,", f"{CLASS},")),
            ["references.csv", "4 of 240 rows are about a record"],
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_quotes_no_cell(
    cli: Cli, write: Write, change: Callable[[str, str], tuple[str, str]], words: list[str]
) -> None:
    scores, references = change(*files())
    write("scores.csv", scores)
    write("references.csv", references)
    write("audit.toml", AUDIT.format(REFERENCES))
    code, out, err = cli("audit", "audit.toml", "--run", "run")
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    for word in words:
        assert word in err
    for canary in (PERSON, CLASS, SITE, MODEL):
        assert canary not in err


def test_a_table_named_on_the_command_line(cli: Cli, write: Write) -> None:
    write("scores.csv", files()[0])
    code, out, err = cli("audit", "scores.csv")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert 'kind = "scores"' in err
    assert PERSON not in err
