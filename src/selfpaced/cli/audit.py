"""``selfpaced audit``: from labels and somebody's held-out probabilities to suspects, page and review."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import UsageError
from .data import find_target, open_table
from .terminal import next_step, show_lists

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced import LabelAudit
    from selfpaced.tables import LoadedTable

    from .console import Console

USAGE = "selfpaced audit DATA --label COLUMN [--probabilities COLUMNS] [options]"
DESCRIPTION = """\
Find wrong labels from the held-out probabilities of any model, and list the
rows to check.

Probabilities must come from a model that was not fitted to the row:
out-of-fold, out-of-bag, or fitted to other data.

Writes into OUT:
  suspects.csv   the rows to check, with an empty column for your decision:
                 keep, drop, relabel, or relabel to LABEL
  metrics.json   label-error rate with its interval, transition matrix, counts
  report.html    the result as a page, in one file
"""
EPILOG = """\
examples:
  selfpaced audit table.csv --label y          columns named after the labels
  selfpaced audit table.csv --label y --probabilities p_cat,p_dog
  selfpaced audit table.csv --label y --probabilities p.npy --classes cat,dog
  selfpaced audit visits.csv --label diagnosis --groups patient
  selfpaced review audit                       decide about the suspects
"""
FILES = ["suspects.csv", "metrics.json", "report.html"]


def run(args: argparse.Namespace, console: Console) -> int:
    """Audit, write everything at once, and say what came out."""
    from selfpaced.tables import row_marks

    from .output import staged, write_frame, write_json, write_page
    from .suspects import with_cells

    with staged(args.out, FILES, console, force=args.force) as stage, console.progress():
        with console.step(f"reading {args.data}"):
            table = open_table(args)
            labels, probs, classes, used = _read(table, args, console)
        with console.step("fitting the label-noise model"):
            audit = _audited(table, args, labels, probs, classes)
        with console.step("writing"):
            found = _suspects(audit, table)
            marks = row_marks(table.frame, found["row"].to_numpy(dtype=np.intp))
            cells = table.frame.drop(columns=used)
            listed = with_cells(found, cells.drop(columns=args.label), args.label, marks)
            write_frame(listed, stage / "suspects.csv")
            measured = _metrics(audit, found, args)
            write_json(measured, stage / "metrics.json")
            written = ["suspects.csv", "metrics.json"]
            shown = found.drop(columns=["weight", "probability_if_noisy"]).assign(target=args.label, fingerprint=marks)
            content = {"suspects": shown, "cells": cells, "title": f"{args.label} in {Path(args.data).name}"}
            if not args.no_report and write_page(stage / "report.html", console, audit.audited(), **content):
                written.append("report.html")
    _tell(audit, found, [str(args.out / name) for name in written], args, console)
    console.result({**measured, "files": [str(args.out / name) for name in written]})
    return 0


# ----------------------------------------------------------------------------------------------------- reading


def _read(
    table: LoadedTable, args: argparse.Namespace, console: Console
) -> tuple[np.ndarray, np.ndarray, list[Any], list[str]]:
    """Labels with gaps, probabilities, the label of every column, and the columns of the table that were used."""
    asked = argparse.Namespace(**vars(args) | {"target": args.label, "task": "classification", "merge_labels": []})
    given = find_target(table, asked, console)
    labels = np.full(len(table.frame), None, dtype=object)
    labels[given.rows] = given.values.tolist()
    known = np.unique(given.values).tolist()
    classes = None if args.classes is None else _matching(args.classes.split(","), known)
    if args.probabilities is not None and args.probabilities.endswith(".npy"):
        return labels, _array("--probabilities", Path(args.probabilities)), classes or known, []
    columns = _columns(table, args, classes or known)
    if classes is None:
        classes = _named_after(columns, known) if len(columns) > 1 else known
    import pandas as pd

    numbers = []
    for name in columns:
        cells = table.frame[name].astype(str).str.strip()
        numbers.append(pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float))
        text = np.isnan(numbers[-1]) & table.frame[name].notna().to_numpy() & (cells.str.lower() != "nan").to_numpy()
        if text.any():
            raise UsageError(f"column {name!r} must hold probabilities, got {cells[text].iloc[0]!r}")
    probs = np.column_stack(numbers)
    return labels, probs[:, 0] if len(columns) == 1 else probs, classes, columns


def _columns(table: LoadedTable, args: argparse.Namespace, known: list[Any]) -> list[str]:
    """The columns of probabilities, which must be there."""
    from selfpaced.tables import suggestion

    names = [str(label) for label in known] if args.probabilities is None else args.probabilities.split(",")
    names = [name.strip() for name in names]
    for name in names:
        if name not in table.frame.columns:
            advice = "" if args.probabilities is not None else "; name the columns with --probabilities"
            near = suggestion(name, table.frame.columns)
            raise UsageError(f"the table has no column {name!r} of probabilities{near}{advice}")
    return names


def _named_after(columns: list[str], known: list[Any]) -> list[Any]:
    """The label of every column, whose names may share a prefix.

    >>> _named_after(["p_dog", "p_cat"], ["cat", "dog"]), _named_after(["0", "1"], [0, 1])
    (['dog', 'cat'], [0, 1])
    """
    for cut in range(len(columns[0]) + 1):
        names = [name.removeprefix(columns[0][:cut]) for name in columns]
        if {str(label) for label in known} <= set(names):
            return _matching(names, known)
    raise UsageError(
        f"the columns {columns[:5]!r} are not named after the labels {known[:5]!r}; say which label each has "
        "with --classes"
    )


def _matching(names: list[str], known: list[Any]) -> list[Any]:
    """Labels by their text; a label that no row has keeps its text."""
    like = {str(label): label for label in known}
    return [like.get(name.strip(), name.strip()) for name in names]


def _array(option: str, path: Path) -> np.ndarray:
    if not path.is_file():
        raise UsageError(f"{option}: there is no file {str(path)!r}")
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise UsageError(
            f"{option}: {str(path)!r} must be an array of numbers saved by numpy.save ({error})"
        ) from error


def _audited(
    table: LoadedTable, args: argparse.Namespace, labels: np.ndarray, probs: np.ndarray, classes: list[Any]
) -> LabelAudit:
    from selfpaced import audit_labels

    groups = None
    if args.groups is not None:
        if args.groups not in table.frame.columns:
            raise UsageError(f"--groups: the table has no column {args.groups!r}")
        groups = table.frame[args.groups].astype(str).to_numpy()
    features = None if args.features is None else _array("--features", args.features)
    return audit_labels(labels, probs, classes=classes, groups=groups, features=features)


# ----------------------------------------------------------------------------------------------------- writing


def _suspects(audit: LabelAudit, table: LoadedTable) -> pd.DataFrame:
    """Return the suspects with their lines."""
    import pandas as pd

    from .suspects import line_column

    found = pd.DataFrame(audit.suspects()).drop(columns="label_quality")
    found.insert(1, "line", line_column(table, found["row"].to_numpy(dtype=np.int64)))
    return found.round(dict.fromkeys(("weight", "noise_probability", "probability_if_noisy"), 4))


def _metrics(audit: LabelAudit, found: pd.DataFrame, args: argparse.Namespace) -> dict[str, Any]:
    from selfpaced import __version__

    levels = found["level"].tolist()
    return {
        "selfpaced": __version__,
        "data": str(args.data),
        "target": args.label,
        "rows": len(audit.calibrated_probs),
        "rows_without_label": audit.n_unlabelled,
        "independent_rows": audit.size,
        "classes": audit.classes,
        "noise_rate": audit.noise_rate,
        "noise_rate_interval": audit.noise_rate_interval,
        "noise_rate_if_any": audit.noise_rate_if_any,
        "transition_matrix": audit.transition_matrix,
        "clean_share": audit.clean_share,
        "likely_errors": levels.count("likely error"),
        "worth_a_look": levels.count("worth a look"),
        "in_sample": audit.in_sample,
    }


def _tell(
    audit: LabelAudit, found: pd.DataFrame, written: list[str], args: argparse.Namespace, console: Console
) -> None:
    """What was found, the first suspects, and the next command."""
    console.tell("\n" + audit.summary())
    show_lists(found, console)
    console.tell(f"\nWritten: {', '.join(written)}")
    if len(found):
        next_step(written, str(args.out), console)
