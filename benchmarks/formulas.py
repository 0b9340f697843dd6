"""What running the rules' own formulas costs: every rule in the inner loops, against an older revision.

    python benchmarks/formulas.py REVISION [--rounds 15] [--save]

Both versions are loaded into this process and take turns, so that a busy moment hits both; best processor time of
all rounds on one thread. "factorization" is one compiled sweep at rank 5 in double precision, "clustering" one sweep
of ten restarts in single precision, "logistic" one value and gradient. To hold: no ratio above 1.05; where a task's
code is the same in both versions, its column tells how far the figures can be trusted. Below the table: what the first
sweep costs when nothing is compiled, and when the machine code is on disk.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from against import ROOT, exported
from threadpoolctl import threadpool_limits

RESULT = ROOT / "benchmarks" / "results" / "formulas.md"
FORMER = "older"  # the name under which the old version is imported
PACES = {"channel": 0.3, "logarithmic": 0.3}  # of the rules whose pace is bounded; 1.1 for the others
FIRST = """
import sys, time, numpy as np, scipy.sparse as sp
from selfpaced.factorization import engine, entries
from selfpaced.regularizers import get
Solve = getattr(engine, "WeightedSolve", None) or engine.Step
data = entries.from_csr(sp.csr_array(np.random.default_rng(0).normal(size=(30, 20))))
start = time.process_time()
engine.Engine(True).sweep(data, np.ones((30, 2)), np.ones((20, 2)), Solve(get("welsch"), 1.0, 0.1, 0.1))
print(time.process_time() - start)
"""
PLACES = 5  # times that the data of a task are made
Work = Callable[[], object]


def load(source: Path) -> None:
    """Import the package of another directory under the name of the former version."""
    package = source / "selfpaced"
    spec = importlib.util.spec_from_file_location(
        FORMER, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[FORMER] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[FORMER])


def factorization(version: str, rule: Any, lam: float) -> Work:
    engine = importlib.import_module(f"{version}.factorization.engine")
    rng = np.random.default_rng(0)
    X = sp.random_array((1000, 800), density=0.2, format="csr", rng=rng)
    X.data[:] = rng.normal(size=X.nnz)
    entries = importlib.import_module(f"{version}.factorization.entries").from_csr(X)
    U, V = rng.normal(size=(1000, 5)) / 2, rng.normal(size=(800, 5)) / 2
    solve = (getattr(engine, "WeightedSolve", None) or engine.Step)(rule, lam, 0.1, 0.1)
    return lambda: engine.Engine(True).sweep(entries, U.copy(), V.copy(), solve)


def clustering(version: str, rule: Any, lam: float) -> Work:
    kernels = importlib.import_module(f"{version}.clustering.kernels")
    rng = np.random.default_rng(0)
    blocks = tuple(rng.normal(size=(2000, d)).astype(np.float32) for d in (20, 50))
    views = kernels.Views(blocks)
    centers, norms = [block[rng.integers(0, 2000, (10, 10))] for block in blocks], views.norms()
    unit = 20.0 if rule.power is None else 1.0
    cost = importlib.import_module(f"{version}.clustering.cost").Cost(rule, lam if unit > 1 else 4 * lam, unit)
    return lambda: kernels.sweep(views, norms, centers, cost)


def logistic(version: str, rule: Any, lam: float) -> Work:
    objective = importlib.import_module(f"{version}.linear.objective")
    rng = np.random.default_rng(0)
    made = objective.Objective([rng.normal(size=(20_000, 20))], rng.integers(0, 2, 20_000), 2)
    made.latent = objective.Latent(rule, lam)
    x = rng.normal(size=21) / 3
    return lambda: made(x)


def ratio(task: Callable[[str, Any, float], Work], name: str, rounds: int) -> float:
    """Best time of the new version over that of the old one; data are made anew, as their place in memory is luck."""
    lam = PACES.get(name, 1.1)
    best = np.full(2, np.inf)
    for _ in range(PLACES):
        both = [
            task(version, importlib.import_module(f"{version}.regularizers").get(name), lam)
            for version in (FORMER, "selfpaced")
        ]
        for _ in range(rounds):
            for column, work in enumerate(both):
                start = time.process_time()
                work()
                best[column] = min(best[column], time.process_time() - start)
    return float(best[1] / best[0])


def first_sweep(source: Path) -> tuple[float, float]:
    """Best seconds of a process's first sweep: with nothing compiled, and with the machine code on disk."""
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, PYTHONPATH=str(source), NUMBA_CACHE_DIR=folder)
            command = [sys.executable, "-c", FIRST]
            for times in (cold, warm):
                times.append(float(subprocess.run(command, env=env, check=True, capture_output=True).stdout))
    return min(cold), min(warm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="what to compare with")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.name}")
    arguments = parser.parse_args()
    from selfpaced.regularizers import REGISTRY, Regularizer

    tasks = (factorization, clustering, logistic)
    lines = [
        f"# Every rule in the inner loops: new / old ({arguments.revision})",
        "",
        "| rule | " + " | ".join(task.__name__ for task in tasks) + " |",
        "|---" * (len(tasks) + 1) + "|",
    ]
    with exported(arguments.revision) as source, threadpool_limits(1):
        load(source)
        for name, rule in REGISTRY.items():
            if issubclass(rule, Regularizer):
                found = [ratio(task, name, arguments.rounds) for task in tasks]
                lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in found) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
        old, new = first_sweep(source), first_sweep(ROOT / "src")
    lines += [
        "",
        f"First sweep of a process: {old[0]:.1f} -> {new[0]:.1f} s with nothing compiled, "
        f"{old[1]:.2f} -> {new[1]:.2f} s with the machine code on disk.",
    ]
    print("\n".join(lines))
    if arguments.save:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
