"""Robust matrix factorization: accuracy on the paper's synthetic set, speed and memory against implicit's ALS.

    python benchmarks/factorization.py [--quick] [--save] [--parts PART ...]

Seeds of data (from 90000, for the harder settings from 95000) and of models (from 700) are apart. The
defaults were chosen on others, with one exception: the rescue was improved after a failure on the data of seed 90010.
Times are CPU seconds of this process, taken in turns with the peer's, because the machine may be shared.
"""

from __future__ import annotations

import math
import multiprocessing
import re
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from matrix_parts import PARTS as MATRIX_PARTS
from sections import main, say, table

from selfpaced import PRMF, SelfPacedMF
from selfpaced.datasets import make_low_rank
from selfpaced.factorization.engine import Engine, WeightedSolve, from_csr
from selfpaced.factorization.start import random_factors
from selfpaced.pacing import Fixed
from selfpaced.regularizers import get

RULES = ("hard", "mixture", "huber", "l1l2", "cauchy", "welsch")
PAPER = {
    "PRMF": (0.1528, 0.0994),
    "hard": (0.0949, 0.0672),
    "mixture": (0.0625, 0.0475),
    "huber": (0.0627, 0.0476),
    "l1l2": (0.0650, 0.0493),
    "cauchy": (0.0620, 0.0472),
    "welsch": (0.0596, 0.0455),
}
GIVEN: dict[str, Any] = {"rank": 4, "center": None, "ridge": 0.005}  # the paper's model: nothing is to be found
HQ_LAMS = (0.5, 0.8, 1.2, 2.0, 3.0)
DATA_SEED, HARD_SEED, MODEL_SEED = 90000, 95000, 700


def off_by(fitted: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    off = fitted - truth
    return float(np.sqrt(np.mean(off**2))), float(np.mean(np.abs(off)))


def oracle(made: Any, rank: int) -> tuple[float, float]:
    """Least squares on the entries known to be clean, from the true factors: what no method can know."""
    clean = np.where(made.outlier_mask, np.nan, made.data)
    rows, columns = np.nonzero(~np.isnan(clean))
    entries = from_csr(sp.csr_array((clean[rows, columns], (rows, columns)), shape=clean.shape))
    U, V = made.U[:, :rank].copy(), made.V[:, :rank].copy()
    engine = Engine(compiled=True)
    for _ in range(60):
        engine.sweep(entries, U, V, WeightedSolve(None, math.inf, 0.05, quadratic=True))
    return off_by(U @ V.T, made.truth)


def realizations(count: int, first: int, **setting: Any) -> Iterator[tuple[int, Any]]:
    for index in range(count):
        yield index, make_low_rank(random_state=first + index, **setting)


def measure(
    models: dict[str, Callable[[int], Any]], count: int, first: int = DATA_SEED, **setting: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """Errors of every model on the same realizations, and the oracle's."""
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in models}
    best = []
    for index, made in realizations(count, first, **setting):
        best.append(oracle(made, 4))
        for name, make in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # half-quadratic runs that end at max_sweeps: part of the comparison
                model = make(MODEL_SEED + index).fit(made.data)
            found = off_by(model.reconstruct(), made.truth)
            results[name].append((*found, model.rank_, model.n_iter_, getattr(model, "n_rescued_", 0)))
    return {name: np.array(values) for name, values in results.items()}, np.array(best)


def summary(name: str, found: np.ndarray, paper: Any = None) -> list[str]:
    return [
        name,
        f"{found[:, 0].mean():.4f} ± {found[:, 0].std():.4f}",
        f"{found[:, 1].mean():.4f}",
        f"{found[:, 0].max():.4f}",
        f"{int((found[:, 0] > 0.07).sum())}",
        f"{found[:, 3].mean():.0f}" if found.shape[1] > 3 else "",
        f"{paper[0]:.4f} / {paper[1]:.4f}" if paper else "",
    ]


def accuracy(quick: bool) -> None:
    count = 5 if quick else 20
    say(f"## The paper's synthetic set, {count} realizations, one default setting\n")
    say("100 x 100, rank 4, 40 % missing, 20 % gross errors. `SelfPacedMF(regularizer=rule)` finds the rank itself,")
    say("the other models are given it. Targets: RMSE <= 0.0515, MAE <= 0.0395 for every rule, none above 0.07.\n")
    models: dict[str, Callable[[int], Any]] = {
        "PRMF, no continuation": lambda seed: PRMF(4, continuation=False, random_state=seed),
        "PRMF": lambda seed: PRMF(4, random_state=seed),
        "PRMF + rescue + polish, no pacing": lambda seed: PRMF(4, rescue=True, polish=8, random_state=seed),
    }
    for rule in RULES:
        models[f"SelfPacedMF {rule}"] = lambda seed, rule=rule: SelfPacedMF(regularizer=rule, random_state=seed)
    models["SelfPacedMF welsch, no rescue, no polish"] = lambda seed: SelfPacedMF(
        regularizer="welsch", rescue=False, polish=0, random_state=seed, **GIVEN
    )
    for init in ("warm", "random"):
        for lam in HQ_LAMS:
            name = f"half-quadratic welsch, {'warm' if init == 'warm' else 'cold'}, lam = {lam}"
            models[name] = lambda seed, lam=lam, init=init: SelfPacedMF(
                regularizer="welsch", pace=Fixed(lam), init=init, rescue=False, polish=0, random_state=seed, **GIVEN
            )
    found, best = measure(models, count)
    rows = [summary("oracle (clean entries known)", best)]
    for name, values in found.items():
        rule = name.removeprefix("SelfPacedMF ")
        rows.append(summary(name, values, PAPER.get(rule) if rule != name or name == "PRMF" else None))
    table(["model", "RMSE", "MAE", "max RMSE", "above 0.07", "sweeps", "paper RMSE / MAE"], rows)
    ranks = np.concatenate(
        [values[:, 2] for name, values in found.items() if name.removeprefix("SelfPacedMF ") in RULES]
    )
    worst = max(values[:, 0].mean() for name, values in found.items() if name.removeprefix("SelfPacedMF ") in RULES)
    above = worst / best[:, 0].mean() - 1
    say(f"Rank 4 found in {(ranks == 4).mean():.1%} of these runs; the worst rule is {above:.1%} above the oracle.\n")


def hard_settings(quick: bool) -> None:
    count = 4 if quick else 8
    settings = {
        "43 % of the observed entries wrong": {"outliers": 0.26},
        "60 % missing, a third of the rest wrong": {"missing": 0.6, "outliers": 0.4 / 3},
        "60 % missing, half of the rest wrong": {"missing": 0.6, "outliers": 0.2},
    }
    say(f"## Harder settings, {count} realizations each\n")
    say("A failure is an RMSE above 1.5 times the oracle's on the same realization.\n")
    for title, setting in settings.items():
        models: dict[str, Callable[[int], Any]] = {
            "PRMF": lambda seed: PRMF(4, random_state=seed),
            "PRMF + rescue + polish, no pacing": lambda seed: PRMF(4, rescue=True, polish=8, random_state=seed),
        }
        for rule in RULES:
            models[f"SelfPacedMF {rule}"] = lambda seed, rule=rule: SelfPacedMF(regularizer=rule, random_state=seed)
        found, best = measure(models, count, HARD_SEED, **setting)
        rows = [["oracle", f"{best[:, 0].mean():.4f}", f"{best[:, 1].mean():.4f}", f"{best[:, 0].max():.4f}", "", ""]]
        for name, values in found.items():
            failures = int((values[:, 0] > 1.5 * best[:, 0]).sum())
            rows.append(
                [
                    name,
                    f"{values[:, 0].mean():.4f}",
                    f"{values[:, 1].mean():.4f}",
                    f"{values[:, 0].max():.4f}",
                    failures,
                    f"{values[:, 3].mean():.0f}",
                ]
            )
        say(f"### {title}\n")
        table(["model", "RMSE", "MAE", "max RMSE", "failures", "sweeps"], rows)


def ranks(quick: bool) -> None:
    count = 3 if quick else 6
    say(f'## The rank found by "auto", {count} realizations per rank (target: 95 %)\n')
    rows, right = [], []
    for rank in range(1, 11):
        hits = []
        for index in range(count):
            made = make_low_rank(rank=rank, random_state=DATA_SEED + 1000 * rank + index)
            hits.append(SelfPacedMF(random_state=MODEL_SEED + index).fit(made.data).rank_ == rank)
        rows.append([rank, f"{sum(hits)} of {count}"])
        if 2 <= rank <= 8:
            right += hits
    table(["true rank", "found"], rows)
    say(f"Ranks 2 to 8: {np.mean(right):.1%}.\n")


def big(rows: int, columns: int, rank: int, size: int, dtype: Any = np.float64) -> tuple[Any, np.ndarray, np.ndarray]:
    """A sparse low-rank matrix with a third of its entries grossly wrong."""
    rng = np.random.default_rng(DATA_SEED)
    flat = np.unique(rng.integers(0, rows * columns, int(size * 1.02)))
    flat = np.sort(rng.permutation(flat)[:size])
    U, V = rng.standard_normal((rows, rank)).astype(dtype), rng.standard_normal((columns, rank)).astype(dtype)
    i, j = flat // columns, (flat % columns).astype(np.int32)
    del flat
    y = np.empty(i.size, dtype)
    for low in range(0, i.size, 1 << 20):
        part = slice(low, low + (1 << 20))
        y[part] = np.einsum("ij,ij->i", U[i[part]], V[j[part]])
    y += 0.1 * rng.standard_normal(y.size)
    wrong = rng.random(y.size) < 1 / 3
    y[wrong] += rng.uniform(-20, 20, int(wrong.sum()))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=rows))]).astype(np.int32)
    return sp.csr_array((y, j, indptr), shape=(rows, columns)), U, V


def sweep_time(engine: Engine, X: Any, rule: str | None, rank: int, sweeps: int) -> float:
    entries = from_csr(X)
    U, V = random_factors(entries, rank, np.random.default_rng(MODEL_SEED))
    step = WeightedSolve(None if rule is None else get(rule), 2.0, 0.1, 0.1)
    engine.sweep(entries, U, V, WeightedSolve(None, math.inf, 1.0, 0.1))
    began = time.process_time()
    for _ in range(sweeps):
        engine.sweep(entries, U, V, step)
    return (time.process_time() - began) / sweeps


def implicit_time(X: Any, rank: int, threads: int, cg: bool, sweeps: int) -> float:
    """CPU seconds of one iteration: the difference between a long and a short fit."""
    from implicit.als import AlternatingLeastSquares

    positive = sp.csr_matrix((np.abs(X.data).astype(np.float32), X.indices, X.indptr), shape=X.shape)
    spent = []
    for iterations in (2, 2 + sweeps):
        model = AlternatingLeastSquares(
            factors=rank, regularization=0.1, iterations=iterations, use_cg=cg, use_gpu=False, num_threads=threads
        )
        began = time.process_time()
        model.fit(positive, show_progress=False)
        spent.append(time.process_time() - began)
    return (spent[1] - spent[0]) / sweeps


def speed(quick: bool) -> None:
    shape, rank, size = ((1000, 500), 10, 50_000) if quick else ((5000, 2000), 10, 500_000)
    say(f"## Speed: {shape[0]} x {shape[1]}, rank {rank}, {size} entries\n")
    say("CPU time of one sweep (rows and columns once) over that of one iteration of implicit's ALS with Cholesky on")
    say("the same sparsity pattern (float32, its own objective), medians of rounds taken in turns. Target: <= 0.45.\n")
    X, _, _ = big(*shape, rank, size)
    X32 = X.astype(np.float32)
    sweeps, rounds = (3, 3) if quick else (6, 5)
    for threads in (1, 2):
        fast = Engine(True, threads)
        timed: dict[str, Callable[[], float]] = {}
        if find_spec("implicit") is not None:
            timed["implicit ALS, Cholesky"] = lambda threads=threads: implicit_time(X, rank, threads, False, sweeps)
            timed["implicit ALS, conjugate gradient"] = lambda threads=threads: implicit_time(
                X, rank, threads, True, sweeps
            )
        for rule in ("mixture", "hard", "huber", "l1l2", "cauchy", "welsch", None):
            label = f"numba, {rule or 'plain L1'}"
            timed[label] = lambda fast=fast, rule=rule: sweep_time(fast, X, rule, rank, sweeps)
        timed["numba, mixture, float32"] = lambda fast=fast: sweep_time(fast, X32, "mixture", rank, sweeps)
        timed["numba, barron (not fused)"] = lambda fast=fast: sweep_time(fast, X, "barron", rank, sweeps)
        if threads == 1:
            timed["NumPy, mixture"] = lambda: sweep_time(Engine(False), X, "mixture", rank, 2)
        for run in timed.values():
            run()  # compile, and warm the caches
        spent = {name: [] for name in timed}  # type: ignore[var-annotated]
        for _ in range(rounds):
            for name, run in timed.items():
                spent[name].append(run())
        peer = float(np.median(spent.get("implicit ALS, Cholesky", [math.nan])))
        rows = [[name, f"{1e3 * np.median(t):.1f}", f"{np.median(t) / peer:.2f}"] for name, t in spent.items()]
        say(f"### {threads} thread{'s' * (threads > 1)}\n")
        table(["sweep of", "ms", "ratio to implicit (Cholesky)"], rows)
    for given in (rank, "auto"):
        began = time.process_time()
        model = SelfPacedMF(given, random_state=MODEL_SEED).fit(X)
        spent_whole = time.process_time() - began
        rng = np.random.default_rng(1)
        _, U, V = big(*shape, rank, size)
        i, j = rng.integers(0, shape[0], 50_000), rng.integers(0, shape[1], 50_000)
        off = model.reconstruct(i, j) - np.einsum("ij,ij->i", U[i], V[j])
        say(
            f"Whole default path, rank={given!r}: {model.n_iter_} sweeps (target <= 50), {spent_whole:.1f} s CPU, rank "
            f"{model.rank_}, RMSE of all entries, seen or not, {np.sqrt(np.mean(off**2)):.4f} (noise 0.1)."
        )
    say()


def memory(quick: bool) -> None:
    shape, rank, size = ((1000, 500), 10, 50_000) if quick else ((5000, 2000), 10, 500_000)
    say("## Memory\n")
    SelfPacedMF(2, random_state=0).fit(np.random.default_rng(0).standard_normal((30, 30)))  # imports and compiles
    for dtype in (np.float64, np.float32):
        X, _, _ = big(*shape, rank, size, dtype)
        stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        tracemalloc.start()
        model = SelfPacedMF(rank, random_state=MODEL_SEED).fit(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        say(
            f"{np.dtype(dtype).name}: {size} stored entries of {stored / 1e6:.1f} MB; the fit allocates at most "
            f"{peak / 1e6:.1f} MB on top, {peak / stored:.2f} times; with the input {1 + peak / stored:.2f} times "
            f"(target <= 4). {len(model.outliers_)} outliers listed."
        )
    say()


def resident(field: str) -> float:
    """Memory of this process in MB, now (VmRSS) or at most (VmHWM); ru_maxrss would count the parent's, too."""
    found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else math.nan


def large_fit(folder: str, who: str) -> list[float]:
    """In a process of its own: seconds per sweep, memory in MB before the data and at most, and the error."""
    small = sp.csr_array(np.random.default_rng(0).random((30, 30), dtype=np.float32))
    if who == "implicit":
        implicit_time(small, 2, 1, False, 1)
    else:
        SelfPacedMF(2, center=None, ridge=0.005, random_state=0).fit(small)
    before = resident("VmRSS")
    data = np.load(f"{folder}/entries.npz")
    X = sp.csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))
    if who == "implicit":
        seconds, error = implicit_time(X, 10, 1, False, 3), math.nan
    else:
        began = time.process_time()
        model = SelfPacedMF(10, center=None, ridge=0.005, random_state=MODEL_SEED).fit(X)
        seconds = (time.process_time() - began) / model.n_iter_
        off = model.reconstruct(data["i"], data["j"]) - data["truth"]
        error = float(np.sqrt(np.mean(off**2)))
    return [seconds, before, resident("VmHWM"), error]


def large(quick: bool) -> None:
    shape, size = ((10_000, 1000), 1_000_000) if quick else ((100_000, 1000), 10_000_000)
    say(f"## Large: {shape[0]} x {shape[1]}, {size} entries, rank 10, float32, one thread\n")
    say("Each in a process of its own: CPU seconds per sweep (ours with everything else counted) and peak memory with")
    say("the input. To reach: at most 1.2 times implicit's time and 1.1 times its memory. Libraries are what a process")
    say("holds after a fit to 30 x 30 entries, numba's compiler included.\n")
    rng, rows = np.random.default_rng(2), []
    i, j = rng.integers(0, shape[0], 100_000), rng.integers(0, shape[1], 100_000)
    with tempfile.TemporaryDirectory() as folder:
        X, U, V = big(*shape, 10, size, np.float32)
        truth = np.einsum("ij,ij->i", U[i], V[j])
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        np.savez(f"{folder}/entries.npz", **parts, i=i, j=j, truth=truth)
        del X, U, V, parts
        for who in ("ours", *(["implicit"] if find_spec("implicit") else [])):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, before, peak, error = pool.apply(large_fit, (folder, who))
            memory = f"{before:.0f}", f"{peak:.0f}", f"{peak - before:.0f}"
            rows.append([who, f"{seconds:.2f}", *memory, f"{error:.4f}" if who == "ours" else "-"])
    head = ["model", "s per sweep", "libraries, MB", "peak MB", "of data and fit, MB"]
    table([*head, "RMSE of all entries, seen or not"], rows)


PARTS = {
    "accuracy": accuracy,
    "hard": hard_settings,
    "rank": ranks,
    **MATRIX_PARTS,
    "memory": memory,
    "speed": speed,
    "large": large,
}


if __name__ == "__main__":
    main("factorization", "Robust matrix factorization", __doc__, PARTS)
