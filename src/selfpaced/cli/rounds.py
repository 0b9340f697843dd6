"""From one fit to the next: the file of suspects that a person fills in, and the rows that are still undecided."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .atomic_output import settle
from .suspects import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from .console import Console
    from .training import Training

__all__ = ["decisions_so_far", "round_of", "suspects_file", "tell_of_merges", "undecided_rows"]


def suspects_file(result: Training) -> pd.DataFrame:
    """Return the suspects with an empty column for the decision, the cells of their rows, and their fingerprints.

    Columns of the table that have one of our names are called ``table.NAME``.
    """
    import pandas as pd

    found, frame = pd.concat([result.suspects, result.too_few], ignore_index=True), result.table.frame
    out = found.loc[:, [name for name in COLUMNS if name in found]].assign(decision="")
    ours = {*COLUMNS, "decision", "target", "fingerprint"}
    cells = frame.iloc[found["row"].to_numpy()].drop(columns=result.target.name)
    cells.columns = pd.Index([f"table.{name}" if name in ours else name for name in cells.columns])
    known = pd.DataFrame({"target": result.target.name, "fingerprint": list(result.marks)}, index=out.index)
    return pd.concat([out, cells.set_axis(out.index), known], axis=1)


def decisions_so_far(path: Path) -> pd.DataFrame:
    """Return all decisions until now, to continue from."""
    import pandas as pd

    from selfpaced.tables import read_answers

    words = {"keep": "keep", "drop": "drop"}
    return pd.DataFrame(
        [
            {
                "row": answer.row,
                "decision": words.get(answer.what, f"relabel to {answer.value}"),
                "target": answer.target,
                "fingerprint": answer.mark,
            }
            for answer in read_answers(path)
        ],
        columns=["row", "decision", "target", "fingerprint"],
    )


def tell_of_merges(args: argparse.Namespace, console: Console) -> None:
    """Warn if the last run merged labels and this one does not."""
    try:
        merges = {f"{label}={other}" for label, other in _last_run(args)["merged_labels"].items()}
    except (KeyError, AttributeError):
        return
    if missing := sorted(merges - set(args.merge_labels)):
        options = " ".join(f"--merge-labels {shlex.quote(text)}" for text in missing)
        console.warn(f"the last run merged labels, and this one does not: add {options}")


def round_of(args: argparse.Namespace, result: Training) -> dict[str, Any]:
    """Return the number of the round, the rows listed before, those of them still undecided, and the new rows."""
    now = set(result.suspects["row"].tolist())
    if args.decisions is None:
        return {"round": 1, "rows_before": None, "undecided": 0, "new": len(now)}
    before = _listed_before(args.decisions)
    undecided = now & set(() if before is None else before)
    number = _last_run(args).get("round", 1)
    return {
        "round": number + 1 if isinstance(number, int) else 2,
        "rows_before": None if before is None else len(before),
        "undecided": len(undecided),
        "new": len(now) - len(undecided),
    }


def undecided_rows(args: argparse.Namespace, frame: pd.DataFrame) -> np.ndarray | None:
    """Return the rows that the last run listed and nobody has decided about, if they are still the same rows."""
    from selfpaced.tables import read_answers, row_marks

    path = getattr(args, "decisions", None)
    before = None if path is None else _listed_before(path)
    if not before:
        return None
    decided = {answer.row for answer in read_answers(path)}
    rows = [row for row in before if row not in decided and 0 <= row < len(frame)]
    return np.array([row for row, mark in zip(rows, row_marks(frame, rows), strict=True) if before[row] == mark], int)


def _last_run(args: argparse.Namespace) -> dict[str, Any]:
    """``metrics.json`` of the run that the decisions are about; empty if it is not there."""
    settle(args.decisions.parent)
    for folder in dict.fromkeys((args.decisions.parent, Path(getattr(args, "out", None) or "run"))):
        try:
            found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return found if isinstance(found, dict) else {}
    return {}


def _listed_before(decisions: Path) -> dict[int, str] | None:
    """Rows and fingerprints of the last run's list: a filled-in suspects.csv, or the one beside decisions.csv."""
    from selfpaced.tables import TableError, read_table, text_rows

    for path in (decisions, decisions.parent / "suspects.csv"):
        try:
            header, *rows = text_rows(read_table(path))
        except (OSError, TableError):
            continue
        records = [dict(zip(header, row, strict=True)) for row in rows]
        if {"level", "row", "fingerprint"} <= set(header):
            return {int(float(record["row"])): record["fingerprint"] for record in records}
    return None
