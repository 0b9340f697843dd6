"""One fit of one method to one noisy table, and what it is worth: the cells of classification.py.

A cell is cached on disk (see selfpaced_experiments.cells) until this module, the noise makers or the code of the method
change. The seeds of split, noise and model are apart; all methods get the same rows, scaling and labels, and defaults.
"""

from __future__ import annotations

import inspect
import time
from functools import cache
from typing import Any

import label_sets
import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from selfpaced import datasets
from selfpaced_experiments.cells import Cell

NOISES = ("clean", "5 %", "10 %", "20 %", "40 %", "35/5 %", "border 20 %", "region")
OURS, BALANCED = "selfpaced", "selfpaced, balance .5"
PEERS = ("plain", "LR CV", "cleanlab", "oracle")
PAPER = ("paper: breast", "paper: spambase", "paper: svmguide1")
MOST_TRAINED, MOST_TESTED = 1500, 2500
BINS = 10  # of the calibration error
_LIBRARY = ("selfpaced.linear.logistic",)  # with all that it imports


def cell(function: str, label: str, ours: bool = True, **params: Any) -> Cell:
    """A computation by its name in this module; only what uses the library goes stale when the library changes."""
    parts, packages = (_LIBRARY, ("numpy", "scikit-learn")) if ours else ((), ("numpy", "scikit-learn", "cleanlab"))
    return Cell(f"noisy_fits:{function}", params, label, parts, packages)


# --------------------------------------------------------------------------------------------------- data


@cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A listed data set, or one of the paper's three."""
    if name in PAPER:
        X, y = getattr(datasets, "load_" + name.removeprefix("paper: "))(return_X_y=True)
        return X, np.unique(y, return_inverse=True)[1]
    return label_sets.load(name)


def noisy(X: np.ndarray, y: np.ndarray, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels with noise and where they changed."""
    if noise == "clean":
        return y, np.zeros(len(y), dtype=bool)
    if noise == "border 20 %":
        return datasets.flip_near_border(X, y, 0.2, random_state=seed)
    if noise == "region":
        return datasets.flip_in_region(X, y, random_state=seed)
    if noise == "35/5 %":
        rates = [0.35 if c % 2 else 0.05 for c in range(int(y.max()) + 1)]
        return datasets.flip_class_conditional(y, rates, random_state=seed)
    return datasets.flip_symmetric(y, float(noise.removesuffix(" %")) / 100, random_state=seed)


def parts(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows, scaled by the training rows.

    Two thirds to learn from, at most 1,500; and for the paper's sets its tenfold splits, ten seeds each.
    """
    X, y = table(name)
    if name in PAPER:
        split, fold = divmod(seed, 10)
        a, b = list(StratifiedKFold(10, shuffle=True, random_state=split).split(X, y))[fold]
    else:
        trained = min(MOST_TRAINED, 2 * len(y) // 3)
        sizes = {"train_size": trained, "test_size": min(MOST_TESTED, len(y) - trained)}
        a, b = train_test_split(np.arange(len(y)), **sizes, stratify=y, random_state=100 + seed)
    scaler = StandardScaler().fit(X[a])
    return scaler.transform(X[a]), y[a], scaler.transform(X[b]), y[b]


# ------------------------------------------------------------------------------------------------ methods


def balances() -> bool:
    """Whether the library at hand can lean towards balanced classes."""
    from selfpaced import SelfPacedLogisticRegression

    return "balance" in inspect.signature(SelfPacedLogisticRegression).parameters


def made(method: str, seed: int) -> Any:
    """An unfitted model."""
    if method in ("plain", "oracle"):
        return LogisticRegression(max_iter=1000)
    if method == "LR CV":
        return LogisticRegressionCV(max_iter=1000)
    if method == "cleanlab":
        from cleanlab.classification import CleanLearning

        one_process = {"n_jobs": 1}
        return CleanLearning(LogisticRegression(max_iter=1000), seed=seed, find_label_issues_kwargs=one_process)
    from selfpaced import SelfPacedLogisticRegression

    options = {"balance": 0.5} if method == BALANCED else {}
    return SelfPacedLogisticRegression(random_state=seed, **options)


def suspicion(method: str, model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How suspicious each training row is: by the method's own ranking, else by the loss of its label."""
    if method == "cleanlab":
        return 1 - model.get_label_issues()["label_quality"].to_numpy()
    if method in (OURS, BALANCED):
        return model.assessment_.evidence
    return 1 - model.predict_proba(X)[np.arange(len(y)), y]


def listed(method: str, model: Any, flipped: np.ndarray) -> dict[str, Any]:
    """The rows that a method lists: how many, F1, and those that it claims to be wrong."""
    if method not in (OURS, "cleanlab"):
        return {}
    if method == "cleanlab":
        levels = 2 * model.get_label_issues()["is_label_issue"].to_numpy()
    else:
        levels = model.assessment_.levels()
    both, likely = levels > 0, levels == 2
    found = 2 * float((both & flipped).sum()) / max(int(both.sum() + flipped.sum()), 1)
    right = float(flipped[likely].mean()) if likely.any() else None
    return {
        "f1": found if flipped.any() else None,
        "listed": int(both.sum()),
        "likely": int(likely.sum()),
        "right": right,
    }


def claim(method: str, model: Any) -> tuple[float, float, float]:
    """Share of wrong labels that a method claims, and its interval."""
    if method == "cleanlab":
        return float(model.get_label_issues()["is_label_issue"].mean()), np.nan, np.nan
    if method in (OURS, BALANCED):
        rate = float(model.noise_rate_)
        return model.noise_rate_if_any_ if np.isnan(rate) else rate, *map(float, model.noise_rate_interval_)
    return np.nan, np.nan, np.nan


# ----------------------------------------------------------------------------------------------- measures


def fit(*, name: str, noise: str, seed: int, method: str, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Everything a method gets right and wrong on one split of one table."""
    X, y, X_test, y_test = parts(name, seed)
    given, flipped = noisy(X, y, noise, 5000 + seed)
    present, labels = np.unique(y if method == "oracle" else given, return_inverse=True)
    model, seconds = made(method, seed), []
    start = time.process_time()
    model.fit(X, labels)
    own = time.process_time() - start
    for _ in range(3):
        start = time.process_time()
        LogisticRegression(max_iter=1000).fit(X, labels)
        seconds.append(time.process_time() - start)
    proba = np.zeros((len(y_test), int(y.max()) + 1))
    proba[:, present] = model.predict_proba(X_test)
    rate, low, high = claim(method, model)
    wrong = flipped.any() and method != "oracle"
    return {
        **scores(present[model.predict(X_test)], proba, y_test),
        "precision": float(average_precision_score(flipped, suspicion(method, model, X, labels))) if wrong else None,
        "flipped": float(flipped.mean()),
        **listed(method, model, flipped),
        "rate": rate,
        "interval": [low, high],
        "cost": own / min(seconds),
    }


def scores(predicted: np.ndarray, proba: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy, balanced accuracy (in %), log-loss, and the error of the confidence in the most probable class."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs(sure[place == b].sum() - right[place == b].sum()) for b in range(BINS)]
    return {
        "accuracy": 100 * float(np.mean(predicted == truth)),
        "balanced": 100 * float(balanced_accuracy_score(truth, predicted)),
        "loss": float(-np.log(np.clip(proba[np.arange(len(truth)), truth], 1e-12, 1)).mean()),
        "calibration": float(sum(gaps) / len(truth)),
    }


def schedule(
    *,
    name: str,
    rule: str,
    noise: str,
    C: Any,
    seed: int,
    data_dir: str | None,  # noqa: ARG001
) -> dict[str, Any]:
    """The paper's schedule with one of its rules, the penalty given or chosen."""
    from selfpaced import SelfPacedLogisticRegression

    X, y, X_test, y_test = parts(name, seed)
    given, _ = noisy(X, y, noise, 5000 + seed)
    model = SelfPacedLogisticRegression(rule, pace="paper", C=C, random_state=seed).fit(X, given)
    return {"accuracy": 100 * float(np.mean(model.predict(X_test) == y_test))}


# ------------------------------------------------------------------------- where there is nothing to be found


def no_signal(*, rows: int, features: int, classes: int, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Labels at random: what the library claims of them."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((rows, features)), rng.integers(0, classes, rows)
    return _claimed(X, y, seed)


def drawn(*, name: str, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Labels drawn from the probabilities of a logistic regression of the table: overlap, and not one wrong label."""
    X, y, _, _ = parts(name, seed)
    proba = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X)
    uniform = np.random.default_rng(7000 + seed).random((len(y), 1))
    labels = (uniform > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    kept = np.bincount(labels, minlength=proba.shape[1])[labels] >= 2
    return _claimed(X[kept], labels[kept], seed)


def factors(*, rows: int, features: int, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Labels drawn from one of five factors behind at least as many features as rows: overlap again."""
    rng = np.random.default_rng(8000 + seed)
    behind = rng.standard_normal((rows, 5))
    X = behind @ rng.standard_normal((5, features)) + 0.3 * rng.standard_normal((rows, features))
    return _claimed(X, (rng.random(rows) < 1 / (1 + np.exp(-2 * behind[:, 0]))).astype(int), seed)


def bent(*, rows: int, kind: str, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Labels drawn by one of four columns, as they are or each an exponential of what labels go by."""
    rng = np.random.default_rng(9000 + seed)
    X = rng.standard_normal((rows, 4))
    score = 2 * X[:, 0] - 1 if kind == "skewed" else X[:, 0]
    y = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
    return _claimed(np.exp(1.5 * X) if kind == "skewed" else X, y, seed)


def _claimed(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    model = made(OURS, seed).fit(X, np.unique(y, return_inverse=True)[1])
    rate, low, high = claim(OURS, model)
    levels = model.assessment_.levels()
    counts = {"suspects": int((levels == 2).sum()), "look": int((levels == 1).sum())}
    return {"rate": rate, "interval": [low, high], **counts}


def kept(*, name: str, noise: str, change: str, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """Jaccard index of what two fits list: under another random_state, or with 3 % of the rows deleted."""
    X, y, _, _ = parts(name, seed)
    given, _ = noisy(X, y, noise, 5000 + seed)
    other = seed + 1000 if change.startswith("another") else seed
    rows = np.arange(len(y))
    if other == seed:
        rows = np.flatnonzero(np.random.default_rng(seed).random(len(y)) > 0.03)
    levels = np.zeros((2, len(y)), dtype=int)
    for place, own in enumerate((np.arange(len(y)), rows)):
        labels = np.unique(given[own], return_inverse=True)[1]
        model = made(OURS, (seed, other)[place]).fit(X[own], labels)
        levels[place, own] = model.assessment_.levels()
    levels = levels[:, rows]

    def jaccard(least: int) -> float | None:
        one, two = levels >= least
        if not (one | two).any() or (least == 2 and not (one.any() and two.any())):
            return None
        return float((one & two).sum() / (one | two).sum())

    return {"listed": jaccard(1), "likely": jaccard(2)}


def stability(*, seed: int, noise: str, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """The same table (three coarse columns, 2,201 rows, as of a ship's passengers), the folds split by another seed."""
    rng = np.random.default_rng(0)
    rank, adult, male = rng.choice(4, 2201, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2201) < 0.95, rng.random(2201) < 0.79
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2201) < np.where(adult, chance, np.maximum(chance, 0.55))).astype(int)
    X = StandardScaler().fit_transform(np.column_stack([np.eye(4)[rank], adult, male]))
    given, _ = noisy(X, y, noise, 1)
    model = made(OURS, seed).fit(X, given)
    return {
        "suspects": int((model.assessment_.levels() == 2).sum()),
        "rate": float(model.noise_rate_if_any_),
        "predicted": "".join(map(str, model.predict(X))),
    }
