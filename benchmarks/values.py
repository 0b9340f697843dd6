"""Gross errors among skewed, uneven, zero-heavy and grouped values: what is claimed, found and gained.

    python benchmarks/values.py [--sets developed|fresh] [--part linear|wrapped] [--kinds K ...] [--seeds N] [--quick]
                                [--save]

Tables are those of `value_sets.py`; 30 % of the rows of each are held out as they are, the others given as they are,
with 3 or 10 % of the values times ten, with 10 % of the signs turned, or with 10 % of the values shuffled. `linear` is
SelfPacedLinearRegression, `wrapped` SelfPacedRegressor around boosting.

rate        the claimed share of gross errors (and how often its interval holds the true share of changed values)
precision, recall  of the rows whose probability of being wrong is above one half; values that an error does not change
            (zero times ten) do not count
RMSE        on the held-out rows, relative to the plain model's; `absolute` is boosting by absolute error
cost        processor time of the whole fit in plain fits

The thresholds of `selfpaced.value_noise` were chosen on the developed sets. The fresh ones were run twice: with seeds
from 100, which showed that targets of mostly zeros never reached the assessment (claims 26 %, affairs 32 % called
wrong),
and, that repaired and nothing else changed, with seeds from 200, which are published. The assessment has been
rebuilt since,
on the developed tables; what the fresh ones had shown before was known then, and how a few far rows count was tried on
one of them (`mathematics`), with other seeds. They are fresh no longer.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from value_sets import DEVELOPED, FRESH

from selfpaced import SelfPacedLinearRegression, SelfPacedRegressor

RESULT = Path(__file__).parent / "results" / "values.md"
KINDS = ("clean", "x10 3 %", "x10 10 %", "sign 10 %", "shuffled 10 %")
QUICK = ("clean", "x10 10 %")
NOTE = """Printed by `python benchmarks/values.py --save`; what the columns are is said there. A first run of the fresh
tables, with other seeds, showed a fault (targets of mostly zeros never reached the assessment), which was repaired
before
this one; the assessment has been rebuilt on the developed tables since then, and one repair was tried on `mathematics`,
with other seeds: these tables are fresh no longer."""


def boosting(**options):
    return HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0, **options)


MODELS = {
    "linear": (SelfPacedLinearRegression, LinearRegression),
    "wrapped": (lambda: SelfPacedRegressor(boosting()), boosting),
}


def spoilt(y, kind, seed):
    """Given values, and which of them an error has changed."""
    rng = np.random.default_rng([seed, 1])
    given = y.copy()
    if kind != "clean":
        rows = rng.choice(len(y), int(float(kind.split()[-2]) / 100 * len(y)), replace=False)
        if kind.startswith("x10"):
            given[rows] *= 10
        elif kind.startswith("sign"):
            given[rows] *= -1
        else:
            given[rows] = y[rng.permutation(rows)]
    return given, given != y


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def timed(model, X, y):
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began


def measured(make, kind, seed, part):
    """Rate, whether its interval holds the truth, precision, recall, RMSE ratios and cost of one fit."""
    X, y = make(np.random.default_rng([seed, 0]))
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    test = np.random.default_rng([seed, 2]).random(len(y)) < 0.3
    given, wrong = spoilt(y[~test], kind, seed)
    ours, plain = (made() for made in MODELS[part])
    seconds = timed(plain, X[~test], given), timed(ours, X[~test], given)
    base = rmse(plain, X[test], y[test])
    found = ours.assessment_.wrong > 0.5
    hits = float((found & wrong).sum())
    low, high = ours.noise_rate_interval_
    return {
        "rate": ours.noise_rate_,
        "covered": float(low <= wrong.mean() <= high),
        "precision": hits / found.sum() if found.any() else np.nan,
        "recall": hits / wrong.sum() if wrong.any() else np.nan,
        "RMSE": rmse(ours, X[test], y[test]) / base,
        "absolute": _absolute(X, y, given, test) / base if part == "wrapped" else np.nan,
        "cost": seconds[1] / seconds[0],
        "seconds": seconds[1],
        "asked": float(ours.verdict_.asked),
    }


def _absolute(X, y, given, test):
    return rmse(boosting(loss="absolute_error").fit(X[~test], given), X[test], y[test])


COLUMNS = ("rate", "covered", "precision", "recall", "RMSE", "absolute", "cost", "seconds", "asked")


def table(part, sets, seeds, kinds):
    lines = [f"Seeds {seeds.start} to {seeds.stop - 1}, means over them.", ""]
    lines += ["| errors | table | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for kind in kinds:
        rows = []
        for name, make in sets.items():
            runs = [measured(make, kind, seed, part) for seed in seeds]
            rows.append([[run[column] for column in COLUMNS] for run in runs])
            lines.append(row(kind, name, mean(rows[-1])))
            print(lines[-1], file=sys.stderr, flush=True)
        every = np.concatenate(rows)
        lines.append(row(f"**{kind}**", "mean", mean(every)))
        worst = np.max(every[:, COLUMNS.index("RMSE")])
        claimed = np.max(every[:, 0])
        lines.append(f"| **{kind}** | largest | {claimed:.3f} | | | | {worst:.3f} | | | | |")
        print("\n".join(lines[-2:]), file=sys.stderr, flush=True)
    return lines


def mean(runs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nothing found: no precision
        return np.nanmean(np.asarray(runs, dtype=float), axis=0)


def row(kind, name, values):
    cells = [
        "" if np.isnan(v) else f"{v:.3f}" if c in ("rate", "RMSE", "absolute") else f"{v:.2f}"
        for c, v in zip(COLUMNS, values, strict=True)
    ]
    return f"| {kind} | {name} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", choices=("developed", "fresh"), default="developed")
    parser.add_argument("--part", choices=MODELS, default="linear")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of errors")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}, one seed")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}, part by part")
    args = parser.parse_args()
    first = 200 if args.sets == "fresh" else 0
    sets = FRESH if args.sets == "fresh" else DEVELOPED
    seeds = range(first, first + (1 if args.quick else args.seeds))
    text = "\n".join(table(args.part, sets, seeds, QUICK if args.quick else args.kinds))
    print(text)
    if args.save:
        save(f"{args.part}, {args.sets}", text)


def save(name, text):
    """Replace one part of the committed result and keep the others."""
    old = RESULT.read_text() if RESULT.exists() else ""
    parts = dict(re.findall(r"^## ([\w, ]+)\n\n(.*?)\n*(?=^## |\Z)", old, flags=re.M | re.S))
    parts[name] = text
    body = "\n\n".join(f"## {key}\n\n{parts[key].strip()}" for key in sorted(parts))
    RESULT.write_text(f"# Values that a model misfits\n\n{NOTE}\n\n{body}\n")


if __name__ == "__main__":
    main()
