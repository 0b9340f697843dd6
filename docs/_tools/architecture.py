"""The picture of the architecture, drawn from the import graph itself: ``python docs/_tools/architecture.py``.

A room is a module or sub-package of the library. It stands on a floor, may import rooms of lower floors only, and has
one line that says what it is for. The page and the picture are compared with the code by a test.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import grimp

DOCS = Path(__file__).parents[1]
PICTURE = DOCS / "images" / "architecture.svg"
PAGE = DOCS / "architecture.md"

#: Floors from the roof down: the rooms on each, with their one line.
FLOORS: list[dict[str, str]] = [
    {
        "cli": "the command `selfpaced`",
        "plot": "figures with Matplotlib",
    },
    {"audit": "audits of labels from any model's probabilities; several labels per row, several annotators"},
    {
        "report": "one HTML page about anything fitted",
        "spark": "estimators for Spark ML",
    },
    {
        "linear": "logistic and linear regression",
        "wrappers": "wrappers for any scikit-learn estimator",
        "factorization": "low-rank matrices",
        "clustering": "multi-view k-means",
        "torch": "the criterion for networks",
        "dask": "estimators for Dask",
    },
    {"inspection": "`suspects` and `label_issues`: tables of an assessment"},
    {"distributed": "tables in blocks: in memory, in files, on Dask and Spark; cross-fitted wrappers there"},
    {"value_noise": "gross errors in values, told from misfit"},
    {
        "reasons": "evidence against a row, and what suspects have in common",
        "persistence": "saved models, and what is trusted in a file",
        "folds": "cross-validation folds by content and group",
        "label_noise": "the label-noise model: transition matrix, posterior, rate and interval",
        "robust": "robust scales and paces of residuals",
        "fitting": "what every `fit` needs: checks, progress, callbacks, Ctrl-C",
        "tables": "files of mixed columns: reading, encoding, checks, decisions",
        "datasets": "makers of noise, outliers and data sets",
    },
    {
        "assessment": "what a fitted model knows about rows; the definition of a suspect",
        "parameters": "valid values of parameters and arguments, refused by name",
        "solver": "`walk`, the driver of paced fits; `alternate`, the paper's Algorithm 1",
    },
    {
        "pacing": "lam: where it starts, how it moves, when it stops",
        "selection": "candidates and the path of them, paired gaps, the decision and its sentence",
        "registry": "every estimator, once",
        "fingerprint": "content of rows as numbers, and folds by content",
    },
    {
        "regularizers": "the mathematics: phi, weight and dual of every rule",
        "formatting": "numbers, shares and counts as people write them",
    },
]
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}

WIDTH, BOX, GAP, HEIGHT, STEP, TOP = 1120, 128, 24, 34, 92, 16


def imports() -> dict[str, set[str]]:
    """Room -> the rooms it imports, as the code has it; `import selfpaced` itself counts as none."""
    graph = grimp.build_graph("selfpaced", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {"selfpaced", "selfpaced.__main__"}:
        room = module.split(".")[1]
        targets = {name.split(".")[1] for name in graph.find_modules_directly_imported_by(module) if "." in name}
        found.setdefault(room, set()).update(targets - {room})
    return found


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that follow from others, so that the picture can be read."""

    def reach(room: str) -> set[str]:
        return edges.get(room, set()).union(*(reach(target) for target in edges.get(room, ())))

    return {
        room: {one for one in targets if not any(one in reach(other) for other in targets - {one})}
        for room, targets in edges.items()
    }


def places() -> dict[str, tuple[float, float]]:
    """The middle of every room's upper edge."""
    found = {}
    for number, floor in enumerate(FLOORS):
        width = len(floor) * (BOX + GAP) - GAP
        for place, room in enumerate(floor):
            found[room] = ((WIDTH - width) / 2 + place * (BOX + GAP) + BOX / 2, TOP + number * STEP)
    return found


def draw(edges: dict[str, set[str]]) -> str:
    """The picture as SVG."""
    place = places()
    height = TOP * 2 + (len(FLOORS) - 1) * STEP + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="The rooms of the library on their floors; arrows point at what is imported">',
        "<style>rect{fill:#eef;stroke:#447;rx:6}text{font:13px sans-serif;text-anchor:middle;fill:#113}"
        "path{fill:none;stroke:#668;stroke-width:1.2;opacity:.65;marker-end:url(#tip)}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" style="fill:#668;stroke:none;marker-end:none"/></marker></defs>',
    ]
    for room, targets in sorted(reduced(edges).items()):
        for target in sorted(targets):
            (x, y), (to_x, to_y) = place[room], place[target]
            start, bend = y + HEIGHT, (to_y - y - HEIGHT) / 2
            lines.append(
                f'<path d="M{x:g} {start:g}C{x:g} {start + bend:g} {to_x:g} {to_y - bend:g} {to_x:g} {to_y:g}"/>'
            )
    for room, (x, y) in place.items():
        lines.append(f'<rect x="{x - BOX / 2:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}"/>')
        lines.append(f'<text x="{x:g}" y="{y + HEIGHT / 2 + 4.5:g}">{escape(room)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def table() -> str:
    """The rooms as a table of the page."""
    rows = [
        f"| `{room}` | {line} | {', '.join(f'`{one}`' for one in sorted(imports_of)) or '–'} |"
        for floor in FLOORS
        for room, line in floor.items()
        for imports_of in (EDGES.get(room, set()),)
    ]
    return "\n".join(["| room | what it is for | imports |", "|---|---|---|", *rows])


EDGES = imports()

if __name__ == "__main__":
    PICTURE.write_text(draw(EDGES), encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- rooms -->\n")
    _, _, after = rest.partition("<!-- /rooms -->")
    PAGE.write_text(f"{before}<!-- rooms -->\n{table()}\n<!-- /rooms -->{after}", encoding="utf-8")
