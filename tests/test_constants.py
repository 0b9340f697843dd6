"""Every numeric constant says where it comes from, and what it says is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import selfpaced

ROOT = Path(__file__).parent.parent
PACKAGE = Path(selfpaced.__file__).parent
#: Derived, the paper's, a guard against rounding, the price of more, looks, custom, or measured: a script and its part.
ORIGINS = re.compile(
    r"theory|mathematics|the paper|numerical safety|cost|display|convention|benchmarks/\w+\.py[ ,:(-]*\w"
)
#: Values that nobody has measured ("a choice"). This list may become shorter, not longer.
UNMEASURED = {
    "cli": {"CLASSES_OF_NUMBERS"},
    "clustering": {"FEW_LEFT_OUT"},
    "factorization": {
        *("HELD_OUT_ENTRIES", "FEW_ERRORS", "RIDGE_END", "RIDGE_RANK", "SMOOTHING", "SPARE", "RANK_FLOOR"),
    },
    "label_noise": {"CLASS_ROWS", "CONTRADICTED", "PSEUDO_COUNTS"},
    "linear": {
        *("ERROR_CORRELATION", "MIXED", "ROWS_PER_COEFFICIENT", "EXACT_SHARE", "LOOSE", "LEAST_ROWS", "RIDGES"),
        *("SMOOTHED", "PENALTIES", "PLENTY", "HALF_LOSSES", "PENALISED_PACES"),
    },
    "tables": {
        *("READABLE", "UNREADABLE_SHARE", "LEAK", "ENOUGH_ROWS", "TINY_CLASS", "SHORT_LABEL", "COUNTING_ROWS", "SPANS"),
        *("FEWEST_ROWS", "LEVEL_ROWS", "FREQUENT", "SHIFT", "LONG_TEXT"),
    },
    "value_noise": {
        *("REFERENCE_ROWS", "VISIBLE", "ATOM", "BOUNDS", "CORES", "GROSS_PARTS", "BOOSTED", "FREE_SHARES"),
        *("FEATURE_GAP", "CROWD", "EDGE"),
    },
    "wrappers": {
        *("FOLD_ROWS", "TUNED_ROWS", "HEAVY_RATE", "OVERLAP_RATE", "LEAN", "PULL", "MIN_VALUES", "MEMORY", "LEAST_GAP"),
        *("KEPT_PER_CLASS", "LOSS_GAIN", "TREES", "LEAF", "PENALTY"),
    },
}
NUMERIC_CALLS = {"array", "geomspace", "linspace", "log", "float", "tuple", "range"}


def is_numeric(value: ast.expr) -> bool:
    """Whether numbers alone make this value: literals, arithmetic, containers and NumPy's makers of arrays."""
    nodes = list(ast.walk(value))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = [call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls]
    numbers = [n for n in nodes if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    return bool(numbers) and NUMERIC_CALLS.issuperset(names)


def constants(source: str) -> list[tuple[str, str]]:
    """Name and comment of every numeric constant; one comment serves the lines that follow it without a gap."""
    lines, found, shared, last = source.splitlines(), [], "", -1
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        first = top = node.lineno - 1
        while top and lines[top - 1].startswith("#"):
            top -= 1
        shared = " ".join([shared if top == last + 1 else "", *lines[top:first]]).strip()
        last = node.end_lineno - 1
        own = " ".join(re.findall(r"#.*", "\n".join(lines[first : last + 1])))
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        names = [ast.unparse(name) for name in getattr(target, "elts", [target])]
        if all(name.isupper() for name in names) and is_numeric(node.value):
            found += [(name, f"{own} {shared}".strip()) for name in names]
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_constants_say_where_they_come_from(path):
    chosen = UNMEASURED.get(path.relative_to(PACKAGE).parts[0], set())
    for name, comment in constants(path.read_text(encoding="utf-8")):
        known = ORIGINS.search(comment) or ("a choice" in comment and name in chosen)
        assert known, f"{name} in {path.name} must say where it comes from, got {comment!r}"
        for script in re.findall(r"benchmarks/\w+\.py", comment):
            assert (ROOT / script).exists(), f"{name} in {path.name} names {script}, which is not there"


def test_a_name_has_one_meaning():
    places: dict[str, set[str]] = {}
    for path in FILES:
        for name, _ in constants(path.read_text(encoding="utf-8")):
            places.setdefault(name.strip("_"), set()).add(str(path.relative_to(PACKAGE)))
    same = {"LARGEST", "ROWS_PER_FEATURE"}  # one value each
    assert {name: files for name, files in places.items() if len(files) > 1 and name not in same} == {}


def test_a_constant_without_a_reason_is_seen():
    bare = "A = 3\n# theory: two of them\nB = 1.5\nC = 2\n\nD = (1, 2)  # wide\nNAMES = ('a', 'b')\n"
    assert constants(bare) == [
        ("A", ""),
        ("B", "# theory: two of them"),
        ("C", "# theory: two of them"),
        ("D", "# wide"),
    ]
    for comment in ("# wide", "# a choice", "# benchmarks/audit.py"):
        assert not ORIGINS.search(comment)
