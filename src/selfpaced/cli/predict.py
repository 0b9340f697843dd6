"""``selfpaced predict``: a saved model on a new table."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from .console import Console

USAGE = "selfpaced predict [MODEL] [DATA] [--out FILE] [options]"
DESCRIPTION = """\
Predict with a model that selfpaced fit has saved.

The result has one line per row: row (from 0), line in the file, prediction, and
the probability of each class.
"""
EPILOG = """\
examples:
  selfpaced predict run/model.skops new.csv > predictions.csv
  selfpaced predict run/model.skops new.parquet --out predictions.parquet

A model file is opened only if all its types are of scikit-learn or selfpaced.
"""


def run(args: argparse.Namespace, console: Console) -> int:
    """Load, predict, write."""
    from selfpaced.persistence import load

    from .data import open_table
    from .output import check_target, write_frame

    if not args.model.is_file():
        raise UsageError(f"no model file {str(args.model)!r}; selfpaced fit writes one")
    with console.progress():
        with console.step(f"opening {args.model}"):
            model = load(args.model, trusted=args.trust)
        with console.step(f"reading {args.data or 'the built-in table'}"):
            table = open_table(args, as_fitted(model, args))
        if args.out is not None:
            check_target(Path(args.out), table.path, force=args.force)
        with console.step("predicting"):
            result = predictions(model, table)
    if args.out is not None:
        write_frame(result, Path(args.out))
        console.say(f"{len(result):,} predictions written to {args.out}")
    elif not console.as_json:
        _to_stdout(result)
    rows = None if args.out is not None else result.to_dict("records")
    console.result({"model": str(args.model), "rows": len(result), "out": args.out, "predictions": rows})
    return 0


def as_fitted(model: Any, args: argparse.Namespace) -> list[str]:
    """The columns that were text when the model was fitted, to be read so again, with its decimal sign."""
    from sklearn.pipeline import Pipeline

    from selfpaced.tables import TableEncoder

    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(encoder, TableEncoder):
        return []
    args.decimal = args.decimal or encoder.decimal
    return [column.name for column in encoder.columns_ if column.text]


def predictions(model: Any, table: Any) -> pd.DataFrame:
    """Predictions with row, line and, for classes, probabilities."""
    import numpy as np
    import pandas as pd
    from sklearn.pipeline import Pipeline

    frame = table.frame
    rows = np.arange(len(frame))
    lines = table.lines.of(rows)
    columns: dict[str, Any] = {"row": rows}
    if lines is not None:
        columns["line"] = lines
    try:
        features = model[:-1].transform(frame) if isinstance(model, Pipeline) else frame
    except ValueError as error:
        raise UsageError(str(error)) from error
    final = model[-1] if isinstance(model, Pipeline) else model
    columns["prediction"] = final.predict(features)
    if hasattr(final, "predict_proba"):
        chances = np.asarray(final.predict_proba(features), dtype=float).round(6)
        columns |= {f"p({label})": chances[:, j] for j, label in enumerate(final.classes_)}
    return pd.DataFrame(columns)


def _to_stdout(result: pd.DataFrame) -> None:
    """In blocks, so that a million rows are not held twice."""
    from selfpaced.tables.text import guarded_frame

    for start in range(0, len(result), 50_000):
        text = io.StringIO()
        guarded_frame(result.iloc[start : start + 50_000]).to_csv(text, index=False, header=start == 0)
        sys.stdout.write(text.getvalue())
    sys.stdout.flush()
