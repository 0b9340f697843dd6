"""Regression with outliers: self-paced against robust peers, any estimator, and cost.

    python benchmarks/regression.py [--part linear|far|rare|scarce|inference|any|classics|cost] [--quick] [--save]

linear    coefficient error in units of clean least squares (root mean square over seeds; 1 = nothing lost), n = 200,
          p = 5, unit normal noise. Columns: clean; outliers 10 to 15 sigma above at 20 % and 40 %; 40 % of sigma 20; a
          tight cluster of bad leverage points (x = 5, residual 10) at 20 %, and far away (residual 50) at 40 %; Cauchy.
far       draws lost to one-sided outliers that are nearly half of the rows, beside lmrob of R's robustbase.
rare      one-hot columns of one or two rows, beside lmrob.
scarce    fewer than three rows per coefficient.
inference bias of `scale_` and coverage of the intervals of `summary()`, beside lmrob's `confint`.
any       boosting on Friedman's function, 1,500 rows, targets shifted up by 4 to 8 standard deviations; RMSE on clean
          data.
classics  rows that end with a weight below 0.2 in small data sets with known outliers.
cost      processor time as a multiple of one LinearRegression in the same run.

All methods run with their defaults; data and outliers have seeds of their own. Nothing is chosen with the truth in
view.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from regression_inference import far, inference, quiet, rare, scarce
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, LinearRegression, RANSACRegressor

from selfpaced import SelfPacedLinearRegression, SelfPacedRegressor

RESULT = Path(__file__).parent / "results" / "regression.md"
FRESH = 5000  # first seed: the method was made on seeds below
DESIGNS = ["clean", "up 20 %", "up 40 %", "wide 40 %", "lever 20 %", "far lever 40 %", "Cauchy"]
RECIPE = [1.01, 1.13, 1.28, 1.68, 3.6, 1.28, 1.81]  # figures of the research prototype, on its own seeds


def design(kind, n, p, seed):
    """Features, target, the true intercept and coefficients, and how many of the first rows are outliers."""
    rng = np.random.default_rng([seed, n, p])
    X, truth = rng.normal(size=(n, p)), rng.normal(size=p + 1)
    noise = rng.standard_t(1, size=n) if kind == "Cauchy" else rng.normal(size=n)
    share = int(kind.split()[-2]) / 100 if "%" in kind else 0
    m = round(share * n)
    if kind.startswith("up"):
        noise[:m] = 10 + 5 * rng.random(m) + rng.normal(size=m)
    elif kind.startswith("wide"):
        noise[:m] = 20 * rng.normal(size=m)
    elif "lever" in kind:
        X[:m] = 0.1 * rng.normal(size=(m, p))
        X[:m, 0] += 5
        noise[:m] = (50 if "far" in kind else 10) + 0.1 * rng.normal(size=m)
    return X, truth[0] + X @ truth[1:] + noise, truth, m


def scikit(model):
    def fit(X, y):
        model.fit(X, y)
        inner = getattr(model, "estimator_", model)
        return np.r_[inner.intercept_, inner.coef_]

    return fit


def statsmodels(make):
    def fit(X, y):
        import statsmodels.api as sm

        return np.asarray(make(sm, y, sm.add_constant(X)).fit().params)

    return fit


def det_smm(sm, y, X):  # noqa: ARG001
    from statsmodels.robust import RLMDetSMM

    return RLMDetSMM(y, X)


ORACLE = "least squares without the outliers (oracle)"
METHODS = {
    ORACLE: scikit(LinearRegression()),
    "SelfPacedLinearRegression": scikit(SelfPacedLinearRegression()),
    'same, regularizer="welsch"': scikit(SelfPacedLinearRegression(regularizer="welsch")),
    'same, pace="paper"': scikit(SelfPacedLinearRegression(pace="paper")),
    "statsmodels RLMDetSMM": statsmodels(det_smm),
    "statsmodels RLM Tukey": statsmodels(lambda sm, y, X: sm.RLM(y, X, M=sm.robust.norms.TukeyBiweight())),
    "HuberRegressor": scikit(HuberRegressor(alpha=0, max_iter=1000)),
    "RANSACRegressor": scikit(RANSACRegressor(random_state=0)),
    "LinearRegression": scikit(LinearRegression()),
}


def linear(quick):
    n, p, seeds = 200, 5, range(FRESH, FRESH + (5 if quick else 40))
    lines = [
        f"Seeds {seeds.start} to {seeds.stop - 1} (a quarter of them for RLMDetSMM and the paper's pace: slow).",
        "",
    ]
    lines += ["| | " + " | ".join(DESIGNS) + " |", "|---" * (len(DESIGNS) + 1) + "|"]
    for name, fit in METHODS.items():
        used = seeds[: max(len(seeds) // 4, 2)] if "SMM" in name or "paper" in name else seeds
        cells = []
        for kind in DESIGNS:
            errors = []
            for seed in used:
                X, y, truth, m = design(kind, n, p, seed)
                good = slice(m if name == ORACLE else 0, None)
                errors.append(np.sum((fit(X[good], y[good]) - truth) ** 2) * n / (p + 1))
            half = np.std(np.sqrt(errors)) / np.sqrt(len(errors))
            cells.append(f"{np.sqrt(np.mean(errors)):.2f} ± {half:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines.append("| recipe (prototype, other seeds) | " + " | ".join(f"{value:.2f}" for value in RECIPE) + " |")
    return [*lines, "", "Root mean square error over seeds, ± the standard error of the mean error."]


def friedman(seed, kind, n):
    rng = np.random.default_rng([seed, 7])
    X, truth = make_friedman1(n + 1000, noise=0, random_state=seed)
    y = truth[:n] + rng.normal(size=n)
    rows = rng.choice(n, round(kind * n), replace=False)
    y[rows] += 4 * np.std(truth) * (1 + rng.random(rows.size))
    return X[:n], y, X[n:], truth[n:]


def any_estimator(quick):
    n, seeds = (500, range(FRESH, FRESH + 2)) if quick else (1500, range(FRESH, FRESH + 5))
    lines = [f"HistGradientBoostingRegressor(max_iter=60), {n} rows, {len(seeds)} seeds.", ""]
    lines += ["| outliers | plain | absolute_error | self-paced | plain kept | noise rate |", "|---" * 6 + "|"]
    for kind in (0.0, 0.2, 0.4):
        rows = []
        for seed in seeds:
            X, y, test, truth = friedman(seed, kind, n)
            base = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0)
            model = SelfPacedRegressor(base).fit(X, y)
            absolute = HistGradientBoostingRegressor(loss="absolute_error", max_iter=60, early_stopping=False).fit(X, y)
            errors = [np.sqrt(np.mean((m.predict(test) - truth) ** 2)) for m in (model.plain_, absolute, model)]
            rows.append([*errors, np.isinf(model.lam_), model.noise_rate_])
        mean, spread = np.mean(rows, axis=0), np.std(np.asarray(rows, dtype=float), axis=0)
        cells = [f"{mean[i]:.2f} ± {spread[i]:.2f}" for i in range(3)]
        lines.append(f"| {kind:.0%} | " + " | ".join(cells) + f" | {int(mean[3] * len(rows))} | {mean[4]:.3f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, "", "Mean ± standard deviation over seeds."]


def classics(quick):  # noqa: ARG001
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
        model = SelfPacedLinearRegression().fit(X, y)
        found = np.flatnonzero(model.sample_weight_ < 0.2) + 1
        lines.append(f"| {name} | {known} | {', '.join(map(str, found))} |")
    return lines


def processor_seconds(run, repeats):
    best = np.inf
    for _ in range(repeats):
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


def cost(quick):
    shapes = [(1_000, 10), (20_000, 50)] if quick else [(1_000, 10), (100_000, 10), (100_000, 100)]
    lines = ["| rows x features | LinearRegression | self-paced | RANSACRegressor |", "|---" * 4 + "|"]
    for n, p in shapes:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, p))
        y = X @ rng.normal(size=p) + rng.normal(size=n)
        y[: n // 5] += 10
        models = (LinearRegression(), SelfPacedLinearRegression(), RANSACRegressor(random_state=0))
        seconds = [processor_seconds(lambda m=m, X=X, y=y: m.fit(X, y), 3) for m in models]
        ratios = [f"{value / seconds[0]:.1f}x" for value in seconds[1:]]
        lines.append(f"| {n:,} x {p} | {seconds[0]:.4f} s | " + " | ".join(ratios) + " |")
    lines += ["", "Processor time, best of three, 20 % outliers; one thread.", ""]
    return [*lines, *assess_cost(quick)]


def assess_cost(quick):
    """Where other explanations are looked for: a target whose logarithm is linear, 5 % of it times ten."""
    lines = ["| rows x features | one boosted fit (60 trees) | self-paced, assess included | |", "|---" * 4 + "|"]
    for n, p in [(1_000, 20)] if quick else [(1_000, 5), (1_000, 20), (5_000, 20), (50_000, 20)]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, p))
        y = np.exp((X @ rng.normal(size=p) + rng.normal(size=n)) / 4)
        y[: n // 20] *= 10
        model = SelfPacedLinearRegression()
        boosted = HistGradientBoostingRegressor(max_iter=60, early_stopping=False)
        seconds = [processor_seconds(lambda m=m, X=X, y=y: m.fit(X, y), 3) for m in (boosted, model)]
        assert model.verdict_.asked
        lines.append(f"| {n:,} x {p} | {seconds[0]:.3f} s | {seconds[1]:.3f} s | {seconds[1] / seconds[0]:.1f}x |")
    return [*lines, "", "A skewed target, 5 % of it times ten: the assessment of values is asked."]


PARTS = {
    "linear": linear,
    "far": far,
    "rare": rare,
    "scarce": quiet(scarce),
    "inference": lambda quick: inference(quick, design),
    "any": any_estimator,
    "classics": classics,
    "cost": cost,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}, part by part")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn of slow convergence
    for name in [args.part] if args.part else PARTS:
        text = "\n".join(PARTS[name](args.quick))
        print(f"## {name}\n\n{text}\n", flush=True)
        if args.save:
            save(name, text)


def save(name, text):
    """Replace one part of the committed result and keep the others."""
    old = RESULT.read_text() if RESULT.exists() else ""
    parts = dict(re.findall(r"^## (\w+)\n\n(.*?)\n*(?=^## |\Z)", old, flags=re.M | re.S))
    parts[name] = text
    body = "\n\n".join(f"## {key}\n\n{parts[key].strip()}" for key in PARTS if key in parts)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(f"# Regression with outliers\n\nPrinted by `python benchmarks/regression.py --save`.\n\n{body}\n")


if __name__ == "__main__":
    main()
