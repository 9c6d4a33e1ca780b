"""What pyproject.toml declares is what the pages, the recipe for conda and the source distribution say."""

import importlib.util
import re
import tarfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from leakgauge import __version__

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
EXTRAS = PROJECT["optional-dependencies"]


def sections():
    """The page of dependencies by heading."""
    parts = re.split(r"^## ", (ROOT / "docs" / "dependencies.md").read_text(), flags=re.M)
    return {part.splitlines()[0]: part for part in parts[1:]}


def listed(section):
    return re.findall(r"^\| ([\w.-]+) \| ([^|]+) \| ([^|]+) \|$", section, re.M)[1:]


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_every_dependency_is_on_the_page_with_its_licence_and_use(extra):
    """`sh scripts/sbom` writes the page anew."""
    lines = EXTRAS[extra] if extra else PROJECT["dependencies"]
    names = {canonicalize_name(Requirement(line).name) for line in lines} - {"leakgauge"}
    section = sections()[f"Extra `{extra}`" if extra else "Always installed"]
    assert {name for name, _, _ in listed(section)} == names
    assert all(licence.strip() and use.strip() for _, licence, use in listed(section))


def test_the_page_names_no_other_extra():
    assert list(sections()) == ["Always installed", *(f"Extra `{extra}`" for extra in EXTRAS)]


def test_the_page_is_what_the_script_writes():
    """Without the licences, which depend on the versions installed, and on whether all are."""
    spec = importlib.util.spec_from_file_location("dependencies", ROOT / "docs" / "dependencies.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for section in sections().values():
        assert all(module.USES[name] == use for name, _, use in listed(section))
    assert module.licence("numpy").startswith("BSD-3-Clause")
    assert "markupsafe" in module.brought(["Jinja2"])


def test_extras_are_told_by_what_they_are_for():
    assert set(re.findall(r"^\| `([\w-]+)` \| \S", (ROOT / "docs" / "install.md").read_text(), re.M)) == set(EXTRAS)


def test_the_recipe_for_conda_asks_for_the_same():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    run = recipe[recipe.index("  run:\n") : recipe.index("\ntests:")]
    assert re.findall(r"- (\S+) (>=\S+)", run) == [
        ("python", PROJECT["requires-python"]),
        *((one.name, str(one.specifier)) for one in map(Requirement, PROJECT["dependencies"])),
    ]
    assert f'version: "{__version__}"' in recipe
    assert f"- {CONFIG['build-system']['requires'][0].replace('>=', ' >=')}\n" in recipe


def test_wheels_are_tested_by_a_file_that_is_there():
    command = CONFIG["tool"]["cibuildwheel"]["test-command"]
    assert (ROOT / command.removeprefix("python {project}/")).is_file()
    assert "cibuildwheel" in (ROOT / ".github" / "workflows" / "wheels.yml").read_text()


def test_a_source_distribution_holds_what_the_build_needs_and_nothing_else(tmp_path):
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="source distributions are built by hatchling")
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    others = {name for name in names if not name.startswith("src/leakgauge/")}
    assert others <= {".gitignore", "LICENSE", "PKG-INFO", "README.md", "hatch_build.py", "pyproject.toml"}
    assert {Path(name).suffix for name in names if name.startswith("src/")} <= {
        *(".py", ".cpp", ".hpp", ".html", ".css", ".js", ".typed", ".json", ".md", ".svg", ".toml"),
    }
