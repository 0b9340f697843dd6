"""What a logistic regression for noisy labels costs: processor time in milliseconds and in fits of LogisticRegression.

    python benchmarks/cost.py [--save] [--cases spambase text ...]

All fits of a case alternate in one process on one thread, and each is taken at its best. Peak memory is what a fit
allocates beyond X, in units of X. Labels are clean, or 20 % of them are flipped; accuracy is that on 5,000 fresh rows
with clean labels. ``LR CV`` is LogisticRegressionCV with its defaults, ``cleanlab`` is CleanLearning around
LogisticRegression. Target: at most 40 ms or 6 plain fits below 10,000 rows, whichever is more; 1.5 and 1 plain fits for
1e5 and 1e6 rows; never slower than cleanlab.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from selfpaced import SelfPacedLogisticRegression
from selfpaced.datasets import flip_symmetric
from selfpaced_experiments.data import load_spambase

RESULT = Path(__file__).parent / "results" / "cost.md"
SMALL, LARGE = 10_000, 50_000
FRESH = 5000  # rows on which accuracy is measured; Spambase has none to spare
HEAD = (
    "| data | flips | LR | selfpaced | in LR fits | to reach | LR CV | cleanlab | peak memory / X | accuracy LR | "
    "selfpaced |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def spambase():
    X, y = load_spambase(return_X_y=True)
    return scale(X), np.unique(y, return_inverse=True)[1], 0


def made(n, d, k=2, correlated=True):
    """Heavy-tailed features, correlated through a spectrum that falls tenfold, and labels drawn from a linear model."""

    def make():
        rng = np.random.default_rng(0)
        X = rng.standard_t(5.0, (n + FRESH, d))
        if correlated:
            X = (X * np.geomspace(1.0, 0.1, d)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        X /= X.std(axis=0)
        scores = X @ rng.standard_normal((d, k))
        scores *= 4.0 / scores.std(axis=0)
        return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), FRESH

    return make


def text():
    """20,000 documents, 50,000 words, 50 words each, drawn by Zipf's law; each word leans to a class."""
    rng = np.random.default_rng(0)
    n, d = 20_000 + FRESH, 50_000
    frequency = 1 / np.arange(5, d + 5)
    words = rng.choice(d, size=(n, 50), p=frequency / frequency.sum())
    X = sparse.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 50)), shape=(n, d))
    X.sum_duplicates()
    lean = rng.standard_normal(d)
    return X, (X @ lean + 2.0 * rng.standard_normal(n) > np.median(X @ lean)).astype(int), FRESH


CASES = {
    "300": ("300 x 10", made(300, 10)),
    "1000": ("1,000 x 20", made(1000, 20)),
    "5000": ("5,000 x 20", made(5000, 20)),
    "independent": ("5,000 x 20, independent", made(5000, 20, correlated=False)),
    "wide": ("5,000 x 100", made(5000, 100)),
    "ten-classes": ("5,000 x 20, ten classes", made(5000, 20, 10)),
    "spambase": ("Spambase, 4,601 x 57", spambase),
    "below": ("9,999 x 20", made(9999, 20)),
    "above": ("10,001 x 20", made(10_001, 20)),
    "text": ("20,000 x 50,000, sparse", text),
    "1e5": ("100,000 x 200", made(100_000, 200)),
    "1e6": ("1,000,000 x 20", made(1_000_000, 20)),
}


def cleanlab(X, y):
    from cleanlab.classification import CleanLearning

    CleanLearning(LogisticRegression(), seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(X, y)


def best_of(calls, seconds):
    """The least processor time of each call, in milliseconds; they alternate until the time is up."""
    least, began = [np.inf] * len(calls), time.perf_counter()
    while time.perf_counter() - began < seconds or not np.isfinite(least).all():
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            least[i] = min(least[i], time.process_time() - start)
    return [1000 * one for one in least]


def peak(call):
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def size(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes


def target(n, plain):
    """What a fit may cost, in plain fits."""
    return max(40 / plain, 6.0) if n < SMALL * 1.1 else 6.0 if n < LARGE else 1.5 if n < 500_000 else 1.0


def measure(label, make):
    X, y, n_fresh = make()
    n = len(y) - n_fresh
    (X, X_test), (y, y_test) = (X[:n], X[n:]), (y[:n], y[n:])
    rows = []
    for flips in (0.0, 0.2):
        given = flip_symmetric(y, flips, random_state=1)[0] if flips else y
        plain, paced = LogisticRegression(), SelfPacedLogisticRegression()
        calls = [lambda: plain.fit(X, given), lambda: paced.fit(X, given)]  # noqa: B023
        one, own = best_of(calls, 1.0)
        peers = ["-", "-"]
        if len(y) < LARGE and not sparse.issparse(X):
            cleanlab(X[::20], given[::20])  # its imports are not its cost
            calls = [lambda: LogisticRegressionCV().fit(X, given), lambda: cleanlab(X, given)]  # noqa: B023
            peers = [f"{taken:.0f} ms" for taken in best_of(calls, 0.5)]
        memory = peak(lambda: paced.fit(X, given)) / size(X)  # noqa: B023
        accuracy = [f"{100 * model.score(X_test, y_test):.1f}" if n_fresh else "-" for model in (plain, paced)]
        reached = "" if own / one <= target(len(y), one) else " **"
        rows.append(
            f"| {label} | {flips:.0%} | {one:.1f} ms | {own:.0f} ms | {own / one:.1f}x{reached} | "
            f"{target(len(y), one):.1f}x | {peers[0]} | {peers[1]} | {memory:.1f} | {accuracy[0]} | "
            f"{accuracy[1]} |"
        )
        print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--save", action="store_true", help="also write results/cost.md")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    rows = [row for case in options.cases for row in measure(*CASES[case])]
    if options.save:
        note = "Rows that miss their target are marked **."
        RESULT.write_text(
            f"# Cost of the self-paced logistic regression\n\n{note}\n\n{HEAD}\n" + "\n".join(rows) + "\n"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
