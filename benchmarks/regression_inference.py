"""Parts of `benchmarks/regression.py`: the start, the scale and the intervals, with lmrob of robustbase as peer."""

from __future__ import annotations

import sys
import warnings

import lmrob
import numpy as np
from sklearn.linear_model import HuberRegressor, LinearRegression, RidgeCV

from selfpaced import SelfPacedLinearRegression

FRESH = 6000  # first seed: the method was made on seeds below
LOST = 5.0  # coefficient error, in units of clean least squares, from which a draw counts as lost


def params(model):
    """Intercept and coefficients."""
    return np.r_[model.intercept_, model.coef_]


def error(found, truth, n):
    return float(np.sqrt(np.sum((found - truth) ** 2) * n / truth.size))


def peers(problems):
    """Fits of lmrob, or None for each problem where R is not here."""
    return lmrob.fit_all(problems) if lmrob.available() else [None] * len(problems)


def far_outliers(n, p, share, size, seed):
    rng = np.random.default_rng([seed, n, p, int(100 * share)])
    X, truth = rng.normal(size=(n, p)), rng.normal(size=p + 1)
    y = truth[0] + X @ truth[1:] + rng.normal(size=n)
    y[: int(share * n)] += size
    return X, y, truth


def far(quick):
    """Draws lost to one-sided outliers of 50 and 10 sigma."""
    draws = 3 if quick else 20
    lines = [
        f"Draws lost of {draws} (coefficient error above {LOST:g} units of clean least squares), ours / lmrob.",
        "",
    ]
    sizes = (50, 100, 200)
    lines += [
        "| outliers | features | " + " | ".join(f"n = {n}" for n in sizes) + " |",
        "|---" * (2 + len(sizes)) + "|",
    ]
    for size in (50.0, 10.0):
        for share in (0.4, 0.45):
            for p in (2, 5):
                cells = []
                for n in sizes:
                    data = [far_outliers(n, p, share, size, seed) for seed in range(FRESH, FRESH + draws)]
                    other = peers([(X, y) for X, y, _ in data])
                    ours = [error(params(SelfPacedLinearRegression().fit(X, y)), truth, n) for X, y, truth in data]
                    lost = sum(value > LOST for value in ours)
                    if other[0] is None:
                        cells.append(f"{lost} / -")
                        continue
                    theirs = [error(fit.params, data[i][2], n) for i, fit in enumerate(other)]
                    cells.append(f"{lost} / {sum(not value <= LOST for value in theirs)}")
                lines.append(f"| {share:.0%} at {size:g} sigma | {p} | " + " | ".join(cells) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
    return lines


def levels(n, seed, share, size):
    """Three features and fifteen levels, the rarest of one or two rows; the outliers fall on any row."""
    rng = np.random.default_rng([seed, n, 9])
    chance = 0.7 ** np.arange(15)
    features, level = rng.normal(size=(n, 3)), rng.choice(15, size=n, p=chance / chance.sum())
    columns = (level[:, None] == np.arange(1, 15)).astype(float)
    X = np.column_stack([features, columns[:, columns.any(axis=0)]])
    truth = X @ np.r_[rng.normal(size=3), np.full(X.shape[1] - 3, 5.0)]
    good = np.ones(n, dtype=bool)
    good[rng.permutation(n)[: int(share * n)]] = False
    return X, truth + rng.normal(size=n) + size * ~good, truth, good


def rare(quick):
    """Rare levels: squared error of the good rows' fitted values, relative to least squares on the good rows."""
    draws = 3 if quick else 20
    lines = [f"Mean squared error over the oracle's, {draws} draws: mean of both, then the worst draw.", ""]
    lines += ["| rows, outliers | ours | worst | lmrob | worst |", "|---" * 5 + "|"]
    for n, share, size in ((100, 0.1, 20.0), (100, 0.2, 50.0), (200, 0.2, 20.0), (200, 0.2, 50.0), (200, 0.3, 50.0)):
        data = [levels(n, seed, share, size) for seed in range(FRESH, FRESH + draws)]
        other = peers([(X, y) for X, y, _, _ in data])
        errors = []
        for (X, y, truth, good), fit in zip(data, other, strict=True):
            oracle = LinearRegression().fit(X[good], y[good]).predict(X)
            ours = SelfPacedLinearRegression().fit(X, y).predict(X)
            theirs = np.full(n, np.nan) if fit is None else fit.params[0] + X @ fit.params[1:]
            errors.append([np.mean((value - truth)[good] ** 2) for value in (oracle, ours, theirs)])
        errors = np.array(errors)
        ratios = errors[:, 1:].mean(axis=0) / errors[:, 0].mean()
        worst = (errors[:, 1:] / errors[:, :1]).max(axis=0)
        cells = f"{ratios[0]:.2f} | {worst[0]:.1f} | {ratios[1]:.2f} | {worst[1]:.1f}"
        lines.append(f"| {n}, {share:.0%} at {size:g} sigma | {cells} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def scarce(quick):
    """Fewer than three rows per coefficient: squared error on new rows, of which eight features count."""
    draws = 2 if quick else 10
    lines = [f"Mean squared error of predictions on new rows without noise, median of {draws} draws.", ""]
    lines += ["| rows x features, outliers | ours | plain kept | LinearRegression | RidgeCV | HuberRegressor |"]
    lines += ["|---" * 6 + "|"]
    for n, p in ((40, 20), (60, 30), (40, 60)):
        for share in (0.0, 0.1, 0.2):
            rows = []
            for seed in range(FRESH, FRESH + draws):
                rng = np.random.default_rng([seed, n, p])
                X, coef = rng.normal(size=(n, p)), rng.normal(size=p) * (np.arange(p) < 8)
                y, new = X @ coef + rng.normal(size=n), rng.normal(size=(500, p))
                y[: int(share * n)] += 30
                models = (
                    SelfPacedLinearRegression(),
                    LinearRegression(),
                    RidgeCV(np.geomspace(1e-2, 1e4, 13)),
                    HuberRegressor(max_iter=1000),
                )
                values = [np.mean((model.fit(X, y).predict(new) - new @ coef) ** 2) for model in models]
                rows.append([values[0], np.isinf(models[0].lam_), *values[1:]])
            middle = np.median(rows, axis=0)
            kept = int(np.sum([row[1] for row in rows]))
            cells = f"{middle[0]:.2f} | {kept} of {draws} | " + " | ".join(f"{value:.2f}" for value in middle[2:])
            lines.append(f"| {n} x {p}, {share:.0%} | {cells} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, "", "Outliers are 30 sigma above; lmrob does not fit fewer rows than twice the coefficients."]


def _figures(design, kind, n, p, draws):
    """Scale, hits and half-widths of ours and of lmrob for every draw."""
    data = [design(kind, n, p, seed) for seed in range(FRESH, FRESH + draws)]
    other = peers([(X, y) for X, y, _, _ in data])
    ours, theirs = [], []
    for (X, y, truth, _), fit in zip(data, other, strict=True):
        model = SelfPacedLinearRegression().fit(X, y)
        table = model.summary()
        hit = np.mean((table.low < truth) & (truth < table.high))
        ours.append([model.scale_, hit, np.mean(table.high - table.low)])
        if fit is not None:
            theirs.append([fit.scale, np.mean((fit.low < truth) & (truth < fit.high)), np.mean(fit.high - fit.low)])
    return np.array(ours), np.array(theirs) if theirs else np.full((1, 3), np.nan)


def inference(quick, design):
    """Bias of the scale and coverage of 95 % intervals."""
    draws = 5 if quick else 60
    lines = [
        f"{draws} draws of unit normal noise. scale_ (the truth is 1), share of the 95 % intervals that hold the true "
        "coefficient, and mean width of the intervals over that of lmrob.",
        "",
        "| data | rows x features | scale_ | lmrob | coverage | lmrob | width |",
        "|---" * 7 + "|",
    ]
    shapes = ((50, 2), (50, 5), (100, 5), (200, 5))
    for kind in ("clean", "up 20 %", "up 40 %", "wide 40 %"):
        for n, p in shapes:
            ours, theirs = _figures(design, kind, n, p, draws)
            a, b = ours.mean(axis=0), np.nanmean(theirs, axis=0)
            error = 100 * ours[:, 1].std() / np.sqrt(draws)
            lines.append(
                f"| {kind} | {n} x {p} | {a[0]:.2f} ± {ours[:, 0].std() / np.sqrt(draws):.2f} | {b[0]:.2f} | "
                f"{100 * a[1]:.1f} ± {error:.1f} % | {100 * b[1]:.1f} % | {a[2] / b[2]:.2f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def quiet(part):
    """A part without the warnings that it is about."""

    def run(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return part(*args)

    return run
