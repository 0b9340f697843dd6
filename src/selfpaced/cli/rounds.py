"""From one run to the next: what was listed, what a person has decided about it, and what is still open."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import RowDecision


@dataclass(frozen=True)
class LastRun:
    """The run that a file of decisions is about.

    ``number`` counts the runs, ``listed`` are its rows to check with their fingerprints (None: no list was found).
    """

    number: int
    listed: dict[int, str] | None
    answers: list[RowDecision]

    @classmethod
    def of(cls, args: argparse.Namespace) -> LastRun | None:
        """Return the run that the decisions are about; None if there are no decisions."""
        from selfpaced.tables import read_answers

        path = getattr(args, "decisions", None)
        if path is None:
            return None
        folders = dict.fromkeys((path.parent, Path(getattr(args, "out", None) or "run")))
        numbers = (_number(folder) for folder in folders)
        return cls(next((one for one in numbers if one), 1), _listed(path), read_answers(path))

    def undecided(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the rows that were listed and nobody has decided about, if they are still the same rows."""
        from selfpaced.tables import row_marks

        listed, decided = self.listed or {}, {answer.row for answer in self.answers}
        rows = [row for row in listed if row not in decided and 0 <= row < len(frame)]
        marks = row_marks(frame, rows) if rows else []
        return np.array([row for row, mark in zip(rows, marks, strict=True) if listed[row] == mark], dtype=int)

    def decisions(self) -> pd.DataFrame:
        """Return all decisions until now, to continue from."""
        import pandas as pd

        words = {"keep": "keep", "drop": "drop"}
        rows = [(a.row, words.get(a.what, f"relabel to {a.value}"), a.target, a.mark) for a in self.answers]
        return pd.DataFrame(rows, columns=["row", "decision", "target", "fingerprint"])


def progress(last: LastRun | None, rows: list[int]) -> dict[str, Any]:
    """Return the number of the round, the rows listed before, those of them still undecided, and the new rows."""
    if last is None:
        return {"round": 1, "rows_before": None, "undecided": 0, "new": len(rows)}
    undecided = len(set(rows) & set(last.listed or ()))
    before = None if last.listed is None else len(last.listed)
    return {"round": last.number + 1, "rows_before": before, "undecided": undecided, "new": len(rows) - undecided}


def _number(folder: Path) -> int | None:
    """Return the number of the run in a folder; None if there is none."""
    try:
        found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    number = found.get("round", 1) if isinstance(found, dict) else 1
    return number if isinstance(number, int) else 1


def _listed(decisions: Path) -> dict[int, str] | None:
    """Return rows and fingerprints of a list: a filled-in suspects.csv, or the one beside decisions.csv."""
    from selfpaced.assessment import LEVELS
    from selfpaced.tables import TableError, written_cells

    for path in (decisions, decisions.parent / "suspects.csv"):
        try:
            found = written_cells(path)[0]
        except (OSError, TableError):
            continue
        if {"level", "row", "fingerprint"} <= set(found):
            found = found[found["level"].isin(LEVELS)]  # not the rows of classes that are too small
            return dict(zip(found["row"].astype(float).astype(int), found["fingerprint"], strict=True))
    return None
