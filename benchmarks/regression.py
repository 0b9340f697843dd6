"""Regression with gross errors: self-paced against robust peers, claims about errors, inference and cost.

    python benchmarks/regression.py [--part tables|clean|errors|claims|shifted|misfits|linear|far|rare|...]
                                    [--sets developed|confirmed] [--quick] [--save]

tables    RMSE on clean held-out rows over that of least squares fitted to the clean training rows, for the tables of
          `value_sets.py` and seven kinds of errors: geometric mean over tables, then the worst table.
clean     the same for eight splits of every clean table, ours and two peers.
errors    claimed rate, coverage of its interval, precision and recall for the rows with probability above one half.
claims    how often clean data with unusual errors get a rate above 0, and how often planted errors get none.
shifted   claims, recall and coefficient error if 20 % to 40 % of the values are moved to one side.
misfits   likely errors of clean data that a line does not fit, and of leverage points.
messy     F1 for values times ten and digit errors in the numeric columns of real tables (needs SELFPACED_DATA).
linear    coefficient error in units of clean least squares (root mean square over seeds), n = 200, p = 5, unit noise.
far       draws lost to one-sided outliers that are nearly half of the rows, ours and lmrob.
rare      one-hot columns of one or two rows, ours and lmrob.
scarce    fewer than three rows per coefficient.
inference bias of `scale_` and coverage of the intervals of `summary()`, ours and lmrob.
spread    coverage where errors are not even or not normal.
scale     bias of sigma in small samples, for fits that have settled and for S-estimates, and with outliers near by.
classics  rows with a weight below 0.2 in small data sets with known outliers.
ablation  what each mechanism earns: the columns of `tables` and `errors` for the developed tables, and of `claims`,
          `far` and `rare` on other seeds, with one mechanism switched off at a time.
cost      processor time as a multiple of one LinearRegression in the same run.

Peers: LinearRegression, HuberRegressor, RLM with Tukey's norm and RLMDetSMM of statsmodels, and `lmrob` (KS2014) of R's
robustbase (`apt install r-cran-robustbase`; left out if it is missing). All methods run with their defaults, with more
iterations allowed where they ask for them. A peer that fails on a table counts as least squares there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, LinearRegression, RANSACRegressor, RidgeCV
from value_sets import CONFIRMED, COUNTS, DEVELOPED, MESSY, R_CONFIRMED, R_DEVELOPED, messy_table

from selfpaced import SelfPacedLinearRegression

RESULT = Path(__file__).parent / "results" / "regression.md"
FRESH = 6000  # first seed of simulations: the method was made on seeds below
PEER_FILE = RESULT.with_name("regression_peers.json")  # ratios of the peers, which our code cannot change
MOST = 500  # training rows of a table at most: R's time
KINDS = ("clean", "x10 5 %", "digits 10 %", "+5 sd 20 %", "shuffled 10 %", "leverage 5 %", "counts + 20 %")
LOST = 5.0  # coefficient error, in units of clean least squares, from which a draw counts as lost


# ----------------------------------------------------------------------------------------------------- peers

LMROB = """
suppressMessages(library(robustbase))
folder <- commandArgs(trailingOnly = TRUE)[1]
for (file in list.files(folder, pattern = "[.]csv$", full.names = TRUE)) {
  rows <- read.csv(file)
  fit_with <- function(...) suppressWarnings({
    set.seed(0)
    fit <- lmrob(y ~ ., data = rows, control = lmrob.control(..., max.it = 500, k.max = 2000, maxit.scale = 2000))
    bounds <- confint(fit)
    c(fit$scale, coef(fit), bounds[, 1], bounds[, 2])
  })
  found <- tryCatch(fit_with("KS2014"), error = function(e) tryCatch(fit_with(), error = function(e) NA))
  writeLines(format(found, digits = 17), sub("[.]csv$", ".out", file))
}
"""


@cache
def has_lmrob():
    found = shutil.which("Rscript") and subprocess.run(["Rscript", "-e", "library(robustbase)"], capture_output=True)
    return bool(found) and found.returncode == 0


def lmrob(problems):
    """Scale, coefficients and bounds of their intervals for every (X, y) in one run of R; None where it fails."""
    if not has_lmrob():
        return [None] * len(problems)
    with tempfile.TemporaryDirectory() as folder:
        for number, (X, y) in enumerate(problems):
            names = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
            file = Path(folder) / f"{number:05d}.csv"
            np.savetxt(file, np.column_stack([X, y]), "%.17g", ",", header=names, comments="")
        script = Path(folder) / "fit.R"
        script.write_text(LMROB)
        subprocess.run(["Rscript", str(script), folder], check=True)
        return [_lmrob_fit(Path(folder) / f"{i:05d}.out", X.shape[1] + 1) for i, (X, _) in enumerate(problems)]


def _lmrob_fit(file, k):
    text = file.read_text().split()
    values = np.array([0.0 if line.strip() == "NA" else float(line) for line in text])
    if values.size != 1 + 3 * k:
        return None
    return float(values[0]), *np.split(values[1:], 3)


def scikit(make):
    def fit(X, y):
        model = make().fit(X, y)
        return np.r_[model.intercept_, model.coef_]

    return fit


def statsmodels(name):
    def fit(X, y):
        import statsmodels.api as sm
        from statsmodels.robust import RLMDetSMM

        full = np.column_stack([np.ones(len(y)), X])
        model = RLMDetSMM(y, full) if name == "smm" else sm.RLM(y, full, M=sm.robust.norms.TukeyBiweight())
        return np.asarray(model.fit().params)

    return fit


PEERS = {
    "least squares": scikit(LinearRegression),
    "Huber": scikit(lambda: HuberRegressor(alpha=0, max_iter=1000)),
    "RLM Tukey": statsmodels("tukey"),
    "RLMDetSMM": statsmodels("smm"),
}
OURS = scikit(SelfPacedLinearRegression)


def standardised(fit):
    """A fit in units that suit every solver; least squares where it fails."""

    def run(X, y):
        centre, unit = X.mean(axis=0), X.std(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        Z = (X - centre) / unit
        try:
            b = np.asarray(fit(Z, y), dtype=float)
        except Exception:
            b = np.full(X.shape[1] + 1, np.nan)
        if not np.isfinite(b).all():
            b = PEERS["least squares"](Z, y)
        slopes = b[1:] / unit
        return np.r_[b[0] - centre @ slopes, slopes]

    return run


# ---------------------------------------------------------------------------------------------------- tables


def split(name, seed):
    """Training and held-out rows of a table; columns that are constant in the training rows are left out."""
    make = (DEVELOPED | CONFIRMED)[name]
    X, y = make(np.random.default_rng([seed, 0]))
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    order = np.random.default_rng([seed, 2]).permutation(len(y))
    test, train = np.split(order, [int(0.3 * len(y))])
    train = train[:MOST]
    used = np.ptp(X[train], axis=0) > 0
    return X[train][:, used], y[train], X[test][:, used], y[test]


def spoilt(X, y, kind, seed):
    """Features and values with errors in some of the rows, and in which."""
    rng = np.random.default_rng([seed, 1])
    X, given = X.copy(), y.copy()
    wrong = np.zeros(len(y), dtype=bool)
    if kind == "clean":
        return X, given, wrong
    rows = rng.choice(len(y), round(float(kind.split()[-2]) / 100 * len(y)), replace=False)
    if kind.startswith("x10"):
        given[rows] *= 10
    elif kind.startswith("digits"):
        given[rows] = digit_error(y[rows], rng)
    elif kind.startswith("+5"):
        given[rows] += 5 * y.std()
    elif kind.startswith("counts"):
        given[rows] += np.ceil(rng.gamma(4, y.std(), len(rows)))
    elif kind.startswith("shuffled"):
        given[rows] = y[rng.permutation(rows)]
    elif kind.startswith("leverage"):
        X[rows] *= 10
    wrong[rows] = (given[rows] != y[rows]) | kind.startswith("leverage")
    return X, given, wrong


def digit_error(y, rng):
    """A digit too many, a digit too few, or the two leading digits exchanged."""
    out, kind = y.copy(), rng.integers(0, 3, len(y))
    out[kind == 0] *= 10
    out[kind == 1] = np.trunc(out[kind == 1]) / 10
    for i in np.flatnonzero(kind == 2):
        if y[i]:
            size = 10.0 ** np.floor(np.log10(abs(y[i])))
            first, rest = divmod(abs(y[i]) / size, 1)
            second, tail = divmod(rest * 10, 1)
            out[i] = np.sign(y[i]) * size * (second + first / 10 + tail / 10)
    return out


def problems(names, seeds, kinds):
    """Every table, kind of errors and split, with its training rows."""
    for name in names:
        for seed in seeds:
            X, y, X_test, y_test = split(name, seed)
            for kind in kinds:
                if name in COUNTS or not kind.startswith("counts"):
                    yield name, kind, seed, *spoilt(X, y, kind, seed)[:2], X_test, y_test, PEERS["least squares"](X, y)


def rmse(b, X, y):
    return float(np.sqrt(np.mean((y - b[0] - X @ b[1:]) ** 2)))


def ratios(names, seeds, kinds, methods):
    """RMSE over that of least squares on the clean rows: {method: {kind: {table: [per split]}}}.

    Ratios of peers are kept in a file, because they depend on the data alone; delete it to fit them again.
    """
    cells = list(problems(names, seeds, kinds))
    known = json.loads(PEER_FILE.read_text()) if PEER_FILE.exists() else {}
    out = {}
    for method, fit in methods.items():
        keys = [f"{method} | {kind} | {name} | {seed}" for name, kind, seed, *_ in cells]
        missing = [i for i, key in enumerate(keys) if key not in known]
        found = fits_of(fit, [cells[i][3:5] for i in missing])
        fresh = {keys[i]: ratio(b, cells[i]) for i, b in zip(missing, found, strict=True)}
        if method != "ours":
            known |= fresh
            PEER_FILE.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
        for (name, kind, *_), key in zip(cells, keys, strict=True):
            value = fresh[key] if key in fresh else known[key]
            out.setdefault(method, {}).setdefault(kind, {}).setdefault(name, []).append(value)
    return out


def ratio(b, cell):
    *_, X_test, y_test, clean = cell
    return rmse(b, X_test, y_test) / rmse(clean, X_test, y_test)


def fits_of(fit, data):
    """Coefficients for every (X, y); all of them in one run of R for lmrob."""
    if fit is not None:
        return [standardised(fit)(X, y) for X, y in data]
    found = iter(lmrob([((X - X.mean(axis=0)) / X.std(axis=0), y) for X, y in data]))
    return [standardised(lambda *_: next(found)[1])(X, y) for X, y in data]


def means(found):
    """Geometric mean over splits of every table."""
    return {name: float(np.exp(np.mean(np.log(values)))) for name, values in found.items()}


def tables(args):
    names = [name for name in (DEVELOPED if args.sets == "developed" else CONFIRMED) if has_lmrob() or name not in R()]
    seeds = range(1)
    kinds = KINDS[:2] if args.quick else KINDS
    found = ratios(names, seeds, kinds, PEERS | ({"lmrob": None} if has_lmrob() else {}) | {"ours": OURS})
    lines = [f"{len(names)} tables, {len(seeds)} split, at most {MOST} training rows.", ""]
    lines += ["| | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for method, by_kind in found.items():
        cells = []
        for kind in kinds:
            values = means(by_kind[kind])
            worst = max(values, key=values.__getitem__)
            cells.append(f"{np.exp(np.mean(np.log([*values.values()]))):.3f} ({worst} {values[worst]:.2f})")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return [*lines, "", *losses(found, kinds)]


def R():
    return R_DEVELOPED | R_CONFIRMED


def losses(found, kinds):
    """Tables where ours is more than 5 % above the best of Huber and lmrob."""
    lines = []
    for kind in kinds:
        ours = means(found["ours"][kind])
        peers = [means(found[name][kind]) for name in ("Huber", "lmrob") if name in found]
        lost = [(v / min(p[name] for p in peers), name) for name, v in ours.items()]
        shown = [f"{name} {ratio:.2f}" for ratio, name in sorted(lost, reverse=True) if ratio > 1.05]
        lines.append(f"- {kind}, ours over the best of Huber and lmrob: {', '.join(shown) or 'none above 1.05'}")
    return lines


def clean(args):
    seeds = range(2) if args.quick else range(8)
    lines = [f"Clean tables, {len(seeds)} splits.", "", "| tables | method | mean | worst table | worst split |"]
    lines += ["|---" * 5 + "|"]
    for part, sets in (("developed", DEVELOPED), ("confirmed", CONFIRMED)):
        names = [name for name in sets if has_lmrob() or name not in R()]
        found = ratios(names, seeds, ("clean",), {"Huber": PEERS["Huber"], "ours": OURS})
        for method, by_kind in found.items():
            values = means(by_kind["clean"])
            worst = max(values, key=values.__getitem__)
            single = {name: max(v) for name, v in by_kind["clean"].items()}
            one = max(single, key=single.__getitem__)
            mean = np.exp(np.mean(np.log([*values.values()])))
            row = f"{mean:.3f} | {worst} {values[worst]:.3f} | {one} {single[one]:.3f}"
            lines.append(f"| {part} | {method} | {row} |")
    return lines


# ---------------------------------------------------------------------------------------------- gross errors


def errors(args):
    """Rate, interval, precision and recall for the tables with errors in the values."""
    seeds = range(1)
    sets = DEVELOPED if args.sets == "developed" else CONFIRMED
    names = [name for name in sets if has_lmrob() or name not in R()]
    lines = ["| errors | true | claimed | interval holds it | claims nothing | precision | recall |", "|---" * 7 + "|"]
    for kind in [kind for kind in KINDS if not kind.startswith("leverage")]:
        rows = []
        for name in names:
            if kind.startswith("counts") and name not in COUNTS:
                continue
            for seed in seeds:
                X, y, _, _ = split(name, seed)
                X, given, wrong = spoilt(X, y, kind, seed)
                model = SelfPacedLinearRegression().fit(X, given)
                flagged = model.assessment_.wrong > 0.5
                low, high = model.noise_rate_interval_
                hits = (flagged & wrong).sum()
                rows.append([
                    wrong.mean(), model.noise_rate_, low <= wrong.mean() <= high, model.noise_rate_ == 0,
                    hits / flagged.sum() if flagged.any() else np.nan, hits / wrong.sum() if wrong.any() else np.nan,
                ])  # fmt: skip
        cells = [f"{value:.3f}" for value in np.nanmean(np.array(rows, dtype=float), axis=0)]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


UNUSUAL = (
    "normal errors", "lognormal errors", "lognormal target", "exponential errors", "t3 errors", "spread exp(.8 x)",
    "skewed counts",
)  # fmt: skip


def unusual(kind, rng, n=500):
    """A line with errors that are not normal or not even."""
    X = rng.normal(size=(n, 3))
    mean = 10 + X @ [2.0, 1.0, 0.5]
    if kind == "lognormal errors":
        return X, mean + rng.lognormal(0, 1, n)
    if kind == "lognormal target":
        return X, np.exp(mean / 5 + 0.5 * rng.normal(size=n))
    if kind == "exponential errors":
        return X, mean + 2 * rng.exponential(size=n)
    if kind == "t3 errors":
        return X, mean + rng.standard_t(3, size=n)
    if kind == "spread exp(.8 x)":
        return X, mean + np.exp(0.8 * X[:, 0]) * rng.normal(size=n)
    if kind == "skewed counts":
        return X, rng.poisson(np.exp(1 + 0.3 * X[:, 0]) * rng.gamma(2, 0.5, n)).astype(float)
    return X, mean + rng.normal(size=n)


def claims(args):
    draws = 5 if args.quick else 20
    lines = [f"{draws} draws of 500 rows. Clean: share of fits with a rate above 0, and of intervals that hold 0. With"]
    lines += ["20 % of the values raised by 5 standard deviations: share of fits with a rate of 0, mean rate, share of"]
    lines += [
        "intervals that hold 20 %.",
        "",
        "| data | claims | holds 0 | misses | rate | holds 20 % |",
        "|---" * 6 + "|",
    ]
    for kind in UNUSUAL:
        rows = []
        for seed in range(FRESH, FRESH + draws):
            X, y = unusual(kind, np.random.default_rng([seed, 5]))
            dirty = spoilt(X, y, "+5 sd 20 %", seed)[1]
            one, two = SelfPacedLinearRegression().fit(X, y), SelfPacedLinearRegression().fit(X, dirty)
            low, high = two.noise_rate_interval_
            holds = low <= 0.2 <= high
            first = one.noise_rate_ > 0, one.noise_rate_interval_[0] == 0
            rows.append([*first, two.noise_rate_ == 0, two.noise_rate_, holds])
        lines.append(f"| {kind} | " + " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


SHIFTED = ("normal errors", "t3 errors", "lognormal errors")


def shifted(args):
    """Values moved to one side by some standard deviations of the errors: what is claimed and found."""
    draws = 5 if args.quick else 20
    lines = [
        f"{draws} draws of 500 rows, some of whose values are moved to one side by standard deviations of the errors:",
        "share of fits with a rate of 0, mean rate, share of intervals that hold the share, recall and precision of",
        "the rows with probability above one half, and the coefficient error in units of clean least squares.",
        "",
    ]
    lines += ["| errors | moved | by | misses | rate | holds | recall | precision | error |", "|---" * 9 + "|"]
    for kind, size, share in [(k, s, q) for k in SHIFTED for s in (5, 8) for q in (0.2, 0.3, 0.4)]:
        found = []
        for seed in range(FRESH, FRESH + draws):
            rng = np.random.default_rng([seed, 11])
            X, noise = rng.normal(size=(500, 3)), drawn_errors(kind, rng, 500)
            wrong = np.arange(500) < share * 500
            model = SelfPacedLinearRegression().fit(X, 10 + X @ [2.0, 1.0, 0.5] + noise + size * wrong)
            (low, high), flagged = model.noise_rate_interval_, model.assessment_.wrong > 0.5
            off = np.r_[model.intercept_ - 10, model.coef_ - [2.0, 1.0, 0.5]]
            hits = (flagged & wrong).sum()
            precision = hits / flagged.sum() if flagged.any() else np.nan
            figures = model.noise_rate_ == 0, model.noise_rate_, low <= share <= high, hits / wrong.sum(), precision
            found.append([*figures, np.sqrt(500 * np.mean(off**2))])
        cells = [f"{value:.2f}" for value in np.nanmean(np.array(found, dtype=float), axis=0)]
        lines.append(f"| {kind} | {share:.0%} | {size} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def drawn_errors(kind, rng, n):
    """Errors with mean 0 and standard deviation 1."""
    if kind == "t3 errors":
        return rng.standard_t(3, n) / np.sqrt(3)
    if kind == "lognormal errors":
        return (rng.lognormal(0, 0.5, n) - np.exp(0.125)) / np.sqrt(np.expm1(0.25) * np.exp(0.25))
    return rng.normal(size=n)


MISFIT = ("bend, 4 abs(x)", "square", "interaction", "counts", "no signal", "groups", "rounded", "leverage points")


def misfit(kind, rng, n=800):
    """Clean data that a line does not fit, their groups, and which values are wrong (leverage points only)."""
    X, e, groups, wrong = rng.normal(size=(n, 5)), rng.normal(size=n), None, np.zeros(n, dtype=bool)
    line = X @ [1.0, -1.0, 0.5, 0.0, 0.0]
    if kind == "bend, 4 abs(x)":
        y = 4 * np.abs(X[:, 0]) + e
    elif kind == "square":
        y = 5 + 2 * X[:, 0] ** 2 + X[:, 1] + e
    elif kind == "interaction":
        y = line + 6 * (X[:, 0] > 1) * (X[:, 1] > 0.5) + e
    elif kind == "counts":
        y = rng.poisson(np.exp(0.5 + line)).astype(float)
    elif kind == "no signal":
        y = e
    elif kind == "groups":
        groups = rng.integers(0, 80, n)
        y = line + 2 * rng.normal(size=80)[groups] + e
    elif kind == "rounded":
        y = np.round(np.clip(5.6 + 0.4 * line + 0.6 * e, 3, 9))
    else:
        wrong[: n // 5] = True
        X[wrong] = 0.1 * rng.normal(size=(n // 5, 5)) + [5.0, 0, 0, 0, 0]
        y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + e + 10 * wrong
    return X, y, groups, wrong


def misfits(args):
    draws = 5 if args.quick else 20
    lines = [
        f"{draws} draws of 800 rows that a line does not fit: draws with a likely error, likely errors in all, and"
    ]
    lines += ["how many of them are wrong; draws with a rate above 0.", "", "| data | draws | rows | wrong | rate |"]
    lines += ["|---" * 5 + "|"]
    for kind in MISFIT:
        rows = []
        for seed in range(FRESH, FRESH + draws):
            X, y, groups, wrong = misfit(kind, np.random.default_rng([seed, 8]))
            model = SelfPacedLinearRegression().fit(X, y, groups=groups)
            likely = model.assessment_.levels() == 2
            rows.append([likely.any(), likely.sum(), (likely & wrong).sum(), model.noise_rate_ > 0])
        lines.append(f"| {kind} | " + " | ".join(f"{value:.0f}" for value in np.sum(rows, axis=0)) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def messy(args):  # noqa: ARG001
    """F1 for x10 and digit errors in 5 % of the values of real tables, by numeric columns alone."""
    if not os.environ.get("SELFPACED_DATA"):
        return ["Left out: SELFPACED_DATA is not set."]
    lines = ["| table | rows x columns | F1 | flagged | planted | flagged of the unplanted table |", "|---" * 6 + "|"]
    for name in MESSY:
        X, y = messy_table(name)
        rng = np.random.default_rng(0)
        rows = rng.choice(len(y), round(0.05 * len(y)), replace=False)
        dirty = y.copy()
        half = len(rows) // 2
        dirty[rows[:half]] *= 10
        dirty[rows[half:]] = digit_error(y[rows[half:]], rng)
        wrong = dirty != y
        flags = [SelfPacedLinearRegression().fit(X, values).assessment_.wrong > 0.5 for values in (dirty, y)]
        hits = (flags[0] & wrong).sum()
        score = 2 * hits / max(flags[0].sum() + wrong.sum(), 1)
        size = f"{len(y)} x {X.shape[1]}"
        lines.append(f"| {name} | {size} | {score:.2f} | {flags[0].sum()} | {wrong.sum()} | {flags[1].sum()} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


# ----------------------------------------------------------------------------------------------- simulations

DESIGNS = ["clean", "up 20 %", "up 40 %", "wide 40 %", "lever 20 %", "far lever 40 %", "Cauchy"]


def design(kind, n, p, seed):
    """Features, target, the true intercept and coefficients, and how many of the first rows are outliers."""
    rng = np.random.default_rng([seed, n, p])
    X, truth = rng.normal(size=(n, p)), rng.normal(size=p + 1)
    noise = rng.standard_t(1, size=n) if kind == "Cauchy" else rng.normal(size=n)
    m = round(int(kind.split()[-2]) / 100 * n) if "%" in kind else 0
    if kind.startswith("up"):
        noise[:m] = 10 + 5 * rng.random(m) + rng.normal(size=m)
    elif kind.startswith("wide"):
        noise[:m] = 20 * rng.normal(size=m)
    elif "lever" in kind:
        X[:m] = 0.1 * rng.normal(size=(m, p))
        X[:m, 0] += 5
        noise[:m] = (50 if "far" in kind else 10) + 0.1 * rng.normal(size=m)
    return X, truth[0] + X @ truth[1:] + noise, truth, m


def error(found, truth, n):
    return float(np.sqrt(np.sum((found - truth) ** 2) * n / truth.size))


def linear(args):
    n, p, seeds = 200, 5, range(FRESH, FRESH + (3 if args.quick else 10))
    methods = {
        "least squares without the outliers": None,
        "ours": OURS,
        'ours, regularizer="welsch"': scikit(lambda: SelfPacedLinearRegression(regularizer="welsch")),
        'ours, pace="paper"': scikit(lambda: SelfPacedLinearRegression(pace="paper")),
        **PEERS,
        "RANSAC": lambda X, y: scikit(lambda: RANSACRegressor(random_state=0).fit(X, y).estimator_)(X, y),
        "lmrob": None,
    }
    lines = [f"Seeds {seeds.start} to {seeds.stop - 1}.", "", "| | " + " | ".join(DESIGNS) + " |"]
    lines += ["|---" * (len(DESIGNS) + 1) + "|"]
    data = {kind: [design(kind, n, p, seed) for seed in seeds] for kind in DESIGNS}
    for name, fit in methods.items():
        cells = []
        for kind in DESIGNS:
            if name == "lmrob":
                found = [
                    np.full(p + 1, np.nan) if one is None else one[1] for one in lmrob([d[:2] for d in data[kind]])
                ]
            else:
                used = [(X[m:], y[m:]) if fit is None else (X, y) for X, y, _, m in data[kind]]
                found = [(fit or PEERS["least squares"])(X, y) for X, y in used]
            squares = [error(b, d[2], n) ** 2 for b, d in zip(found, data[kind], strict=True)]
            half = np.std(np.sqrt(squares)) / np.sqrt(len(squares))
            cells.append(f"{np.sqrt(np.mean(squares)):.2f} ± {half:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, "", "Root mean square error over seeds, ± the standard error of the mean error."]


def far_outliers(n, p, share, size, seed):
    rng = np.random.default_rng([seed, n, p, int(100 * share)])
    X, truth = rng.normal(size=(n, p)), rng.normal(size=p + 1)
    y = truth[0] + X @ truth[1:] + rng.normal(size=n)
    y[: int(share * n)] += size
    return X, y, truth


def far(args):
    draws, sizes = 3 if args.quick else 10, (50, 100, 200)
    lines = [f"Draws lost of {draws} (error above {LOST:g} units of clean least squares), ours / lmrob.", ""]
    lines += ["| outliers | features | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|---" * 5 + "|"]
    for size, share, p in [(s, q, p) for s in (50.0, 10.0) for q in (0.4, 0.45) for p in (2, 5)]:
        cells = []
        for n in sizes:
            data = [far_outliers(n, p, share, size, seed) for seed in range(FRESH, FRESH + draws)]
            fits = zip(lmrob([d[:2] for d in data]), data, strict=True)
            theirs = [fit is None or not error(fit[1], d[2], n) <= LOST for fit, d in fits]
            ours = sum(error(OURS(X, y), truth, n) > LOST for X, y, truth in data)
            cells.append(f"{ours} / {sum(theirs) if has_lmrob() else '-'}")
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


def rare(args):
    draws = 3 if args.quick else 10
    lines = [f"Mean squared error of the good rows over the oracle's, {draws} draws: mean, then the worst draw.", ""]
    lines += ["| rows, outliers | ours | worst | lmrob | worst |", "|---" * 5 + "|"]
    for n, share, size in ((100, 0.1, 20.0), (100, 0.2, 50.0), (200, 0.2, 20.0), (200, 0.3, 50.0)):
        data = [levels(n, seed, share, size) for seed in range(FRESH, FRESH + draws)]
        found = []
        for (X, y, truth, good), fit in zip(data, lmrob([(X, y) for X, y, _, _ in data]), strict=True):
            theirs = np.full(X.shape[1] + 1, np.nan) if fit is None else fit[1]
            fits = PEERS["least squares"](X[good], y[good]), OURS(X, y), theirs
            found.append([np.mean((b[0] + X @ b[1:] - truth)[good] ** 2) for b in fits])
        found = np.array(found)
        mean, worst = found[:, 1:].mean(axis=0) / found[:, 0].mean(), (found[:, 1:] / found[:, :1]).max(axis=0)
        cells = f"{mean[0]:.2f} | {worst[0]:.1f} | {mean[1]:.2f} | {worst[1]:.1f}"
        lines.append(f"| {n}, {share:.0%} at {size:g} sigma | {cells} |")
    return lines


def scarce(args):
    draws = 2 if args.quick else 10
    lines = [f"Mean squared error of predictions for new rows without noise, median of {draws} draws.", ""]
    lines += [
        "| rows x features, outliers | ours | plain kept | LinearRegression | RidgeCV | Huber |",
        "|---" * 6 + "|",
    ]
    for n, p, share in [(n, p, share) for n, p in ((40, 20), (60, 30), (40, 60)) for share in (0.0, 0.1, 0.2)]:
        rows = []
        for seed in range(FRESH, FRESH + draws):
            rng = np.random.default_rng([seed, n, p])
            X, coef = rng.normal(size=(n, p)), rng.normal(size=p) * (np.arange(p) < 8)
            y, new = X @ coef + rng.normal(size=n), rng.normal(size=(500, p))
            y[: int(share * n)] += 30
            models = SelfPacedLinearRegression(), LinearRegression(), RidgeCV(np.geomspace(1e-2, 1e4, 13))
            others = (*models, HuberRegressor(max_iter=1000))
            values = [np.mean((m.fit(X, y).predict(new) - new @ coef) ** 2) for m in others]
            rows.append([values[0], np.isinf(models[0].lam_), *values[1:]])
        middle, kept = np.median(rows, axis=0), int(np.sum([row[1] for row in rows]))
        cells = f"{middle[0]:.2f} | {kept} of {draws} | " + " | ".join(f"{value:.2f}" for value in middle[2:])
        lines.append(f"| {n} x {p}, {share:.0%} | {cells} |")
    return [*lines, "", "Outliers are 30 sigma above."]


# ------------------------------------------------------------------------------------------------- inference


def inference(args):
    draws = 5 if args.quick else 20
    lines = [
        f"{draws} draws of unit normal noise. `scale_` (the truth is 1), share of the 95 % intervals that hold the "
        "true coefficient, and mean width of the intervals over that of lmrob.",
        "",
        "| data | rows x features | scale_ | lmrob | coverage | lmrob | width |",
        "|---" * 7 + "|",
    ]
    for kind, (n, p) in [(k, s) for k in ("clean", "up 20 %", "wide 40 %") for s in ((50, 2), (100, 5), (200, 5))]:
        data = [design(kind, n, p, seed) for seed in range(FRESH, FRESH + draws)]
        ours, theirs = [], []
        for (X, y, truth, _), fit in zip(data, lmrob([d[:2] for d in data]), strict=True):
            model = SelfPacedLinearRegression().fit(X, y)
            table = model.summary()
            inside = (table.low < truth) & (truth < table.high)
            ours.append([model.scale_, np.mean(inside), np.mean(table.high - table.low)])
            if fit is not None:
                theirs.append([fit[0], np.mean((fit[2] < truth) & (truth < fit[3])), np.mean(fit[3] - fit[2])])
        a, b = np.mean(ours, axis=0), np.mean(theirs, axis=0) if theirs else np.full(3, np.nan)
        cells = f"{a[0]:.2f} | {b[0]:.2f} | {100 * a[1]:.1f} % | {100 * b[1]:.1f} % | {a[2] / b[2]:.2f}"
        lines.append(f"| {kind} | {n} x {p} | {cells} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def spread(args):
    """Coverage where errors are uneven or skewed, and of clustered rows with and without groups."""
    draws = 10 if args.quick else 60
    lines = [f"{draws} draws, coverage of 95 % intervals.", "", "| errors | slopes | intercept | predictions |"]
    lines += ["|---" * 4 + "|"]
    for kind in ("normal errors", "spread exp(.8 x)", "t3 errors", "exponential errors", "lognormal errors"):
        hits = []
        for seed in range(FRESH, FRESH + draws):
            rng = np.random.default_rng([seed, 6])
            (X, y), (new, later) = unusual(kind, rng, 200), unusual(kind, rng, 50)
            model = SelfPacedLinearRegression().fit(X, y)
            table, truth = model.summary(), [10.0, 2.0, 1.0, 0.5]
            inside = (table.low < truth) & (truth < table.high)
            bounds = model.predict(new, interval=0.95)
            hits.append([inside[1:].mean(), inside[0], np.mean((bounds[:, 1] <= later) & (later <= bounds[:, 2]))])
        cells = [f"{value:.3f}" for value in np.mean(hits, axis=0)]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", "| rows in 40 groups of 5, with effects of their own | slopes of a group's feature |", "|---|---|"]
    for grouped in (False, True):
        hits = []
        for seed in range(FRESH, FRESH + draws):
            rng = np.random.default_rng([seed, 7])
            groups = np.repeat(np.arange(40), 5)
            X = np.column_stack([rng.normal(size=40)[groups], rng.normal(size=200)])
            y = X @ [1.0, 1.0] + rng.normal(size=40)[groups] + rng.normal(size=200)
            table = SelfPacedLinearRegression().fit(X, y, groups=groups if grouped else None).summary()
            hits.append(table.low[1] < 1 < table.high[1])
        lines.append(f"| {'groups= given' if grouped else 'not given'} | {np.mean(hits):.3f} |")
    return lines


def scale(args):
    """Sigma of least squares and of S-estimates; `sharpness` has to be below nearly every raw one of the latter."""
    from selfpaced.linear._initial import s_estimate, sensitivity_start
    from selfpaced.linear._least_squares import build
    from selfpaced.robust import residual_scale
    from selfpaced.robust.scales import largest_sigma, sharpness, sigma_of_fit

    lines = ["| rows | coefficients | least squares: sigma | S-estimate: sigma | raw, 5 % | sharpness | largest |"]
    lines += ["|---" * 7 + "|"]
    for n, p in [(n, max(1, round(q * n))) for n in (20, 50, 100, 200, 400) for q in (0.0, 0.1, 0.2)]:
        rng, found = np.random.default_rng(n + p), []
        for _ in range(5 if args.quick else 40):
            squares = build(rng.normal(size=(n, p)), rng.normal(size=n))
            sharp = s_estimate(squares, sensitivity_start(squares)[0])[0]
            sizes = [np.abs(squares.residuals(b)) for b in (squares.solve(), sharp)]
            sigmas = [residual_scale(size, dof=squares.dof) for size in sizes]
            raw, largest = sigma_of_fit(sizes[1], None, squares.dof), largest_sigma(sizes[1], dof=squares.dof)
            found.append([*sigmas, raw, largest])
        found = np.array(found)
        low, mean = np.quantile(found[:, 2], 0.05), found.mean(axis=0)
        cells = f"{mean[0]:.2f} | {mean[1]:.2f} | {low:.2f} | {sharpness(n, p + 1):.2f} | {mean[3]:.2f}"
        lines.append(f"| {n} | {p + 1} | {cells} |")
    return [*lines, "", *contaminated_scale(5 if args.quick else 100)]


def contaminated_scale(draws):
    """Sigma of normal residuals of which some are near 5: by `residual_scale`, and without either of its limits."""
    from selfpaced.robust import residual_scale

    limits = {
        "residual_scale": (),
        "without LEAST_SETTLING": ("robust.scales", "LEAST_SETTLING", 0.0),
        "without RISE": ("robust.scales", "RISE", np.inf),
    }
    lines = ["| rows | near 5 sigma | " + " | ".join(limits) + " |", "|---|---" + "|---" * len(limits) + "|"]
    for n, share in [(n, share) for n in (30, 60, 200) for share in (0.0, 0.2, 0.3, 0.4)]:
        shift, cells = 5 * (np.arange(n) < share * n), []
        for switch in limits.values():
            rng = np.random.default_rng(n)
            with switched(*switch):
                found = [residual_scale(rng.normal(size=n) + shift) for _ in range(draws)]
            cells.append(f"{np.mean(found):.2f}")
        lines.append(f"| {n} | {100 * share:.0f} % | " + " | ".join(cells) + " |")
    return lines


def classics(args):  # noqa: ARG001
    import statsmodels.api as sm

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "linear"))
    from classics import hbk, stars

    loss = sm.datasets.stackloss.load_pandas()
    cases = {
        "stackloss": ((loss.exog.to_numpy(), loss.endog.to_numpy()), "1, 3, 4, 21"),
        "starsCYG": (stars(), "11, 20, 30, 34"),
        "hbk": (hbk(), "1-10"),
    }
    lines = ["| data | known outliers | found |", "|---|---|---|"]
    for name, ((X, y), known) in cases.items():
        found = np.flatnonzero(SelfPacedLinearRegression().fit(X, y).sample_weight_ < 0.2) + 1
        lines.append(f"| {name} | {known} | {', '.join(map(str, found))} |")
    return lines


class NoCommonPart:
    """In place of `CommonPart`: no row is put aside."""

    @staticmethod
    def of(part):  # noqa: ARG004
        return None


class NoRejection:
    """In place of `Rejection`: no row is left out by it."""

    @classmethod
    def of(cls, *_):
        return cls()

    def rows(self, X, y, residuals):  # noqa: ARG002
        return np.zeros(len(y), dtype=bool)

    def heaps(self, X, residuals):  # noqa: ARG002
        return np.zeros(len(residuals), dtype=bool)


#: mechanism: module, name in it, and what takes its place
SWITCHES = {
    "all on": (),
    "no random subsets": ("linear._initial", "_elemental_start", lambda *_: None),
    "no row put aside": ("linear._initial", "CommonPart", NoCommonPart),
    "no level moved": ("linear._initial", "agreeing_levels", lambda squares, b: b),  # noqa: ARG005
    "no row rejected": ("linear._regression_fit", "Rejection", NoRejection),
    "no comparison of fits": ("linear._regression_fit", "_nearest", lambda fit, *_: fit),
    "one estimate of sigma": ("linear._regression_fit", "ROUGH", 0),
    "no rule for many outliers": ("value_noise.assessment", "CROWD", np.inf),
    "no rule for leverage points": ("value_noise.assessment", "leverage_cluster", lambda *_: False),
    "repeated values assessed": ("value_noise.assessment", "repeated_value", lambda *_: None),
    "no trees": ("value_noise.reference", "_FitComparison.with_trees", lambda *_: None),
    "no uneven spread": ("value_noise.reference", "_FitComparison.uneven", lambda *_: None),
    "no robust line": ("value_noise.reference", "_FitComparison.line", lambda *_: None),
    "no logarithm": ("value_noise.reference", "POSITIVE", np.inf),
    "likeliest scale only": ("value_noise.assessment", "COUNTED_SHARE", np.inf),
    "no lost rows": ("value_noise.assessment", "NEAR", np.inf),
    "no rule for skewed tails": ("value_noise.mixture", "LARGE_PART", np.inf),
    "no gross part": ("value_noise.mixture", "SCHWARZ", np.inf),
}


def ablation(args):
    names = ("wages", "doctors", "schools") if args.quick else [n for n in DEVELOPED if has_lmrob() or n not in R()]
    lines = [
        "Geometric mean over developed tables as in `tables`. Where values have errors: share of intervals that hold"
    ]
    lines += [
        "their share, precision and recall. Then, for seeds below those of the other parts: clean draws with a rate"
    ]
    lines += [f"above 0 of {len(list(clean_draws()))} (as in `claims` and `misfits`, gamma errors of shape .3, zeros),"]
    lines += ["draws of 6 lost to 45 % outliers at 50 sigma (100 rows, 5 features), and the mean of `rare` (100 rows,"]
    lines += ["20 % at 50 sigma).", ""]
    columns = [*KINDS, "covers", "precision", "recall", "claims", "far", "rare"]
    lines += ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for label, switch in SWITCHES.items():
        with switched(*switch):
            lines.append(f"| {label} | " + " | ".join([*ablated_tables(names), *ablated_draws()]) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def ablated_tables(names):
    """RMSE of every kind of errors, coverage, precision and recall."""
    size, found = {kind: [] for kind in KINDS}, []
    for name, kind, _, X, given, X_test, y_test, clean in problems(names, range(1), KINDS):
        model = SelfPacedLinearRegression().fit(X, given)
        size[kind].append(
            np.log(rmse(np.r_[model.intercept_, model.coef_], X_test, y_test) / rmse(clean, X_test, y_test))
        )
        wrong = given != split(name, 0)[1]
        if wrong.any():
            flagged, (low, high) = model.assessment_.wrong > 0.5, model.noise_rate_interval_
            hits = (flagged & wrong).sum()
            precision = hits / flagged.sum() if flagged.any() else np.nan
            found.append([low <= wrong.mean() <= high, precision, hits / wrong.sum()])
    return [f"{np.exp(np.mean(size[kind])):.3f}" for kind in KINDS] + [f"{v:.3f}" for v in np.nanmean(found, axis=0)]


def ablated_draws():
    """Claims of clean values, and the draws lost of `far` and the mean error of `rare`."""
    seeds = range(FRESH - 1000, FRESH - 994)
    claimed = sum(
        SelfPacedLinearRegression().fit(X, y, groups=groups).noise_rate_ > 0 for X, y, groups in clean_draws()
    )
    draws = [far_outliers(100, 5, 0.45, 50.0, seed) for seed in seeds]
    lost, rows = sum(error(OURS(X, y), truth, 100) > LOST for X, y, truth in draws), []
    for seed in seeds:
        X, y, truth, good = levels(100, seed, 0.2, 50.0)
        fits = PEERS["least squares"](X[good], y[good]), OURS(X, y)
        rows.append([np.mean((b[0] + X @ b[1:] - truth)[good] ** 2) for b in fits])
    oracle, ours = np.mean(rows, axis=0)
    return [str(claimed), str(lost), f"{ours / oracle:.2f}"]


def clean_draws():
    """Clean values whose errors are not normal or that a line does not fit, and groups."""
    for seed in range(FRESH - 1000, FRESH - 998):
        for kind in UNUSUAL:
            yield *unusual(kind, np.random.default_rng([seed, 5])), None
        for kind in MISFIT[:-1]:
            yield misfit(kind, np.random.default_rng([seed, 8]))[:3]
        rng = np.random.default_rng([seed, 9])
        X = rng.normal(size=(600, 3))
        yield X, X @ [0.3, -0.3, 0.15] + 5 + rng.gamma(0.3, size=600), None
        yield X, np.where(rng.random(600) < 0.5, 0.0, rng.poisson(np.exp(1.5 + 0.4 * X[:, 0]))), None


@contextmanager
def switched(module=None, name=None, other=None):
    """Replace a part of the library for a while."""
    if module is None:
        yield
        return
    *owner, name = name.split(".")
    place = import_module(f"selfpaced.{module}")
    place = getattr(place, owner[0]) if owner else place
    kept = getattr(place, name)
    setattr(place, name, other)
    try:
        yield
    finally:
        setattr(place, name, kept)


def processor_seconds(run, repeats=3):
    best = np.inf
    for _ in range(repeats):
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


def cost(args):
    lines = ["| rows x features | target | LinearRegression | self-paced | RANSAC | boosting |", "|---" * 6 + "|"]
    for n, p in [(1_000, 10)] if args.quick else [(200, 5), (1_000, 10), (10_000, 20), (100_000, 10)]:
        for kind in ("20 % outliers", "lognormal, 5 % times ten"):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(n, p))
            y = X @ rng.normal(size=p) + rng.normal(size=n)
            if kind.startswith("20"):
                y[: n // 5] += 10
            else:
                y = np.exp(y / 4) * np.where(np.arange(n) < n // 20, 10, 1)
            models = LinearRegression(), SelfPacedLinearRegression(), RANSACRegressor(random_state=0)
            boosted = HistGradientBoostingRegressor(max_iter=60, early_stopping=False)
            seconds = [processor_seconds(lambda m=m, X=X, y=y: m.fit(X, y)) for m in (*models, boosted)]
            cells = [f"{value / seconds[0]:.1f}x ({value:.3f} s)" for value in seconds[1:]]
            lines.append(f"| {n:,} x {p} | {kind} | {seconds[0]:.4f} s | " + " | ".join(cells) + " |")
    return [*lines, "", "Processor time, best of three; boosting has 60 trees."]


PARTS = {
    part.__name__: part
    for part in (
        tables, clean, errors, claims, shifted, misfits, messy, linear, far, rare, scarce, inference, spread, scale,
        classics, ablation, cost,
    )
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--sets", choices=("developed", "confirmed"), default="confirmed")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}, part by part")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn of slow convergence
    if not has_lmrob():
        print("R or robustbase is missing: lmrob and the tables of R are left out", file=sys.stderr)
    for name in [args.part] if args.part else PARTS:
        text = "\n".join(PARTS[name](args))
        shown = f"{name}, {args.sets}" if name in ("tables", "errors") else name
        print(f"## {shown}\n\n{text}\n", flush=True)
        if args.save:
            save(shown, text)


def save(name, text):
    """Replace one part of the committed result and keep the others."""
    old = RESULT.read_text() if RESULT.exists() else ""
    parts = dict(re.findall(r"^## ([\w, ]+)\n\n(.*?)\n*(?=^## |\Z)", old, flags=re.M | re.S))
    changed = ["git", "log", "-1", "--format=%h", "--", "../src"]
    commit = subprocess.run(
        changed, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    parts[name] = f"{text}\n\nCode of commit {commit}."
    order = [key for part in PARTS for key in parts if key.split(",")[0] == part]
    body = "\n\n".join(f"## {key}\n\n{parts[key].strip()}" for key in order)
    RESULT.parent.mkdir(exist_ok=True)
    head = "Printed by `python benchmarks/regression.py --save`, which says what the parts are."
    RESULT.write_text(f"# Regression with gross errors\n\n{head}\n\n{body}\n")


if __name__ == "__main__":
    main()
