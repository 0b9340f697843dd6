"""What the automatic stop and the calibration cost: processor time in units of one cold LogisticRegression() fit.

    python benchmarks/cost.py [--quick] [--save] [--cases spambase wide ...]

All fits of a case alternate in one process, each is taken at its best; peak memory is what a fit allocates beyond
X, in units of X. 20 % of the labels are flipped. `independent` features are the easiest data there are for
LogisticRegression (a handful of iterations), `correlated` ones are what tables look like. Where classes `overlap` so
far that the number of suspects hangs on how rows are dealt into folds, they are dealt up to 64 times.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from selfpaced import SelfPacedLogisticRegression
from selfpaced.datasets import flip_symmetric, load_spambase

SMALL = 10_000
RESULT = Path(__file__).parent / "results" / "cost.md"


def spambase(quick):  # noqa: ARG001
    X, y = load_spambase(return_X_y=True)
    return scale(X), np.unique(y, return_inverse=True)[1]


def dense(n, d, correlated):
    """Heavy-tailed features, a logistic signal; correlated through a spectrum that falls a hundredfold."""

    def make(quick):
        rows = n // 10 if quick else n
        rng = np.random.default_rng(0)
        X = rng.standard_t(2.5 if not correlated else 5.0, (rows, d))
        if correlated:
            rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
            X = (X * np.geomspace(1.0, 0.1, d)) @ rotation
        X /= X.std(axis=0)
        signal = X @ rng.standard_normal(d)
        signal *= 4.0 / signal.std()
        return X, (rng.random(rows) < 1 / (1 + np.exp(-signal))).astype(int)

    return make


def made(n_classes):
    """5,000 rows of 20 features, half of which tell the class, by scikit-learn's maker."""

    def make(quick):
        X, y = make_classification(1000 if quick else 5000, 20, n_informative=10, n_classes=n_classes, random_state=0)
        return scale(X), y

    return make


def overlapping(n, d):
    """Labels drawn by one column, so weakly that noise is hardly told from it: the same rows, quick or not."""

    def make(quick):  # noqa: ARG001
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        return X, (rng.random(n) < 1 / (1 + np.exp(-1.5 * X[:, 0]))).astype(int)

    return make


def text(quick):
    """20,000 documents, 50,000 words, 50 words each, drawn by Zipf's law; each word leans to a class."""
    rng = np.random.default_rng(0)
    n, d = (4000, 10000) if quick else (20000, 50000)
    frequency = 1 / np.arange(5, d + 5)
    words = rng.choice(d, size=(n, 50), p=frequency / frequency.sum())
    X = sparse.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 50)), shape=(n, d))
    X.sum_duplicates()
    lean = rng.standard_normal(d)
    return X, (X @ lean + 2.0 * rng.standard_normal(n) > np.median(X @ lean)).astype(int)


CASES = {  # data, and the target where there is one
    "spambase": ("Spambase, 4.6k x 57", spambase, 4.0),
    "two-classes": ("5,000 x 20, two classes", made(2), 6.0),
    "five-classes": ("5,000 x 20, five classes", made(5), 12.0),
    "wide": ("1e5 x 200, independent", dense(100_000, 200, False), 1.5),
    "wide-correlated": ("1e5 x 200, correlated", dense(100_000, 200, True), 1.5),
    "long": ("1e6 x 20, independent", dense(1_000_000, 20, False), 0.7),
    "long-correlated": ("1e6 x 20, correlated", dense(1_000_000, 20, True), 0.7),
    "text": ("sparse 2e4 x 5e4, 0.1 %", text, 2.5),
    "overlap": ("1,300 x 10, classes overlap", overlapping(1300, 10), None),
    "overlap-wide": ("5,000 x 100, classes overlap", overlapping(5000, 100), None),
}


def cleanlab(X, y):
    from cleanlab.classification import CleanLearning

    CleanLearning(LogisticRegression(), seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(X, y)


def seconds(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def peak(call):
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def size(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes


def measure(label, make, target, repeats, quick):
    X, y = make(quick)
    noisy, _ = flip_symmetric(y, 0.2, random_state=1)
    plain, paced = [], []
    for _ in range(repeats if len(y) > SMALL else 5 * repeats):  # the shorter, the more they hang on other work
        taken, base = seconds(lambda: LogisticRegression().fit(X, noisy))
        plain.append(taken)
        taken, model = seconds(lambda: SelfPacedLogisticRegression().fit(X, noisy))
        paced.append(taken)
    cleanlab(X[:200], noisy[:200])  # its imports are not its cost
    other, _ = seconds(lambda: cleanlab(X, noisy))
    memory = peak(lambda: SelfPacedLogisticRegression().fit(X, noisy)) / size(X)
    reach = "-" if target is None else f"<= {target}x"
    row = (
        f"| {label} | {1000 * min(plain):.0f} ms ({base.n_iter_[0]} it.) | {min(paced) / min(plain):.2f}x | "
        f"{reach} | {other / min(plain):.1f}x | {memory:.2f} | {100 * base.score(X, y):.1f} | "
        f"{100 * model.score(X, y):.1f} | {model.termination_.split(':')[0]} |"
    )
    print(row, flush=True)
    return row


def run():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, two repeats")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = (
        "| data | one LR fit | selfpaced | to reach | cleanlab | peak memory / X | LR, clean labels | selfpaced, "
        "clean labels | chosen |\n|---|---|---|---|---|---|---|---|---|"
    )
    print(head)
    rows = [measure(*CASES[c], 2 if options.quick else 3, options.quick) for c in options.cases]
    if options.save:
        RESULT.parent.mkdir(exist_ok=True)
        known = RESULT.read_text().splitlines() if RESULT.exists() else []
        own = {row.split(" | ")[0]: row for row in [*known, *rows] if row.startswith("| ")}
        kept = [own[f"| {label}"] for label, _, _ in CASES.values() if f"| {label}" in own]
        RESULT.write_text("# Cost of self-paced logistic regression\n\n" + head + "\n" + "\n".join(kept) + "\n")


if __name__ == "__main__":
    run()
