"""Print ``docs/dependencies.md``: what leakgauge depends on, under which licence and what for.

Names come from ``pyproject.toml`` and licences from what is installed; what each is for is said here.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, files, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"

USES = {
    "catboost": "files of its models, in tests",
    "cloudpickle": "sends learners and functions to worker processes",
    "coverage": "which tests run which lines, for tests of the tests",
    "cryptography": "signs runs and verifies signatures (Ed25519)",
    "dask": "trains on a cluster",
    "distributed": "trains on a cluster",
    "dp-accounting": "epsilon of DP-SGD",
    "furo": "the looks of the documentation site",
    "hatchling": "builds the wheel, and is tested for it",
    "hypothesis": "tests on many inputs",
    "import-linter": "checks that imports point downwards",
    "ipykernel": "executes notebooks in tests",
    "jinja2": "the HTML report",
    "joblib": "worker processes",
    "jsonschema": "checks documents against their schemas in tests",
    "lightgbm": "files of its models, in tests",
    "matplotlib": "pictures in notebooks",
    "mypy": "checks types",
    "myst-parser": "the pages of the documentation site",
    "narwhals": "tables of pandas, Polars and Arrow alike",
    "nbclient": "executes notebooks in tests",
    "nbformat": "reads notebooks in tests",
    "numpy": "arrays",
    "onnxruntime": "answers of ONNX files, in tests",
    "ortools": "solves for training records of forests",
    "pandas": "data frames of results",
    "pillow": "reads JPEG images",
    "playwright": "looks at the report in a browser in tests",
    "polars": "tables in tests",
    "pyarrow": "reads Parquet, Arrow and CSV files",
    "pydantic": "checks TOML files and documents",
    "pytest": "runs the tests",
    "pytest-timeout": "ends tests that hang",
    "pytest-xdist": "runs tests side by side",
    "pyyaml": "reads YAML in tests",
    "rich": "text and tables on terminals",
    "ruff": "checks and formats the code",
    "safetensors": "weights of PyTorch modules without pickle",
    "scikit-learn": "models, preprocessing and small data sets",
    "scipy": "distributions, solvers and sparse matrices",
    "skl2onnx": "makes ONNX files in tests",
    "skops": "model files without pickle",
    "sphinx": "the documentation site",
    "statsmodels": "checks statistics against it in tests",
    "threadpoolctl": "one thread of linear algebra for each worker",
    "torch": "PyTorch modules, DP-SGD, training on accelerators",
    "typer": "the command line",
    "vadersentiment": "labels of the Enron e-mails",
    "xgboost-cpu": "files of XGBoost's models, in tests",
}

EXTRAS = {
    "sklearn-io": "model files of scikit-learn that open without pickle (`.skops`)",
    "images": "data sets whose images are stored as JPEG",
    "torch": "models that are PyTorch modules, and their weights as files",
    "dask": "training on a Dask cluster (`--dask ADDRESS`)",
    "dp": "DP-SGD as a defence, with its accounting",
    "reconstruction": "`leakgauge reconstruct` on forests",
    "signing": "signed runs (`leakgauge verify`)",
    "sentiment": "sentiment labels of the Enron e-mails",
    "notebook": "data frames and pictures of results in notebooks",
    "docs": "building the documentation site",
    "dev": "the tests and checks of this repository",
}

HEAD = """\
What leakgauge depends on, as `pyproject.toml` says, with the licences that the packages state themselves. This page and
a bill of materials (CycloneDX, `dist/leakgauge.cdx.json`) are written by"""

LICENCES = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD-3-Clause": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Historical Permission Notice and Disclaimer (HPND)": "HPND",
}
"""Names of classifiers and of free text, as SPDX has them where it can be told."""


def licence(name: str) -> str:
    """Of an installed package: its SPDX expression, else its classifiers or its free text, else what its file says.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    told = metadata(name)
    if told["License-Expression"]:
        return told["License-Expression"]
    classified = [one.split(" :: ")[-1] for one in told.get_all("Classifier", []) if one.startswith("License :: ")]
    classified = [one for one in classified if "approved" not in one.lower()]
    text = (told["License"] or "").strip().splitlines()
    short = text[:1] if text and len(text[0]) < 40 else []
    precise = [one for one in classified if one != "BSD License"]
    return " and ".join(LICENCES.get(one, one) for one in precise or short or classified or first_lines(name))


def first_lines(name: str) -> list[str]:
    """What a licence file that came with a package calls itself."""
    texts = (path.read_text() for path in files(name) or () if path.stem.upper() in ("LICENSE", "LICENCE", "COPYING"))
    return [text.strip().splitlines()[0].removesuffix("(MIT)").strip() for text in texts][:1]


def brought(names: Iterable[str]) -> list[str]:
    """What these need by themselves, and what that needs: the names of all, without the first."""
    given = {canonicalize_name(name) for name in names}
    known, left = set(given), sorted(given)
    while left:
        for line in requires(left.pop()) or ():
            need = Requirement(line)
            name = canonicalize_name(need.name)
            if name not in known and (need.marker is None or need.marker.evaluate({"extra": ""})):
                known.add(name)
                left.append(name)
    return sorted(known - given)


def rows(lines: Iterable[str]) -> list[str]:
    """A line of the table for each requirement; of other extras of ours nothing is said twice."""
    names = [canonicalize_name(Requirement(line).name) for line in lines]
    return [f"| {name} | {licence(name)} | {USES[name]} |" for name in names if name != "leakgauge"]


def page() -> str:
    """The page, in Markdown."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    core, extras = project["dependencies"], project["optional-dependencies"]
    head = ["| package | licence | what for |", "|---|---|---|"]
    parts = [
        "# Dependencies",
        HEAD,
        "    sh scripts/sbom",
        "## Always installed",
        "\n".join([*head, *rows(core)]),
        "These bring with them: "
        + ", ".join(f"{name} ({licence(name)})" for name in brought(Requirement(line).name for line in core))
        + ".",
    ]
    for extra, lines in extras.items():
        also = [one for line in lines if (own := Requirement(line)).name == "leakgauge" for one in sorted(own.extras)]
        said = f"For {EXTRAS[extra]}." + (f" With the extras {', '.join(also)}." if also else "")
        parts += [f"## Extra `{extra}`", said, "\n".join([*head, *rows(lines)])]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    try:
        sys.stdout.write(page())
    except PackageNotFoundError as error:
        sys.exit(f"{error}; install it, so that its licence can be read (sh scripts/sbom does)")
