"""Parts of `factorization.py`: the choice of rank, outlier cells, attacks, offsets, ratings, grids, images and cost."""

from __future__ import annotations

import contextlib
import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from matrix_sets import (
    make_air,
    make_attack,
    make_flips,
    make_image,
    make_ratings,
    make_stars,
    make_weak_ratings,
    plant,
    shifted,
    spoil,
)
from sections import say, table
from sklearn.metrics import roc_auc_score

from selfpaced import SelfPacedMF
from selfpaced.datasets import make_low_rank
from selfpaced.factorization import engine, solve, start
from selfpaced.factorization import rank as rank_choice
from selfpaced.factorization.engine import Engine, WeightedSolve, from_csr

DATA_SEED, MODEL_SEED = 61000, 800


def rmse(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def fitted(X: Any, seed: int, fit: Any = None, **setting: Any) -> tuple[SelfPacedMF, float]:
    """The default fit, and its processor time."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the quality is in the table
        model = SelfPacedMF(random_state=MODEL_SEED + seed, **setting).fit(X, **(fit or {}))
    return model, time.process_time() - began


def entries_of(X: np.ndarray) -> Any:
    rows, columns = np.nonzero(~np.isnan(X))
    return from_csr(sp.csr_array((X[rows, columns], (rows, columns)), shape=X.shape))


def oracle(X: np.ndarray, wrong: np.ndarray, truth: np.ndarray) -> float:
    """Least squares on the entries known to be clean, from the true factors and at the true rank."""
    left, values, right = np.linalg.svd(truth, full_matrices=False)
    rank = int((values > 1e-9 * values[0]).sum())
    root = np.sqrt(values[:rank])
    U, V = np.ascontiguousarray(left[:, :rank] * root), np.ascontiguousarray(right[:rank].T * root)
    clean = entries_of(np.where(wrong, np.nan, X))
    for _ in range(60):
        Engine(compiled=True).sweep(clean, U, V, WeightedSolve(None, math.inf, 0.05, quadratic=True))
    return rmse(U @ V.T, truth)


# ------------------------------------------------------------------------------------------------- synthetic


KINDS = (
    *("offset 0", "offset 2", "offset 10", "row and column effects", "lognormal factors", "one-sided 30 %"),
    *("20 x 2000", "2000 x 10", "rank 20 in 200 x 200", "43 % wrong", "57 % wrong", "one-sided 45 %", "noise only"),
)


def offsets(quick: bool) -> None:
    count = 1 if quick else 10
    say(f"## Offsets, effects, one-sided errors, shapes: {count} realizations each\n")
    say("RMSE over the oracle's (least squares on the entries known to be clean, rank known); `error` is ours.")
    say("The first six are to be within 1.10. Narrow ones have 20 % missing and 10 % wrong.\n")
    rows = []
    for kind in KINDS:
        if kind == "noise only":
            continue
        ratios, errors, ranks, words = [], [], [], []
        for index in range(count):
            X, wrong, truth = shifted(DATA_SEED + index, kind)
            model, _ = fitted(X, index)
            errors.append(rmse(model.reconstruct(), truth))
            ratios.append(errors[-1] / oracle(X, wrong, truth))
            ranks.append(model.rank_)
            words.append(model.quality_)
        right = sum(word == "recovered" for word in words)
        ours = f"{np.mean(errors):.3f}"
        rows.append(
            [kind, ours, f"{np.median(ratios):.2f}", f"{max(ratios):.2f}", sorted(set(ranks)), f"{right} of {count}"]
        )
    table(["data", "error", "median ratio", "largest", "ranks", "called recovered"], rows)


def quality(quick: bool) -> None:
    count = 2 if quick else 20
    say(f"## Quality of the fit: {count} realizations each\n")
    say("A fit is good if its error is below half the spread of the true matrix; noise is told well by rank 0.\n")
    told_of(("offset 2", "43 % wrong", "57 % wrong", "one-sided 30 %", "one-sided 45 %", "noise only"), count)


def beyond(quick: bool) -> None:
    count = 2 if quick else 6
    say(f"## Quality where hardly any fit is good: {count} realizations each\n")
    say("With an offset, a row with half of its entries 10 too high is a row with another mean: no fit is good there.")
    say("Ranks 11 and 12 in 100 x 100 are beyond an L1 start, with 60 entries a row and a third of them wrong: given")
    say("the rank, and with ten times the sweeps, it is as far off.\n")
    told_of(("one-sided 45 %, offset -20", "rank 11", "rank 12"), count)


def told_of(kinds: tuple[str, ...], count: int) -> None:
    rows = []
    for kind in kinds:
        told: dict[tuple[bool, str], int] = {}
        for index in range(count):
            X, _, truth = shifted(DATA_SEED + 500 + index, kind)
            model, _ = fitted(X, index)
            near = rmse(model.reconstruct(), truth) < 0.5 * float(truth.std())
            good = model.rank_ == 0 if kind == "noise only" else bool(near)
            told[good, model.quality_] = told.get((good, model.quality_), 0) + 1
        rows.append(
            [
                kind,
                *(
                    "; ".join(f"{k} {w}" for (g, w), k in sorted(told.items()) if g is good) or "-"
                    for good in (True, False)
                ),
            ]
        )
    table(["data", "good fits were called", "bad fits were called"], rows)


# --------------------------------------------------------------------------------------------------- ratings


class BiasedALS:
    """The plain peer: squared loss, means and components, each with a ridge; rank 0 is the bias model."""

    def __init__(self, rank: int, ridge: float, seed: int, sweeps: int = 8, damping: float = 5.0) -> None:
        self.rank, self.ridge, self.seed, self.sweeps, self.damping = rank, ridge, seed, sweeps, damping

    def fit(self, i: np.ndarray, j: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> BiasedALS:
        rng = np.random.default_rng(self.seed)
        self.mean = float(y.mean())
        self.U, self.V = (0.1 * rng.standard_normal((n, self.rank)) for n in shape)
        self.a, self.b = np.zeros(shape[0]), np.zeros(shape[1])
        sides = ((i, j, "a", "b", "U", "V"), (j, i, "b", "a", "V", "U"))
        for _ in range(self.sweeps):
            for own, other, mine, theirs, left, right in sides:
                self._half(y - self.mean, own, other, mine, theirs, left, right)
        return self

    def _half(
        self, y: np.ndarray, own: np.ndarray, other: np.ndarray, mine: str, theirs: str, left: str, right: str
    ) -> None:
        order = np.argsort(own, kind="stable")
        starts = np.searchsorted(own[order], np.arange(len(getattr(self, mine)) + 1))
        penalty = np.diag([self.ridge] * self.rank + [self.damping])
        for k in range(starts.size - 1):
            at = order[starts[k] : starts[k + 1]]
            X = np.column_stack([getattr(self, right)[other[at]], np.ones(at.size)])
            target = y[at] - getattr(self, theirs)[other[at]]
            found = np.linalg.solve(X.T @ X + penalty, X.T @ target)
            getattr(self, left)[k], getattr(self, mine)[k] = found[:-1], found[-1]

    def predict(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        whole = self.mean + self.a[i] + self.b[j] + np.einsum("ij,ij->i", self.U[i], self.V[j])
        return np.clip(whole, 1, 5)


def best_als(made: dict[str, Any], ranks: tuple[int, ...], seed: int) -> tuple[BiasedALS, float]:
    """Rank and ridge by 5 % hidden ratings, then a fit to all."""
    began = time.process_time()
    i, j, y = made["rows"], made["columns"], made["stars"]
    hidden = np.random.default_rng([seed, 3]).random(y.size) < 0.05
    tried = {}
    for rank in ranks:
        for ridge in (3.0, 10.0) if rank else (1.0,):
            model = BiasedALS(rank, ridge, seed).fit(i[~hidden], j[~hidden], y[~hidden], made["shape"])
            tried[rank, ridge] = rmse(model.predict(i[hidden], j[hidden]), y[hidden])
    best = min(tried, key=tried.__getitem__)
    return BiasedALS(*best, seed).fit(i, j, y, made["shape"]), time.process_time() - began


def ratings(quick: bool) -> None:
    count = 1 if quick else 3
    say(f"## Ratings made with levels and five tastes, 30 push attackers among 630 users: {count} realizations\n")
    say("Test RMSE on honest ratings that no model saw; biased ALS chooses rank and ridge by hidden ratings, as we do.")
    say("AUC of the attackers by `row_gain_`, mean weight and mean absolute residual; to be >= .9 by one of them.\n")
    rows = []
    for dense in (False,) if quick else (False, True):
        for share in (0.0, 0.1, 0.3):
            kept = []
            for index in range(count):
                made = make_ratings(DATA_SEED + 1000 + index, share, dense)
                i, j, y = made["test"]
                X = (made["rows"], made["columns"], made["stars"])
                model, ours = fitted(X, index, bounds=(1, 5))
                bias, _ = best_als(made, (0,), MODEL_SEED + index)
                als, theirs = best_als(made, (5, 10), MODEL_SEED + index)
                off = np.bincount(X[0], model.sample_loss_) / np.bincount(X[0])
                kept.append(
                    [
                        *(rmse(m.predict(i, j), y) for m in (bias, als, model)),
                        *(roc_auc_score(made["fake"], s) for s in (-model.row_gain_, -model.row_weight_, off)),
                        *(model.rank_, y.size * 9, ours / theirs),
                    ]
                )
            means = np.mean(kept, axis=0)
            name = f"{'dense' if dense else 'sparse'}, {share:.0%} random"
            best = "ours" if means[2] < min(means[:2]) else "**peer**"
            rows.append(
                [name, *(f"{m:.4f}" for m in means[:3]), best, *(f"{m:.3f}" for m in means[3:6]), f"{means[6]:.1f}"]
            )
    table(["ratings", "bias model", "biased ALS", "ours", "first", "AUC gain", "weight", "residual", "rank"], rows)


def grids(quick: bool) -> None:
    count = 2 if quick else 10
    say(f"## Values on a grid: {count} realizations each\n")
    say("Stars from 1 to 5 are rounded and cut off: nothing is wrong but what rounding does, `found` are false alarms.")
    say("Zeros and ones of low rank have flips to be found: precision and recall of `outliers_`.\n")
    rows: list[list[Any]] = []
    for noise in (0.1, 0.3, 0.5, 0.7):
        kept = []
        for index in range(count):
            X, truth = make_stars(DATA_SEED + 3000 + index, noise)
            model, _ = fitted(X, index, bounds=(1, 5))
            kept.append([model.scale_, len(model.outliers_), rmse(model.reconstruct(), truth)])
        scale, found, error = np.mean(kept, axis=0)
        rows.append([f"stars, noise {noise}", f"{scale:.2f}", f"{found:.1f}", "-", "-", f"{error:.3f}"])
    for kind in ("blocks", "rectangle", "stripes"):
        for share in (0.05, 0.15):
            scales, sums = [], np.zeros(3)
            for index in range(count):
                X, flipped = make_flips(DATA_SEED + 3000 + index, kind, share)
                model, _ = fitted(X, index)
                right = flipped[model.outliers_["row"], model.outliers_["column"]].sum()
                sums += right, len(model.outliers_), flipped.sum()
                scales.append(model.scale_)
            rates = f"{sums[0] / max(sums[1], 1):.3f}", f"{sums[0] / sums[2]:.3f}"
            rows.append([f"{kind}, {share:.0%} flips", f"{np.mean(scales):.2f}", f"{sums[1] / count:.1f}", *rates, "-"])
    table(["data", "noise scale", "found", "precision", "recall", "error"], rows)


# ---------------------------------------------------------------------------------------------------- images


def principal_component_pursuit(X: np.ndarray, tol: float = 1e-7, most: int = 1000) -> tuple[np.ndarray, int]:
    """min ||L||_* + lam ||S||_1 with L + S = X where X was seen, by the inexact augmented Lagrangian.

    lam = 1 / sqrt(share seen * longest side), as Candes, Li, Ma and Wright set it for missing entries; S is free where
    nothing was seen.
    """
    seen = ~np.isnan(X)
    M = np.where(seen, X, 0.0)
    lam = 1 / math.sqrt(seen.mean() * max(X.shape))
    norm = np.linalg.norm(M, 2)
    Y = M / max(norm, np.abs(M).max() / lam)
    S, mu, ceiling = np.zeros_like(M), 1.25 / norm, 1.25e7 / norm
    size = np.linalg.norm(M)
    for step in range(1, most + 1):  # noqa: B007
        left, values, right = np.linalg.svd(M - S + Y / mu, full_matrices=False)
        L = (left * np.maximum(values - 1 / mu, 0)) @ right
        rest = M - L + Y / mu
        S = np.where(seen, np.sign(rest) * np.maximum(np.abs(rest) - lam / mu, 0), rest)
        gap = np.where(seen, M - L - S, 0.0)
        Y = np.where(seen, Y + mu * gap, 0.0)
        mu = min(1.5 * mu, ceiling)
        if np.linalg.norm(gap) < tol * size:
            break
    return L, step


def psnr(found: np.ndarray, image: np.ndarray) -> float:
    return -20 * math.log10(rmse(np.clip(found, 0, 1), image))


def images(quick: bool) -> None:
    sizes = (160, 480) if quick else (160, 160, 480, 1000)
    say(f"## Images with 30 % salt and pepper and 30 % missing, {len(sizes)} of them\n")
    say("Peak signal to noise in dB, processor time in the same run. Target: within .5 dB of principal component")
    say("pursuit (own implementation, inexact augmented Lagrangian to 1e-7) at <= .2 times its time. `fit alone` is")
    say("the time with rank, ridge and means given, over the pursuit's.\n")
    rows = []
    spoilt = spoil(make_image(DATA_SEED + 2999), 0)
    SelfPacedMF(2, center="both", random_state=0).fit(spoilt)  # compiles
    for index, size in enumerate(sizes):
        image = make_image(DATA_SEED + 2000 + index, size)
        X = spoil(image, DATA_SEED + 2000 + index)
        began = time.process_time()
        pursued, steps = principal_component_pursuit(X)
        theirs = time.process_time() - began
        model, ours = fitted(X, index)
        _, alone = fitted(X, index, rank=model.rank_, ridge=0.005, center=model.center_)
        a, b = psnr(pursued, image), psnr(model.low_rank_, image)
        times = f"{ours / theirs:.2f}", f"{alone / theirs:.2f}"
        rows.append(
            [size, f"{a:.2f} ({steps} steps)", f"{b:.2f}", f"{b - a:+.2f}", *times, model.rank_, model.quality_]
        )
    table(["size", "pursuit", "ours", "difference", "time ratio", "fit alone", "rank", "quality"], rows)


# ------------------------------------------------------------------------------------------------------ cost


def cost(quick: bool) -> None:
    rounds = 2 if quick else 5
    say("## Cost of the choice: processor time of the default over a fit with rank, ridge and means given\n")
    say(f"Medians of {rounds} rounds taken in turns. Target: below 2.\n")
    sizes = {"100 x 100": (100, 100, 0.4), "400 x 300": (400, 300, 0.4), "1500 x 1000": (1500, 1000, 0.7)}
    rows = []
    for name, (n, m, missing) in sizes.items():
        made = make_low_rank(n, m, 4, missing=missing, outliers=(1 - missing) / 3, random_state=DATA_SEED)
        X, spent = made.data + 2.0, {"auto": [], "given": []}  # type: ignore[var-annotated]
        for index in range(rounds + 1):
            for what, setting in (("auto", {}), ("given", {"rank": 4, "ridge": 0.005, "center": "both"})):
                model, seconds = fitted(X, index, **setting)
                if index:
                    spent[what].append(seconds)
            assert model.rank_ == 4
        auto, given = (float(np.median(spent[what])) for what in ("auto", "given"))
        rows.append([name, f"{int(np.isfinite(X).sum())}", f"{given:.2f}", f"{auto:.2f}", f"{auto / given:.2f}"])
    table(["matrix", "entries", "given, s", "default, s", "ratio"], rows)


# ---------------------------------------------------------------------------------------------------- lottery


def lottery(quick: bool) -> None:
    seeds = 3 if quick else 8
    say(f"## The rank does not depend on the seed: {seeds} seeds of the model on the same entries\n")
    say("RMSE of 10 % held-out entries. `best` is the smallest of all seeds and of a grid with given rank and ridge;")
    say("every seed is to be within 2 % of it. `means` are the means alone.\n")
    rows = []
    for name, (i, j, y), bounds in rating_sets():
        test = np.random.default_rng(DATA_SEED).random(y.size) < 0.1
        shape = int(i.max()) + 1, int(j.max()) + 1
        X = i[~test], j[~test], y[~test]

        def error(model: SelfPacedMF, at: Any = (i[test], j[test]), truth: Any = y[test]) -> float:
            return rmse(model.predict(*at), truth)

        def fit(seed: int, X: Any = X, shape: Any = shape, bounds: Any = bounds, **setting: Any) -> SelfPacedMF:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return SelfPacedMF(random_state=MODEL_SEED + seed, bounds=bounds, **setting).fit(X, shape=shape)

        models = [fit(seed) for seed in range(seeds)]
        errors = [error(model) for model in models]
        grid = [error(fit(0, rank=r, ridge=g, center="both")) for r in (4, 12) for g in (0.1, 0.35)]
        strong = fit(0, rank=4, ridge=1.0)
        best = min(*errors, *grid)
        rows.append(
            [
                name,
                f"{error(strong):.3f}",
                f"{best:.3f}",
                f"{min(errors):.3f} to {max(errors):.3f}",
                f"{max(errors) / best:.3f}",
                sorted({model.rank_ for model in models}),
                ", ".join(sorted({model.quality_ for model in models})),
                strong.quality_,
            ]
        )
    head = ["ratings", "means", "best", "all seeds", "worst / best", "ranks", "quality", "quality with ridge 1"]
    table(head, rows)


def rating_sets() -> Any:
    """Jester if it is in the data directory, then made ratings with strong, weak and no tastes."""
    path = Path(os.environ.get("SELFPACED_DATA", "")) / "ratings_jester_2500.npz"
    if path.exists():
        kept = np.load(path)
        yield "Jester, 2,500 x 100", (kept["row"], kept["column"], kept["rating"].astype(float)), (-10, 10)
    else:
        say("Jester is not in SELFPACED_DATA and is left out.\n")
    for taste in (0.35, 0.2, 0.0):
        yield f"made, tastes {taste}", make_weak_ratings(DATA_SEED, taste), (1, 5)


# ------------------------------------------------------------------------------------------------------ cells


def outlier_cells(quick: bool) -> None:
    count = 1 if quick else 3
    say(f"## Outlier cells in air-quality-like data, {count} realizations\n")
    say("Six correlated sensors with daily cycles, weather and heavy tails, 200 days x 144, a tenth missing. Clean: at")
    say("most 2 % of the cells listed. Planted 5 %, in column standard deviations: precision >= .85, recall >= .95.\n")
    rows = []
    for name, size in {"clean": None, "5 to 15 sd": (5, 15), "4 to 8 sd": (4, 8), "2 to 4 sd": (2, 4)}.items():
        sums, look, total = np.zeros(3), 0, 0
        for index in range(count):
            X = make_air(DATA_SEED + 4000 + index)
            X, wrong = (X, np.zeros(X.shape, bool)) if size is None else plant(X, index, *size)
            model, _ = fitted(X, index)
            hits = wrong[model.outliers_["row"], model.outliers_["column"]].sum()
            sums += hits, len(model.outliers_), wrong.sum()
            look += int((model.assessment_.levels() == 1).sum())
            total += int(np.isfinite(X).sum())
        rates = ("-", "-") if size is None else (f"{sums[0] / max(sums[1], 1):.3f}", f"{sums[0] / sums[2]:.3f}")
        rows.append([name, f"{sums[1] / total:.2%}", f"{look / total:.2%}", *rates])
    table(["planted", "likely errors", "worth a look", "precision", "recall"], rows)


# ---------------------------------------------------------------------------------------------------- attacks


def attacks(quick: bool) -> None:
    count = 1 if quick else 4
    say(f"## Push attacks: some raters give five items five stars, {count} realizations\n")
    say("Mean shift of the pushed items' predictions for honest raters; AUC of the attackers by `row_gain_`; RMSE of")
    say("a tenth of the honest ratings, which no model sees, and the same without an attack. Ten per cent of attackers")
    say("are the majority of those who rate a pushed item.\n")
    rows = []
    for share, settings in {0.1: (0, 1, 2, "auto"), 0.02: (0, "auto"), 0.05: (0, "auto"), 0.2: (0, "auto")}.items():
        kept = [attacked(DATA_SEED + 5000 + index, index, share, settings) for index in range(count)]
        for again in settings:
            values = [found[again] for found in kept]
            shift, *others = np.mean(values, axis=0)
            largest = f"{np.max(values, axis=0)[0]:+.2f}"
            shown = f"{shift:+.2f}", largest, *(f"{value:.3f}" for value in others)
            rows.append([f"reweight_rows={again}", f"{share:.0%}", *shown])
    table(["model", "attackers", "shift", "largest shift", "AUC", "RMSE attacked", "RMSE without attack"], rows)


def attacked(seed: int, index: int, share: float, settings: tuple[Any, ...]) -> dict[Any, list[float]]:
    """Shift, AUC and both errors of one attack, by how often rows are reweighted."""
    honest, everything, pushed, fake = make_attack(seed, share)
    users, shape, size = np.flatnonzero(~fake)[:, None], (fake.size, 400), honest[2].size
    test = np.random.default_rng(index).random(size) < 0.1
    seen = np.concatenate([~test, np.ones(everything[2].size - size, bool)])
    i, j, y = (part[test] for part in honest)
    clean, spoilt = (tuple(part[~test] for part in honest), tuple(part[seen] for part in everything))
    base, _ = fitted(clean, index, fit={"shape": shape}, bounds=(1, 5), reweight_rows=0)
    found = {}
    for again in settings:
        without, model = (
            fitted(X, index, fit={"shape": shape}, bounds=(1, 5), reweight_rows=again)[0] for X in (clean, spoilt)
        )
        shift = float((model.predict(users, pushed) - base.predict(users, pushed)).mean())
        errors = rmse(model.predict(i, j), y), rmse(without.predict(i, j), y)
        found[again] = [shift, roc_auc_score(fake, -model.row_gain_), *errors]
    return found


# --------------------------------------------------------------------------------------------------- ablation


def ablation(quick: bool) -> None:
    count = 1 if quick else 3
    say(f"## What each mechanism earns: error without it less error with it, {count} realizations\n")
    say("A mechanism whose difference is within its standard error in every row would go.\n")
    switches: dict[str, list[Any]] = {
        "row refit": [patch.object(solve.Solver, "_refit", lambda *_, **__: 0)],
        "refit of all rows of few entries": [patch.object(solve, "is_thin", lambda *_, **__: False)],
        "guarded start": [patch.object(rank_choice, "LARGE_REST", math.inf)],
        "its densest values": [patch.object(start, "crowded", lambda values: float(np.median(values)))],
        "no means as a choice": [patch.object(SelfPacedMF, "_means", lambda _: (engine.Means(True, True),))],
        "spare factors": [patch.object(module, "SPARE", 0) for module in (start, solve)],
        "a ridge of 0.03": [patch.object(rank_choice, "RIDGE_SHARES", (0.35, 0.1, 0.005))],
        "floor of the rank": [patch.object(start, "RANK_FLOOR", 1e-9)],
        "further components": [patch.object(solve, "further_components", lambda *_: None)],
        "rank that shows": [patch.object(rank_choice, "CLEAR", math.inf)],
        "grid": [patch.object(engine, "grid_of", lambda _: None)],
        "fit on the grid": [patch.object(solve.Solver, "_on_the_grid", lambda _, run: run)],
        "longer polish": [patch.object(solve, "LONGER", 1)],
    }
    rows = []
    for name, make in ablation_cells().items():
        off: dict[str, list[float]] = {what: [] for what in switches}
        whole = []
        for index in range(count):
            X, error = make(DATA_SEED + 6000 + index)
            whole.append(error(fitted(X, index)[0]))
            for what, patches in switches.items():
                with contextlib.ExitStack() as stack:
                    for one in patches:
                        stack.enter_context(one)
                    off[what].append(error(fitted(X, index)[0]) - whole[-1])
        shown = [f"{np.mean(v):+.4f} ± {np.std(v) / math.sqrt(max(count - 1, 1)):.4f}" for v in off.values()]
        rows.append([name, f"{np.mean(whole):.4f}", *shown])
    table(["data", "error", *switches], rows)


def ablation_cells() -> dict[str, Callable[[int], tuple[Any, Callable[[SelfPacedMF], float]]]]:
    """Data and the error of a fitted model, by name: RMSE, or 1 - F1 of the listed outliers."""

    def of_kind(kind: str) -> Callable[[int], Any]:
        def make(seed: int) -> Any:
            X, _, truth = shifted(seed, kind)
            return X, lambda model: rmse(model.reconstruct(), truth)

        return make

    def image(seed: int) -> Any:
        whole = make_image(seed, 300)
        return spoil(whole, seed), lambda model: rmse(np.clip(model.low_rank_, 0, 1), whole)

    def stars(seed: int) -> Any:
        made = make_ratings(seed, 0.1)
        i, j, y = made["test"]
        return (made["rows"], made["columns"], made["stars"]), lambda model: rmse(model.predict(i, j), y)

    def false_alarms(seed: int) -> Any:
        X, _ = make_stars(seed, 0.3)
        return X, lambda model: len(model.outliers_) / np.isfinite(X).sum()

    def spare(seed: int) -> Any:
        X, _ = make_stars(seed, 0.5)
        return X, lambda model: float(model.rank_ - 1)

    def flips(seed: int) -> Any:
        X, flipped = make_flips(seed, "blocks", 0.1)

        def missed(model: SelfPacedMF) -> float:
            hits = flipped[model.outliers_["row"], model.outliers_["column"]].sum()
            return float(1 - 2 * hits / (len(model.outliers_) + flipped.sum()))

        return X, missed

    kinds = ("offset 2", "2000 x 10", "43 % wrong", "57 % wrong", "one-sided 45 %", "rank 20 in 200 x 200")
    kinds += ("one-sided 30 %", "lognormal factors", "20 x 2000")
    others = {"image": image, "ratings": stars, "stars: listed although right": false_alarms, "flips: 1 - F1": flips}
    return {**{kind: of_kind(kind) for kind in kinds}, **others, "stars: rank above 1": spare}


PARTS = {
    "lottery": lottery,
    "cells": outlier_cells,
    "attacks": attacks,
    "ablation": ablation,
    "offsets": offsets,
    "quality": quality,
    "beyond": beyond,
    "ratings": ratings,
    "grids": grids,
    "images": images,
    "cost": cost,
}
