"""An extra exists because a module imports what it brings, and whatever a module imports is brought by something."""

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = sorted(set(EXTRAS) - {"all", "docs", "peers", "test"})
# Distributions whose module has another name.
MODULES = {"scikit-learn": "sklearn", "vl-convert-python": "vl_convert", "array-api-compat": "array_api_compat"}
# They come with another package that is declared: jinja2 brings markupsafe, scikit-learn joblib, dask[distributed] it.
ALONG = {"markupsafe", "joblib", "distributed", "PIL"}
# Named in code that asks whether an array is of theirs; never needed.
ASKED = {"jax"}


@functools.cache
def imported(*folders):
    """The packages of others that Python files import, anywhere in them."""
    found = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


def modules(requirements):
    """The packages that requirements bring, by the name they are imported under."""
    names = [re.match(r"[\w.-]+", text)[0] for text in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names if name != "selfpaced"}


@pytest.mark.parametrize("extra", FOR_USERS)
def test_a_module_stands_behind_every_extra(extra):
    assert modules(EXTRAS[extra]) <= imported("src/selfpaced")


def test_the_core_imports_what_it_depends_on():
    assert modules(PROJECT["dependencies"]) <= imported("src/selfpaced")


def test_everything_imported_is_declared():
    declared = modules(PROJECT["dependencies"]).union(*(modules(EXTRAS[extra]) for extra in FOR_USERS))
    assert imported("src/selfpaced") - declared - {"selfpaced"} <= ALONG | ASKED


def test_the_peers_are_those_of_the_benchmarks():
    assert modules(EXTRAS["peers"]) <= imported("benchmarks")


def test_all_is_every_extra_for_users():
    (names,) = re.fullmatch(r"selfpaced\[(.+)\]", EXTRAS["all"][0]).groups()
    assert set(names.split(",")) == set(FOR_USERS)


def test_the_extra_for_tests_does_not_bring_the_documentation():
    assert "docs" not in re.fullmatch(r"selfpaced\[(.+)\]", EXTRAS["test"][0])[1].split(",")
    assert not modules(EXTRAS["docs"]) & modules(EXTRAS["test"])


def test_hints_name_extras_that_exist():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {name for names in re.findall(r"selfpaced\[([\w,]+)\]", text) for name in names.split(",")}
    assert named
    assert named <= set(EXTRAS)


def test_the_table_of_the_documentation_lists_every_extra():
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.*?) ?\|$", (ROOT / "docs/install.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(EXTRAS)
    for name, brings in rows:
        if name in FOR_USERS or name == "peers":
            wanted = sorted(re.match(r"[\w.-]+", text)[0] for text in EXTRAS[name])
            assert sorted(brings.split(", ")) == wanted, name
