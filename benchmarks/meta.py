"""Forests and boosting under label noise: self-paced against plain and cleanlab's CleanLearning, same base, same folds.

    python benchmarks/meta.py [--base forest|boosting|all] [--quick] [--save]

Breast, Spambase and Svmguide1; for every noise seed one of five stratified folds is the test part, and at most 600 of
the other rows are the training part. Noise is put on training labels only: 0, 20 and 40 % symmetric, and 35 % of one
class / 5 % of the other. Accuracy and log-loss are those on clean test labels; AP is the average precision of finding
the flipped training labels (each method by its own score); the cost is in fits of the plain base, as a median.

Seeds of folds, noise and models are apart. All methods run with their defaults; nothing is chosen with clean labels.
Needs cleanlab, and the data of ``SELFPACED_DATA`` (or a network) for Spambase and Svmguide1.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import StratifiedKFold

from selfpaced import SelfPacedClassifier
from selfpaced.datasets import flip_class_conditional, flip_symmetric, load_breast, load_spambase, load_svmguide1

RESULT = Path(__file__).parent / "results" / "meta.md"
LOADERS = {"breast": load_breast, "svmguide1": load_svmguide1, "spambase": load_spambase}
BASES = {
    "forest": RandomForestClassifier(100, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
NOISE = {"20 %": 0.2, "0 %": 0.0, "40 %": 0.4, "35/5 %": None}
METHODS = ("plain", "cleanlab", "selfpaced")


def data(name, seed, max_rows):
    """Training and test part of one fold, the fold and the rows drawn by the seed."""
    bunch = LOADERS[name]()
    X, y = np.asarray(bunch.data, dtype=float), np.unique(bunch.target, return_inverse=True)[1]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=1000).split(X, y))
    train, test = folds[seed % 5]
    train = np.random.default_rng(2000 + seed).permutation(train)[:max_rows]
    return X[train], y[train], X[test], y[test]


def noisy(y, rate, seed):
    if rate is None:
        return flip_class_conditional(y, [0.05, 0.35], random_state=seed)
    return flip_symmetric(y, rate, random_state=seed)


def plain(base, X, y, X_test):
    model = clone(base).fit(X, y)
    return model.predict_proba(X_test), None


def cleanlab(base, X, y, X_test):
    from cleanlab.classification import CleanLearning

    model = CleanLearning(clone(base), seed=0).fit(X, y)
    return model.predict_proba(X_test), 1 - model.get_label_issues()["label_quality"].to_numpy()


def selfpaced(base, X, y, X_test):
    model = SelfPacedClassifier(base).fit(X, y)
    return model.predict_proba(X_test), model.sample_noise_


def one_run(base, name, rate, seed, max_rows):
    """Accuracy, log-loss, AP and cost of every method on the same rows and labels."""
    X, y, X_test, y_test = data(name, seed, max_rows)
    given, flipped = noisy(y, rate, seed)
    out, unit = {}, 1.0
    for method in METHODS:
        began = time.process_time()
        proba, suspicion = globals()[method](base, X, given, X_test)
        seconds = time.process_time() - began
        unit = seconds if method == "plain" else unit
        ap = average_precision_score(flipped, suspicion) if suspicion is not None and flipped.any() else np.nan
        accuracy = 100 * np.mean(proba.argmax(axis=1) == y_test)
        out[method] = (accuracy, log_loss(y_test, np.clip(proba, 1e-6, 1 - 1e-6)), ap, seconds / unit)
    return out


def lines_of(runs):
    """The table, one row per base, noise and data set, with the difference to cleanlab and its spread over seeds."""
    head = ["base", "noise", "data", *(f"accuracy {m}" for m in METHODS), "minus cleanlab", "minus plain"]
    head += [
        *(f"AP {m}" for m in METHODS[1:]),
        *(f"log-loss {m}" for m in METHODS),
        *(f"cost {m}" for m in METHODS[1:]),
    ]
    yield "| " + " | ".join(head) + " |"
    yield "|---" * 15 + "|"
    keys = sorted(
        {(r["base"], r["noise"], r["data"]) for r in runs}, key=lambda k: (k[0], list(NOISE).index(k[1]), k[2])
    )
    for base, noise, name in keys:
        some = [r["out"] for r in runs if (r["base"], r["noise"], r["data"]) == (base, noise, name)]
        table = np.array([[run[m] for m in METHODS] for run in some], dtype=float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mean, median = np.nanmean(table, axis=0), np.nanmedian(table, axis=0)
        gain = [table[:, 2, 0] - table[:, 1, 0], table[:, 2, 0] - table[:, 0, 0]]
        gains = [f"{g.mean():+.2f} ± {g.std(ddof=1) / np.sqrt(len(g)) if len(g) > 1 else np.nan:.2f}" for g in gain]
        cells = [base, noise, f"{name} ({len(some)})", *(f"{v:.1f}" for v in mean[:, 0]), *gains]
        cells += (
            [f"{v:.3f}" for v in mean[1:, 2]] + [f"{v:.3f}" for v in mean[:, 1]] + [f"{v:.1f}x" for v in median[1:, 3]]
        )
        yield "| " + " | ".join(cells) + " |"


def report(runs, options):
    note = re.sub(r"\n+", "\n", __doc__.split("\n\n")[2])
    head = ["# Forests and boosting under label noise", "", note, ""]
    head += [f"`python benchmarks/meta.py {options}`; in brackets the number of runs; ± is one standard error.", ""]
    return "\n".join([*head, *lines_of(runs)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", choices=[*BASES, "all"], default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-rows", type=int, default=600)
    parser.add_argument("--quick", action="store_true", help="one seed, 400 rows, 20 % noise")
    parser.add_argument("--runs", type=Path, help="append every run to this file, and begin with those it holds")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    seeds, rows, levels = (1, 400, ["20 %"]) if args.quick else (args.seeds, args.max_rows, list(NOISE))
    runs = [json.loads(line) for line in args.runs.read_text().splitlines()] if args.runs and args.runs.exists() else []
    done = {(r["base"], r["noise"], r["data"], r["seed"]) for r in runs}
    todo = [
        (base, noise, name, seed)
        for noise in levels
        for seed in range(seeds)
        for name in LOADERS
        for base in (BASES if args.base == "all" else [args.base])
        if (base, noise, name, seed) not in done
    ]
    for base, noise, name, seed in todo:
        out = one_run(BASES[base], name, NOISE[noise], seed, rows)
        runs.append({"base": base, "noise": noise, "data": name, "seed": seed, "out": out})
        if args.runs:
            with args.runs.open("a") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    text = report(runs, f"--seeds {seeds} --max-rows {rows}")
    print(text)
    if args.save and not args.quick:
        RESULT.write_text(text)


if __name__ == "__main__":
    main()
