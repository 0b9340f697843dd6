"""Check that a tag, the packages, the changelog and CITATION.cff state the same version and date.

``python .ci/released.py v0.1.0`` exits with 1 and says what differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "src/selfpaced/__init__.py": r'^__version__ = "(.+)"$',
    "experiments/pyproject.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\S+)",
}


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file states."""
    return {
        name: found[1] if (found := re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)) else ""
        for name, pattern in PLACES.items()
    }


def dates(root: Path) -> tuple[str, str]:
    """Return the dates of release in the changelog and in CITATION.cff; "" stands for unreleased."""
    changelog = re.search(r"^## \S+ \((.+)\)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    citation = re.search(r"^date-released: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    stated = changelog[1] if changelog else ""
    return "" if stated == "unreleased" else stated, citation[1].strip("\"'") if citation else ""


def problems(root: Path, tag: str) -> list[str]:
    """Return what keeps a tag from being released, a sentence each."""
    stated = versions(root).items()
    found = [f"{name} states version {version or 'none'}." for name, version in stated if f"v{version}" != tag]
    changelog, citation = dates(root)
    if not changelog or changelog != citation:
        found.append(f"CHANGELOG.md has the date {changelog or 'unreleased'}, CITATION.cff {citation or 'unreleased'}.")
    return found


if __name__ == "__main__":
    tag = sys.argv[1] if len(sys.argv) > 1 else ""
    if found := problems(ROOT, tag):
        sys.exit(f"The tag {tag!r} cannot be released. " + " ".join(found))
