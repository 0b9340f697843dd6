"""The architecture page and its picture against the import graph."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("grimp", reason="the import graph needs grimp, which comes with import-linter")

TOOLS = Path(__file__).parents[1] / "docs" / "_tools"


@pytest.fixture(scope="module")
def architecture():
    sys.path.insert(0, str(TOOLS))
    try:
        import architecture
    finally:
        sys.path.remove(str(TOOLS))
    return architecture


def test_every_room_stands_on_a_floor(architecture):
    assert set(architecture.FLOOR_OF) == set(architecture.EDGES)


def test_rooms_import_from_lower_floors_only(architecture):
    floor = architecture.FLOOR_OF
    upward = [(a, b) for a, targets in architecture.EDGES.items() for b in targets if floor[b] <= floor[a]]
    assert upward == []


def test_the_picture_is_that_of_the_code(architecture):
    drawn = architecture.PICTURE.read_text(encoding="utf-8")
    assert drawn == architecture.draw(architecture.EDGES), "redraw it: python docs/_tools/architecture.py"


def test_the_page_has_a_line_for_every_room(architecture):
    page = architecture.PAGE.read_text(encoding="utf-8")
    rooms = re.search(r"<!-- rooms -->\n(.*)\n<!-- /rooms -->", page, re.DOTALL)
    assert rooms is not None
    assert rooms[1] == architecture.table(), "write it again: python docs/_tools/architecture.py"


def test_arrows_that_follow_from_others_are_left_out(architecture):
    edges = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert architecture.reduced(edges) == {"a": {"b"}, "b": {"c"}, "c": set()}
