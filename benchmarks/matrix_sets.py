"""Matrices for `factorization.py`: offsets and shapes, stars with attacks, grids, images with salt and pepper."""

from __future__ import annotations

from typing import Any

import numpy as np

from selfpaced.datasets import make_low_rank


def shifted(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries, which are wrong, and the truth."""
    rng = np.random.default_rng([seed, 7])
    shapes = {"20 x 2000": (20, 2000, 3), "2000 x 10": (2000, 10, 2), "rank 20 in 200 x 200": (200, 200, 20)}
    shapes |= {"rank 11": (100, 100, 11), "rank 12": (100, 100, 12)}
    few = {"missing": 0.2, "outliers": 0.1} if kind in ("20 x 2000", "2000 x 10") else {}
    shares = {"43 % wrong": 0.26, "57 % wrong": 0.34}
    one_sided = {"one-sided 30 %": 0.3, "one-sided 45 %": 0.45, "one-sided 45 %, offset -20": 0.45}
    outliers = 0.0 if kind in one_sided else shares.get(kind, few.get("outliers", 0.2))
    made = make_low_rank(
        *shapes.get(kind, (100, 100, 4)), missing=few.get("missing", 0.4), outliers=outliers, random_state=seed
    )
    X, wrong, truth = made.data, made.outlier_mask, made.truth
    if kind in one_sided:
        wrong = ~np.isnan(X) & (rng.random(X.shape) < one_sided[kind])
        X = X + 10.0 * wrong
    level: Any = 0.0
    if "offset" in kind:
        level = float(kind.split()[-1])
    elif kind == "row and column effects":
        level = 3 * rng.standard_normal((100, 1)) + 3 * rng.standard_normal(100)
    elif kind == "lognormal factors":
        level = np.exp(rng.standard_normal((100, 4)) / 2) @ np.exp(rng.standard_normal((4, 100)) / 2) - truth
    elif kind == "noise only":
        level = -truth
    return X + level, wrong, truth + level


def make_ratings(seed: int, random_share: float, dense: bool = False) -> dict[str, Any]:
    """Stars from 1 to 5 by levels of users and items and five tastes; a twentieth of the users push one item."""
    rng = np.random.default_rng(seed)
    users, items, attackers = 600, 400, 30
    level = 3.5 + 0.4 * rng.standard_normal((users, 1)) + 0.5 * rng.standard_normal(items)
    truth = level + 0.35 * rng.standard_normal((users, 5)) @ rng.standard_normal((5, items))
    popularity = rng.pareto(2.0, items) + 0.3
    active = rng.pareto(2.0, users) + 0.5
    chance = np.outer(active / active.mean(), popularity / popularity.mean()) * (0.3 if dense else 0.12)
    i, j = np.nonzero(rng.random(truth.shape) < np.minimum(chance, 0.9))
    stars = np.clip(np.rint(truth[i, j] + 0.6 * rng.standard_normal(i.size)), 1, 5)
    test = rng.random(i.size) < 0.1
    careless = ~test & (rng.random(i.size) < random_share)
    stars[careless] = rng.integers(1, 6, careless.sum())
    fake_i = np.repeat(np.arange(users, users + attackers), 41)
    filler = np.concatenate([rng.choice(items, 40, replace=False) for _ in range(attackers)]).reshape(attackers, 40)
    pushed = int(np.argsort(popularity)[items // 2])
    filler[filler == pushed] = (pushed + 1) % items
    fake_j = np.column_stack([filler, np.full(attackers, pushed)]).ravel()
    fake = np.clip(np.rint(3.5 + rng.standard_normal(fake_j.size)), 1, 5)
    fake[40::41] = 5
    lines_ = np.unique(np.column_stack([fake_i, fake_j]), axis=0, return_index=True)[1]
    train = ~test
    return {
        "rows": np.concatenate([i[train], fake_i[lines_]]),
        "columns": np.concatenate([j[train], fake_j[lines_]]),
        "stars": np.concatenate([stars[train], fake[lines_]]),
        "test": (i[test], j[test], stars[test]),
        "fake": np.arange(users + attackers) >= users,
        "shape": (users + attackers, items),
    }


def make_weak_ratings(seed: int, taste: float, users: int = 1500, items: int = 90) -> tuple[Any, ...]:
    """Bounded ratings of unequal raters with four weak tastes: rows, columns, ratings."""
    rng = np.random.default_rng(seed)
    level = 3 + 0.5 * rng.standard_normal((users, 1)) + 0.4 * rng.standard_normal(items)
    tastes = taste * rng.standard_normal((users, 4)) @ rng.standard_normal((4, items))
    noise = 0.8 * np.exp(0.5 * rng.standard_normal((users, 1)))
    values = np.clip(level + tastes + noise * rng.standard_normal((users, items)), 1, 5)
    active = rng.pareto(2.5, users) + 0.4
    rows, columns = np.nonzero(rng.random(values.shape) < np.minimum(0.35 * active[:, None] / active.mean(), 0.95))
    return rows, columns, values[rows, columns]


def make_stars(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A small matrix of stars from 1 to 5, levels and one taste rounded and cut off; entries and the truth."""
    rng = np.random.default_rng(seed)
    level = 3 + 0.5 * rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal(40)
    truth = level + 0.6 * rng.standard_normal((60, 1)) * rng.standard_normal(40)
    stars = np.clip(np.rint(truth + noise * rng.standard_normal(truth.shape)), 1, 5)
    stars[rng.random(truth.shape) < 0.4] = np.nan
    return stars, np.clip(truth, 1, 5)


def make_flips(seed: int, kind: str, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Zeros and ones of low rank, some flipped, a fifth missing; entries and which of them are flipped."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, (100, 1)), rng.integers(0, 4, 100)
    truth = {"blocks": one == other, "rectangle": (one < 2) & (other < 2), "stripes": (one < 2) ^ (other < 2)}[kind]
    flipped = rng.random(truth.shape) < share
    entries = np.where(rng.random(truth.shape) < 0.2, np.nan, truth ^ flipped)
    return entries, flipped & ~np.isnan(entries)


def make_image(seed: int, size: int = 160) -> np.ndarray:
    """Soft light, bars, a grid and a few disks, in [0, 1]: smooth parts and edges, not exactly of low rank."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size))
    image = 0.45 + 0.2 * np.sin(rng.uniform(2, 6) * x + rng.uniform(0, 3)) * np.cos(rng.uniform(2, 6) * y)
    for _ in range(6):
        low, high = np.sort(rng.uniform(0, 1, (2, 2)), axis=0)
        image += rng.uniform(-0.2, 0.2) * ((x > low[0]) & (x < high[0]) & (y > low[1]) & (y < high[1]))
    for _ in range(4):
        centre, radius = rng.uniform(0.1, 0.9, 2), rng.uniform(0.04, 0.12)
        image += rng.uniform(-0.15, 0.15) / (1 + np.exp((np.hypot(x - centre[0], y - centre[1]) - radius) * 80))
    image += 0.06 * (np.sin(30 * x) > 0) * (np.sin(24 * y) > 0)
    return np.clip(image + 0.01 * rng.standard_normal(image.shape), 0, 1)


def spoil(image: np.ndarray, seed: int, salt: float = 0.3, missing: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng([seed, 5])
    dirty = np.where(rng.random(image.shape) < salt, rng.integers(0, 2, image.shape), image)
    return np.where(rng.random(image.shape) < missing, np.nan, dirty)


def make_air(seed: int, days: int = 200, sensors: int = 6) -> np.ndarray:
    """Days x (sensors, hours): daily cycles, a common weather with sudden changes, heavy tails, a tenth missing."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    weather, shocks = np.zeros((3, hours.size)), rng.standard_t(3, (3, hours.size))
    for t in range(1, hours.size):
        weather[:, t] = 0.95 * weather[:, t - 1] + 0.3 * shocks[:, t]
    season = np.sin(2 * np.pi * hours / (24 * 365) + rng.uniform(0, 6))
    columns = []
    for _ in range(sensors):
        phase, size = rng.uniform(0, 6), rng.uniform(0.3, 1)
        turn = 2 * np.pi * hours / 24 + phase
        daily = size * (np.sin(turn) + 0.5 * np.sin(2 * turn)) * (1 + 0.3 * season)
        values = np.exp(0.5 * (daily + rng.uniform(0.2, 0.6, 3) @ weather + 0.5 * season))
        values += 0.03 * values.std() * rng.standard_t(3, hours.size)
        columns.append(((values - values.mean()) / values.std()).reshape(days, 24))
    X = np.hstack(columns)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def plant(X: np.ndarray, seed: int, low: float, high: float, share: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Entries with a share of errors between ``low`` and ``high`` column standard deviations; which are wrong."""
    rng = np.random.default_rng([seed, 9])
    wrong = (rng.random(X.shape) < share) & ~np.isnan(X)
    off = rng.choice([-1, 1], X.shape) * rng.uniform(low, high, X.shape) * np.nanstd(X, axis=0)
    return np.where(wrong, X + off, X), wrong


def make_attack(seed: int, share: float = 0.1, users: int = 600, items: int = 400) -> tuple[Any, Any, Any, Any]:
    """Honest ratings, the same with attackers who push five items, these items, and which rows are attackers."""
    rng = np.random.default_rng(seed)
    attackers = int(share / (1 - share) * users)
    level = 3.5 + 0.4 * rng.standard_normal((users, 1)) + 0.5 * rng.standard_normal(items)
    truth = level + 0.35 * rng.standard_normal((users, 5)) @ rng.standard_normal((5, items))
    popularity = rng.pareto(2.0, items) + 0.3
    chance = 0.12 * np.outer(rng.pareto(2.0, users) + 0.5, popularity / popularity.mean())
    i, j = np.nonzero(rng.random(truth.shape) < np.minimum(chance, 0.9))
    stars = np.clip(np.rint(truth[i, j] + 0.6 * rng.standard_normal(i.size)), 1, 5)
    pushed = np.argsort(popularity)[items // 2 : items // 2 + 5]
    others = np.setdiff1d(np.arange(items), pushed)
    fake_j = np.concatenate([np.append(rng.choice(others, 40, replace=False), pushed) for _ in range(attackers)])
    fake = np.clip(np.rint(3.5 + rng.standard_normal(fake_j.size)), 1, 5).reshape(attackers, 45)
    fake[:, 40:] = 5
    fake_i = np.repeat(np.arange(users, users + attackers), 45)
    everything = np.concatenate([i, fake_i]), np.concatenate([j, fake_j]), np.concatenate([stars, fake.ravel()])
    return (i, j, stars), everything, pushed, np.arange(users + attackers) >= users
