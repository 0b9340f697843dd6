"""Speed of the working tree against an older revision, in the same run.

    python benchmarks/against.py REVISION [--quick] [--rounds 5] [--save] [--cases logistic kmeans ...]

The revision is exported by `git archive`. One process per version fits the same models to the same data in turn;
PYTHONPATH decides which code it runs. Processor time on one thread, best of all repeats; every round starts new
processes, because the layout of memory is luck. The lowest and the highest ratio of a single round tell how far the
figures can be trusted: a busy machine needs more rounds. Cases only use parameters that no revision has renamed.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "against.md"
MOST, ENOUGH = 15, 1.5  # repeats per round: at most so many, or so many seconds of both together
Times = tuple[float, float]  # of the old version and of the new one


# --------------------------------------------------------------------------------------------------- data


@cache
def labels(n: int, d: int, classes: int = 2, noise: float = 0.2) -> tuple[Any, ...]:
    """Linear classes with flipped labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = (3.0 * X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return X, np.where(rng.random(n) < noise, rng.integers(0, classes, n), y)


@cache
def words(n: int, d: int) -> tuple[Any, ...]:
    """Sparse rows of 30 words, drawn by Zipf's law."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(5, d + 5)
    places = rng.choice(d, size=(n, 30), p=share / share.sum())
    X = sparse.csr_matrix((np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, 30)), shape=(n, d))
    X.sum_duplicates()
    signal = X @ rng.standard_normal(d)
    return X, np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), signal > np.median(signal))


@cache
def values(n: int, d: int, outliers: float = 0.2) -> tuple[Any, ...]:
    """A linear target with a bend, of which a share is far off."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)
    return X, y + (rng.random(n) < outliers) * rng.normal(10.0, 3.0, n)


@cache
def matrix(n: int, m: int) -> tuple[Any, ...]:
    """Rank 4, two of five entries missing, a fifth of the others grossly wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, m)) + 0.1 * rng.standard_normal((n, m))
    X += (rng.random((n, m)) < 0.2) * rng.uniform(-20.0, 20.0, (n, m))
    return (np.where(rng.random((n, m)) < 0.4, np.nan, X),)


@cache
def views(n: int, clusters: int, *widths: int) -> tuple[Any, ...]:
    """Clusters seen in several views, a tenth of the samples far off in each."""
    rng = np.random.default_rng(0)
    member = rng.integers(0, clusters, n)
    parts = [rng.normal(0.0, 2.0, (clusters, d))[member] + rng.standard_normal((n, d)) for d in widths]
    return ([part + (rng.random((n, 1)) < 0.1) * rng.normal(0.0, 8.0, part.shape) for part in parts],)


# -------------------------------------------------------------------------------------------------- cases


def cases() -> dict[str, tuple[Any, Callable[[], tuple[Any, ...]]]]:
    """Name -> model and data; imported here, because only the measured processes need the library."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    import selfpaced as sp

    logistic, linear = sp.SelfPacedLogisticRegression, sp.SelfPacedLinearRegression
    classifier, regressor = sp.SelfPacedClassifier, sp.SelfPacedRegressor
    mf, prmf = partial(sp.SelfPacedMF, random_state=0), partial(sp.PRMF, random_state=0)
    kmeans = partial(sp.SelfPacedMultiViewKMeans, random_state=0)
    tree, leafy = DecisionTreeClassifier(random_state=0), DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    forest, woods = RandomForestClassifier(20, random_state=0), RandomForestRegressor(20, random_state=0)
    return {
        "logistic, 300 x 5": (logistic(), partial(labels, 300, 5)),
        "logistic, 5,000 x 20": (logistic(), partial(labels, 5_000, 20)),
        "logistic, 200,000 x 20": (logistic(), partial(labels, 200_000, 20)),
        "logistic, 5,000 x 20, 4 classes": (logistic(), partial(labels, 5_000, 20, 4)),
        "logistic, 5,000 x 20, no noise": (logistic(), partial(labels, 5_000, 20, 2, 0.0)),
        "logistic, sparse 5,000 x 10,000": (logistic(), partial(words, 5_000, 10_000)),
        "logistic, 5,000 x 20, hard": (logistic("hard"), partial(labels, 5_000, 20)),
        "logistic, 1,000 x 10, paper": (logistic(pace="paper"), partial(labels, 1_000, 10)),
        "logistic, 5,000 x 20, lam = 1": (logistic(pace=1.0), partial(labels, 5_000, 20)),
        "linear, 200 x 5": (linear(), partial(values, 200, 5)),
        "linear, 5,000 x 20": (linear(), partial(values, 5_000, 20)),
        "linear, 200,000 x 20": (linear(), partial(values, 200_000, 20)),
        "linear, 5,000 x 20, no outliers": (linear(), partial(values, 5_000, 20, 0.0)),
        "linear, 5,000 x 20, cauchy": (linear(regularizer="cauchy"), partial(values, 5_000, 20)),
        "linear, 1,000 x 10, paper": (linear(pace="paper"), partial(values, 1_000, 10, 0.0)),
        "linear, 5,000 x 20, lam = 4": (linear(pace=4.0), partial(values, 5_000, 20)),
        "classifier, tree, 300 x 5": (classifier(tree), partial(labels, 300, 5)),
        "classifier, tree, 5,000 x 20": (classifier(tree), partial(labels, 5_000, 20)),
        "classifier, forest, 5,000 x 20": (classifier(forest), partial(labels, 5_000, 20)),
        "classifier, LR, 300 x 5": (classifier(LogisticRegression()), partial(labels, 300, 5)),
        "classifier, LR, 100,000 x 20": (classifier(LogisticRegression()), partial(labels, 100_000, 20)),
        "classifier, LR, 1,000 x 10, paper": (
            classifier(LogisticRegression(), pace="paper"),
            partial(labels, 1_000, 10),
        ),
        "regressor, tree, 200 x 5": (regressor(leafy), partial(values, 200, 5)),
        "regressor, tree, 5,000 x 20": (regressor(leafy), partial(values, 5_000, 20)),
        "regressor, forest, 2,000 x 10": (regressor(woods), partial(values, 2_000, 10)),
        "regressor, ridge, 200 x 5": (regressor(Ridge()), partial(values, 200, 5)),
        "regressor, ridge, 100,000 x 20": (regressor(Ridge()), partial(values, 100_000, 20)),
        "regressor, ridge, 1,000 x 10, paper": (regressor(Ridge(), pace="paper"), partial(values, 1_000, 10)),
        "mf, 60 x 50": (mf(), partial(matrix, 60, 50)),
        "mf, 200 x 200": (mf(), partial(matrix, 200, 200)),
        "mf, 1,500 x 1,000": (mf(), partial(matrix, 1_500, 1_000)),
        "mf, 200 x 200, rank 4, welsch": (mf(4, "welsch"), partial(matrix, 200, 200)),
        "mf, 200 x 200, rank 4, barron": (mf(4, "barron"), partial(matrix, 200, 200)),
        "mf, 200 x 200, rank 4, numpy": (mf(4, backend="numpy"), partial(matrix, 200, 200)),
        "prmf, 200 x 200": (prmf(), partial(matrix, 200, 200)),
        "kmeans, 200 x (5, 4)": (kmeans(3), partial(views, 200, 3, 5, 4)),
        "kmeans, 2,000 x (60, 40, 20)": (kmeans(10), partial(views, 2_000, 10, 60, 40, 20)),
        "kmeans, 20,000 x (30, 20)": (kmeans(8), partial(views, 20_000, 8, 30, 20)),
        "kmeans, 20,000 x 30": (kmeans(8), partial(views, 20_000, 8, 30)),
        "kmeans, 2,000 x (60, 40, 20), hard": (kmeans(10, regularizer="hard"), partial(views, 2_000, 10, 60, 40, 20)),
        "kmeans, 2,000 x (60, 40, 20), plain": (kmeans(10, regularizer=None), partial(views, 2_000, 10, 60, 40, 20)),
    }


# ---------------------------------------------------------------------------------------------- measuring


def serve() -> None:
    """Fit the cases that are named on standard input, one per line, and answer with the processor time."""
    from sklearn.base import clone

    import selfpaced

    warnings.simplefilter("ignore")
    known = cases()
    print(json.dumps({"code": selfpaced.__file__, "cases": list(known)}), flush=True)
    for line in sys.stdin:
        model, data = known[line.rstrip("\n")]
        given, fresh = data(), clone(model)
        start = time.process_time()
        fresh.fit(*given)
        print(json.dumps(time.process_time() - start), flush=True)


class Version:
    """One version of the library, in a process that waits while the other one works."""

    def __init__(self, source: Path) -> None:
        env = dict(os.environ, PYTHONPATH=str(source), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        command = [sys.executable, __file__, "--serve"]
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.questions, self.answers = self.process.stdin, self.process.stdout
        hello = self._answer()
        self.cases: list[str] = hello["cases"]
        if not Path(hello["code"]).is_relative_to(source):
            raise RuntimeError(f"the code of {source} was to be measured, but {hello['code']} was imported")

    def _answer(self) -> Any:
        line = self.answers.readline()
        if not line:
            raise RuntimeError("a measured process ended early; its error is printed above")
        return json.loads(line)

    def seconds(self, case: str) -> float:
        self.questions.write(case + "\n")
        self.questions.flush()
        return float(self._answer())


@contextmanager
def running(source: Path) -> Iterator[Version]:
    """A version while its process lives."""
    version = Version(source)
    with version.process:
        yield version
        version.questions.close()  # the end of its input ends it


@contextmanager
def exported(revision: str) -> Iterator[Path]:
    """The sources of a revision in a temporary directory."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", revision, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder).resolve() / "src"


def alternate(old: Version, new: Version, case: str, most: int) -> Times:
    """Best time of either; the first fit of each compiles and fills caches, and does not count."""
    old.seconds(case), new.seconds(case)
    pairs: list[Times] = []
    while len(pairs) < most and (len(pairs) < 2 or np.sum(pairs) < ENOUGH):
        if len(pairs) % 2:
            after = new.seconds(case)
            pairs.append((old.seconds(case), after))
        else:
            pairs.append((old.seconds(case), new.seconds(case)))
    return min(before for before, _ in pairs), min(after for _, after in pairs)


def measure(source: Path, chosen: list[str], rounds: int, most: int) -> dict[str, list[Times]]:
    """The best times of every round, by case."""
    found: dict[str, list[Times]] = {}
    for _ in range(rounds):
        with running(source) as old, running(ROOT / "src") as new:
            for case in old.cases:
                if not chosen or any(case.startswith(start) for start in chosen):
                    before, after = alternate(old, new, case, most)
                    found.setdefault(case, []).append((before, after))
                    print(f"{case}: {1000 * before:.1f} -> {1000 * after:.1f} ms", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, list[Times]]) -> str:
    """Times and ratios of all cases, and the largest ratio."""
    lines = ["| fit | old, ms | new, ms | new / old | in single rounds |", "|---|---|---|---|---|"]
    ratios = {}
    for case, times in found.items():
        before, after = np.min(times, axis=0)
        single = [b / a for a, b in times]
        ratios[case] = after / before
        lines.append(
            f"| {case} | {1000 * before:.1f} | {1000 * after:.1f} | {ratios[case]:.2f} | "
            f"{min(single):.2f} to {max(single):.2f} |"
        )
    worst = max(ratios, key=ratios.__getitem__)
    mean = math.exp(float(np.mean(np.log(list(ratios.values())))))
    return "\n".join([*lines, "", f"Largest ratio {ratios[worst]:.2f} ({worst}), geometric mean {mean:.2f}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", help="anything that git knows: a commit, a tag, HEAD~20")
    parser.add_argument("--quick", action="store_true", help="one round of three repeats")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of up to 15 repeats; 3 by default")
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.relative_to(ROOT)}")
    parser.add_argument("--cases", nargs="+", default=[], metavar="START", help="only cases that start so")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve()
    if given.revision is None:
        parser.error("REVISION must be given: the one to compare with")
    with exported(given.revision) as source:
        found = measure(source, given.cases, 1 if given.quick else given.rounds, 3 if given.quick else MOST)
    if not found:
        parser.error(f"--cases must be the start of a case, got {given.cases!r}")
    print(table(found))
    if given.save:
        RESULT.write_text(f"# Speed against {_commit(given.revision)}, of {_commit('HEAD')}\n\n{table(found)}\n")
    return None


def _commit(revision: str) -> str:
    return subprocess.run(
        ["git", "log", "-1", "--format=%h (%s)", revision], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
