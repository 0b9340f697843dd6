"""From one fit to the next: the file of suspects that a person fills in, and what became of the last one."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .ledger import settle
from .suspicion import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from .console import Console
    from .training import Training

__all__ = ["decisions_so_far", "round_of", "suspects_file", "tell_of_merges"]


def suspects_file(result: Training) -> pd.DataFrame:
    """The suspects with the cells of their rows, a place for a decision, and by what a row is known again.

    Columns of the table that have a name of ours are called ``table.NAME``.
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
    """What was decided until now, to go on from."""
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
    """Say so if the run whose suspects were decided about merged labels that this one does not."""
    try:
        before = json.loads((args.decisions.parent / "metrics.json").read_text(encoding="utf-8"))
        merges = {f"{label}={other}" for label, other in before["merged_labels"].items()} - set(args.merge_labels)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if merges:
        options = " ".join(f"--merge-labels {shlex.quote(text)}" for text in sorted(merges))
        console.warn(f"the run before merged labels, and this one does not: add {options}")


def round_of(args: argparse.Namespace) -> dict[str, Any]:
    """Which round this is, and how many suspects the one before had: None where its results are not at hand."""
    if args.decisions is None:
        return {"round": 1, "suspects_before": None}
    settle(args.decisions.parent)
    for folder in (args.decisions.parent, args.out):
        try:
            before = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
            return {
                "round": int(before.get("round", 1)) + 1,
                "suspects_before": int(before["likely_errors"]) + int(before["worth_a_look"]),
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return {"round": 2, "suspects_before": None}
