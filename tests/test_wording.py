"""Every sentence for people, held against words and turns that the field does not use.

Sentences come from three places: the string literals of the package (with ``{}`` for what is filled in), the documents
that reports are tested with, as every renderer writes them, and the pages and examples of the manual. With
``LEAKGAUGE_SENTENCES=path`` all of them are written into that file, sorted by where they come from, for a reader to go
through.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakgauge
from leakgauge.auditing import AuditResult, Document, ReleasedOutputs, Settings, audit
from leakgauge.auditing.advice import Outputs, Situation, advice, bounding, unbounded_queries, unmeasured_influence
from leakgauge.auditing.finding import Verdict
from leakgauge.records import Records, from_pair
from leakgauge.report import junit, markdown, render_html, statement

PACKAGE = Path(leakgauge.__file__).parent
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "examples").glob("*.*"))
TEMPLATES = sorted((PACKAGE / "report" / "templates").glob("*.html"))

BANNED = {
    r"\btold from\b|\btells? \w+ from (others|non)|\btelling \w+ apart|\btell (two|them) apart": "distinguish",
    r"\b(hidden|secret) column": "sensitive attribute",
    r"\bsecrets?\b (of|about) the training set": "target property",
    r"\bplants?\b|\bplanting\b|(?<![.:] )(?<![.])\bplanted\b(?! =)": "poisoned records",
    r"\bgames? (are |is |was |were )?won\b|\bwins? (half|games)": "attack accuracy",
    r"\bnamed? rightly\b|\bnames? .{0,40}\brightly\b|\bright in\b.*games": "predicted correctly for",
    r"\bstands? out\b|\bbeyond chance\b": "identified at FDR 5 %",
    r"\bguessing\b|\btoss": "chance level",
    r"\blaws?\b": "distribution",
    r"\bnobody\b|\bwhoever\b|\beven who\b|\bsomeone who\b|\bsomebody\b": "name the actor",
    r"\bheld against\b": "compared with",
    r"\bwithout end\b|\bfactor e\^": "unbounded, or the factor in words with the log ratio in brackets",
    r"\bhold together\b|\ball together\b": "simultaneous confidence",
    r"\bsolved? to the end\b|\bto its end\b": "converged",
    r"\bat first sight\b|\bsecond look\b": "first and second measurement",
    r"\bgives? away\b|\bgiven away\b|\bgiving away\b": "reveals, identifies",
    r"\bsurely\b|\bsurer\b|\blikelier\b": "with certainty, more confident, more probable",
    r"\beven the (lower|upper) end\b|\blies on both sides\b": "the number, its interval, the limit",
    r"\bas known to be outside\b|\brecords known to be outside\b": "known non-members",
    r"\bThey change no number\b": "Results do not depend on this number",
    r"\bdoes not make the audited model\b": "does not reproduce the audited model",
    r"\bstands? in the (training|way)": "is in",
    r"\bcries wolf\b|\brolls dice\b|\btossing a coin\b": "no riddles and no moral",
    r"\bis (no|none) (number|question|digit)\b|\bare no numbers\b|\bis no number\b": "is not a number",
    r"\bmove[sd]? (the|its|their|a|theirs)\b.{0,20}\b(predict|answer|model)": "change",
    r"\bwas not shown\.|^[Tt]hat .* was not shown": "no difference was found, with its interval",
    r"\bputs? .{0,20}questions?\b|\bquestions to the model\b|\bis answered with\b": "queries; receives",
    r"(?<!“)\bwas shown to\b.{0,30}\bout\b": "identified",
    r"\bhangs? (on|together)\b": "depends on, is dependent",
    r"\bplain loop\b": "refitting each model",
    r"\bsolver floor": "numerical floor",
    r"\bsaid to be\b": "what the paper states",
    r"\bpromise[sd]?\b": "guarantee",
    r"\bfor want of\b": "for lack of",
    r"\bgo(es)? on where\b": "continues where",
    r"\bbelieve[sd]?\b": "trusted",
    r"\bpeople outside\b": "known non-members",
    r"\bread off the (model|tree)\b": "inferred, estimated from the model",
    r"\bsecrets? (of|that|kept)\b": "target property, confidential",
    r"\bkept nowhere\b": "not stored",
}
"""Patterns that no sentence may hold, and what is written in their place."""


def module(name: str) -> ModuleType:
    path = Path(__file__).parent / "report" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def literals(path: Path) -> Iterator[tuple[str, str]]:
    """The strings of a module that are sentences or parts of some, with their places; docstrings are left out."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in docstrings:
            continue
        text = None
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            stack += [part for part in node.values if not isinstance(part, ast.Constant)]
        else:
            stack += ast.iter_child_nodes(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if text is not None and not text.startswith("<") and re.search(r"[A-Za-z]{2,}.* .*[A-Za-z]{2,}", text):
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


def commands() -> Iterator[tuple[str, str]]:
    """The help of each command is the docstring of its function."""
    for path in sorted((PACKAGE / "cli").glob("[a-z]*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"cli/{path.name}:{node.lineno}", ast.get_docstring(node) or ""


def of_source() -> list[tuple[str, str]]:
    found = [one for path in sorted(PACKAGE.rglob("*.py")) for one in literals(path)]
    templates = [(f"report/templates/{path.name}", text) for path in TEMPLATES for text in lines_of(path.read_text())]
    return [*found, *commands(), *templates]


def of_pages() -> Iterator[tuple[str, str]]:
    """The paragraphs, list items and table rows of the manual and of the examples, each in one line."""
    for path in PAGES:
        text = (
            path.read_text("utf-8")
            if path.suffix == ".md"
            else re.sub(r"^# ?", "", path.read_text("utf-8"), flags=re.M)
        )
        for block in re.split(r"\n\s*\n|\n(?=\s*[|*-] )", text):
            yield path.name, " ".join(block.split())


def lines_of(html: str) -> list[str]:
    """The texts of a page, without tags, styles and scripts."""
    bare = re.sub(r"<(style|script|svg).*?</\1>|{%.*?%}", " ", html, flags=re.S)
    pieces = re.split(r"</?(?:p|li|td|th|dd|dt|h\d|caption|figcaption|summary|div|tr|title|b|span)\b[^>]*>", bare)
    texts = [" ".join(unescape(re.sub(r"<[^>]+>", " ", piece)).split()) for piece in pieces]
    return [text for text in texts if re.search(r"[A-Za-z]{3,}.* .*[A-Za-z]{3,}", text)]


def of_documents() -> list[tuple[str, str]]:
    """What reports, tables and pipelines say about audits of every kind, made by hand and measured."""
    documents = module("documents")
    made = {name: getattr(documents, name)() for name in ("failing", "passing", "undecided", "regression", "telling")}
    made |= {"tailed": documents.tailed(), **measured()}
    found: list[tuple[str, str]] = []
    for name, result in made.items():
        one, document = result, Document.of(name, [result])
        for finding in one.findings:
            texts = (finding.measure, finding.reason, finding.remedy)
            found += [(f"{name}, {finding.measure}", text) for text in texts if text]
        found += [(f"{name}, {part}", text) for part, text in statement.statement(one, "0")]
        found += [(f"{name}, rule", text) for text in statement.rule(one)]
        found += [(f"{name}, note", text) for text in (*one.notes, *one.not_tested)]
        found += [(f"{name}, page", text) for text in lines_of(render_html(document))]
        found += [(f"{name}, Markdown", text) for text in markdown(document).splitlines() if " " in text]
        found += [(f"{name}, JUnit", text) for text in re.findall(r'message="([^"]*)"', junit(document))]
    return found


def measured() -> dict[str, AuditResult]:
    """Small audits that take different ways: classifiers, labels, a regressor, a model alone, shared records."""
    rng = np.random.default_rng(0)

    def pair(*, regression: bool = False, same: bool = False) -> dict[str, Records]:
        tables = []
        for _ in range(2):
            x = rng.normal(size=(60, 2))
            y = x[:, 0] + rng.normal(size=60)
            tables.append(
                pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y if regression else np.where(y > 0, "u", "v")})
            )
        train, holdout = from_pair(tables[0], tables[0] if same else tables[1], target="y")
        return {"train": train, "holdout": holdout}

    few = Settings(n_shadows=8)
    both = pair()
    train = both["train"]
    known = GaussianNB().fit(
        pd.DataFrame(train.features, columns=["a", "b"]), np.array(train.schema.classes)[train.labels]
    )
    remembers = DecisionTreeClassifier(random_state=0)
    return {
        "naive Bayes": audit(GaussianNB(), **both, settings=few),
        "logistic regression": audit(LogisticRegression(C=100.0), **both, settings=few),
        "labels": audit(remembers, **both, settings=replace(few, released=ReleasedOutputs.LABELS)),
        "a model alone": audit(known, **both, settings=few),
        "the same holdout": audit(remembers, **pair(same=True), settings=few),
        "regressor": audit(DecisionTreeRegressor(random_state=0), **pair(regression=True), settings=few),
    }


def of_advice() -> Iterator[tuple[str, str]]:
    """Every advice there is."""
    for outputs, dtp, largest, n_above in product(Outputs, (None, 1.0), (0.5, math.inf), (0, 3)):
        situation = Situation(outputs, dtp, False, 300, 300, n_above=n_above, largest=largest, largest_binned=0.4)
        for question in ("influence", "membership", "attributes", "properties"):
            yield f"advice, {question}", advice(question, Verdict.FAILS, situation)
            yield f"advice, {question}", advice(question, Verdict.CANNOT_TELL, situation)
        yield "advice, any query", unbounded_queries(situation, math.inf)
        yield "advice, any query", unbounded_queries(situation, 2.0)
        yield "advice, infinite", bounding(outputs)
    for learner, was_measured in product((False, True), repeat=2):
        yield "advice, not measured", unmeasured_influence(learner=learner, measured=was_measured)


def test_no_sentence_holds_a_banned_word() -> None:
    """Each pattern is told with what to write instead."""
    sentences = [*of_source(), *of_pages(), *of_documents(), *of_advice()]
    if path := os.environ.get("LEAKGAUGE_SENTENCES"):
        Path(path).write_text("".join(f"{place}: {text}\n" for place, text in dict.fromkeys(sentences)), "utf-8")
    wrong = [
        f"{place}: {text!r} has {match.group(0)!r}; write: {instead}"
        for place, text in sentences
        for pattern, instead in BANNED.items()
        if (match := re.search(pattern, text))
    ]
    assert len(sentences) > 3000
    assert not wrong, f"{len(wrong)} sentences:\n" + "\n".join(wrong)


def test_the_words_of_before_are_found() -> None:
    """The patterns find sentences that reports once held, and no sentence that replaced them."""
    for before in (
        "a query other than the record itself was found whose answer changes by a factor e^364 without it",
        "of 284, none was shown to stand out beyond chance",
        "with the model “sex” is named rightly for 90 % of members and 57 % of others",
        "the learner does not make the audited model",
        "nothing was held against the rule",
        "secrets of training sets told from labels: said to be above 0.9",
    ):
        assert any(re.search(pattern, before) for pattern in BANNED), before
    after = "No training record was identified at FDR 5 %. With 285 holdout records, fewer than 40 cannot be detected."
    assert not any(re.search(pattern, after) for pattern in BANNED)
