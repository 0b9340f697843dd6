"""What ``selfpaced fit --model auto`` takes, logistic regression or boosting, and what its choice is worth.

    python benchmarks/choice.py [--rows 500] [--paced] [--save]

The development tables of more_datasets.py with at most five classes; both models are fitted to the same noisy rows and
assessed on clean ones: the plain models, which the choice compares, or with ``--paced`` (slow) the self-paced
ones, which
are then fitted. Cells are cached, so a run can be stopped and taken up again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import more_datasets
import noisy_fits
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from selfpaced_experiments.cells import Cache, Cell, run_cells

RESULT = Path(__file__).parent / "results" / "choice.md"
NOISES = ("clean", "20 %", "border 20 %")
MOST_CLASSES = 5


def fit(*, name: str, noise: str, rows: int, paced: bool, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Clean accuracy of both models, and which one the held-out labels speak for."""
    import pandas as pd

    from selfpaced import SelfPacedClassifier, SelfPacedLogisticRegression, TableEncoder
    from selfpaced.cli.choice import choose

    X, y, X_test, y_test = noisy_fits.parts(name, 0)
    X, y = X[:rows], y[:rows]  # the split has shuffled them
    given, _ = noisy_fits.noisy(X, y, noise, 5000)
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])

    def encode(kind: str, rows: np.ndarray) -> tuple[Any, list[int]]:
        encoder = TableEncoder(kind)
        return encoder.fit_transform(frame.iloc[rows]), encoder.categorical_features_

    choice = choose(encode, given, "classification", 0, least=X.shape[1])
    logistic, boosting = LogisticRegression(max_iter=1000), HistGradientBoostingClassifier(random_state=0)
    if paced:
        logistic, boosting = SelfPacedLogisticRegression(random_state=0), SelfPacedClassifier(boosting, random_state=0)
    logistic.fit(X, given), boosting.fit(X, given)
    right = {m: 100 * float(np.mean(f.predict(X_test) == y_test)) for m, f in (("line", logistic), ("trees", boosting))}
    return {
        **right,
        "taken": "line" if choice.model == "logistic" else "trees",
        "gain": choice.gain,
        "error": choice.error,
    }


def table(rows: int, paced: bool) -> list[str]:
    """One line per noise, then every table."""
    names = [name for name in more_datasets.DEVELOPMENT if more_datasets.load(name)[1].max() < MOST_CLASSES]
    parts = ("selfpaced.cli.choice", *(("selfpaced.linear.logistic", "selfpaced.wrappers.classifier") if paced else ()))
    cells = {
        (name, noise): Cell(
            "choice:fit", {"name": name, "noise": noise, "rows": rows, "paced": paced}, f"{name}, {noise}", parts
        )
        for name in names
        for noise in NOISES
    }
    found = {}
    for done in run_cells(list(cells.values()), cache=Cache()):
        found[done.cell.params["name"], done.cell.params["noise"]] = done.value
        print(f"{len(found)} of {len(cells)}: {done.cell.label}, {done.seconds:.1f} s", file=sys.stderr, flush=True)
    lines = [
        "| labels | logistic | boosting | chosen | better of the two | boosting taken |",
        "|---|---|---|---|---|---|",
    ]
    for noise in NOISES:
        values = [found[name, noise] for name in names]
        line, trees = (np.array([v[key] for v in values]) for key in ("line", "trees"))
        taken = np.array([v["taken"] == "trees" for v in values])
        chosen, best = np.where(taken, trees, line), np.maximum(line, trees)
        means = " | ".join(f"{v.mean():.1f}" for v in (line, trees, chosen, best))
        lines.append(f"| {noise} | {means} | {taken.sum()} of {len(values)} |")
    lines += ["", "| table | " + " | ".join(NOISES) + " |", "|---" * (len(NOISES) + 1) + "|"]
    for name in names:
        values = [found[name, noise] for noise in NOISES]
        told = [f"{v['line']:.1f}, {v['trees']:.1f}, {v['gain']:+.3f} +- {v['error']:.3f}" for v in values]
        marked = [t + (" boosting" if v["taken"] == "trees" else "") for t, v in zip(told, values, strict=True)]
        lines.append(f"| {name} | " + " | ".join(marked) + " |")
    return [
        f"Accuracy in % on clean labels of the {'self-paced' if paced else 'plain'} models, {len(names)} tables, "
        f"at most {rows} rows to learn from.",
        "",
        *lines,
        "",
        "In each line: logistic regression, boosting, nats a row by which boosting is ahead, and whether it was taken.",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500, help="to learn from (default 500)")
    parser.add_argument("--paced", action="store_true", help="fit the self-paced models")
    parser.add_argument("--save", action="store_true", help="also write results/choice.md")
    options = parser.parse_args()
    text = "\n".join(table(options.rows, options.paced))
    print(text)
    if options.save:
        RESULT.write_text(f"# The model that --model auto takes\n\n{text}\n")
