"""Small but real fits of every area, clean and dirty, each with one score: what `constants.py` varies constants on.

Scores, larger is better: 100 x accuracy on clean test labels (linear, classifier, paper); -100 x log of the error
against the truth, so that 1 is one per cent of the error (regression, regressor, factorization); 100 x normalised
mutual information (clustering); -100 x the error of the estimated noise rate (label-noise).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.preprocessing import scale

import selfpaced
from selfpaced.datasets import (
    flip_class_conditional,
    flip_symmetric,
    make_low_rank,
    make_multiview_digits,
    outliers_leverage,
    outliers_one_sided,
    outliers_symmetric,
)
from selfpaced.label_noise import fit_channel, logits_from_proba


class Case(NamedTuple):
    """One fit and its score, larger is better; ``dirty`` says whether the data hold errors."""

    score: Callable[[], float]
    dirty: bool


class Rows(NamedTuple):
    """Training rows as given, test rows as they are, and the share of wrong training labels or values."""

    X: np.ndarray
    given: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    wrong: float


# ---------------------------------------------------------------------------------------------------- data


def labelled(rows: int, seeds: range) -> Iterator[Rows]:
    """Four sets x four kinds of label noise x seeds."""
    made = make_classification(900, 12, n_informative=5, weights=[0.75], class_sep=0.9, random_state=0)
    shipped = [load_breast_cancer(return_X_y=True), load_wine(return_X_y=True), load_digits(return_X_y=True)]
    for X, y in [*shipped, made]:
        X = scale(X)
        for seed in seeds:
            train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=seed)
            train = train[:rows]
            for kind in (0.0, 0.2, 0.4, "by class"):
                if kind == "by class":
                    rates = [0.05, 0.35, *[0.2] * (y.max() - 1)]
                    given, flipped = flip_class_conditional(y[train], rates, random_state=seed)
                else:
                    given, flipped = flip_symmetric(y[train], kind, random_state=seed)
                yield Rows(X[train], given, X[test], y[test], float(np.mean(flipped)))


def valued(third: Callable[[int], tuple[np.ndarray, np.ndarray]], seeds: range) -> Iterator[Rows]:
    """Diabetes, a made linear set and a third one x five kinds of outliers x seeds."""
    for seed in seeds:
        for X, y in (load_diabetes(return_X_y=True), linear_set(seed, 5), third(seed)):
            train, test = train_test_split(np.arange(len(y)), test_size=0.4, random_state=seed)
            for add, rate in (
                (outliers_symmetric, 0.0),
                (outliers_one_sided, 0.2),
                (outliers_one_sided, 0.4),
                (outliers_symmetric, 0.4),
                (outliers_leverage, 0.2),
            ):
                X_train, given = X[train], y[train]
                if add is outliers_leverage:
                    moved = add(X_train, given, rate, random_state=seed)
                    X_train, given = moved.data, moved.target
                else:
                    given, _ = add(given, rate, random_state=seed)
                yield Rows(X_train, given, X[test], y[test], rate)


def linear_set(seed: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, features))
    return X, X @ rng.normal(size=features) + rng.normal(size=160)


# ------------------------------------------------------------------------------------------------ the areas


def accuracy(model: Any, rows: Rows) -> float:
    return 100 * float(np.mean(model.fit(rows.X, rows.given).predict(rows.X_test) == rows.y_test))


def precision(found: np.ndarray, truth: np.ndarray) -> float:
    return -100 * float(np.log(np.sqrt(np.mean(np.square(found - truth))) + 1e-12))


def linear(seeds: range) -> Iterator[Case]:
    for rows in labelled(400, seeds):
        yield Case(partial(accuracy, selfpaced.SelfPacedLogisticRegression(), rows), rows.wrong > 0)


def regression(seeds: range) -> Iterator[Case]:
    for rows in valued(partial(linear_set, features=30), seeds):
        yield Case(partial(value_score, selfpaced.SelfPacedLinearRegression(), rows), rows.wrong > 0)


def value_score(model: Any, rows: Rows) -> float:
    return precision(model.fit(rows.X, rows.given).predict(rows.X_test), rows.y_test)


def classifier(seeds: range, rule: str = "hard") -> Iterator[Case]:
    bases = (RandomForestClassifier(15, random_state=0), LogisticRegression(max_iter=300))
    for number, rows in enumerate(labelled(200, seeds)):
        # Four kinds of noise per set and seed: kinds and sets meet one base and the other in turn.
        model = selfpaced.SelfPacedClassifier(bases[(number + number // 4) % 2], rule, random_state=0)
        yield Case(partial(accuracy, model, rows), rows.wrong > 0)


def wrapper(seeds: range) -> Iterator[Case]:
    """Soft labels instead of weights by the model's own losses."""
    return classifier(seeds, "auto")


def paper(seeds: range) -> Iterator[Case]:
    """The paper's own path instead of the library's choice."""
    wrapped = selfpaced.SelfPacedClassifier(LogisticRegression(max_iter=300), pace="paper", random_state=0)
    models = (selfpaced.SelfPacedLogisticRegression(pace="paper"), wrapped)
    for number, rows in enumerate(labelled(200, seeds)):
        yield Case(partial(accuracy, models[(number + number // 4) % 2], rows), rows.wrong > 0)


def regressor(seeds: range) -> Iterator[Case]:
    bases = (RandomForestRegressor(15, random_state=0), LinearRegression())
    for number, rows in enumerate(valued(lambda seed: make_friedman1(400, noise=1.0, random_state=seed), seeds)):
        model = selfpaced.SelfPacedRegressor(bases[number % 2], "hard", random_state=0)  # 15 cases per seed: both bases
        yield Case(partial(value_score, model, rows), rows.wrong > 0)


def factorization(seeds: range) -> Iterator[Case]:
    settings: list[dict[str, Any]] = [{"outliers": 0.0}, {}, {"outliers": 0.3}]
    settings.append({"n_rows": 60, "n_columns": 60, "missing": 0.6, "outliers": 0.1})
    for setting in settings:
        for seed in seeds:
            made = make_low_rank(random_state=seed, **setting)
            for rank in (4, "auto"):
                yield Case(partial(matrix_score, rank, made, seed), setting.get("outliers") != 0.0)


def matrix_score(rank: Any, made: Any, seed: int) -> float:
    model = selfpaced.SelfPacedMF(rank, random_state=seed).fit(made.data)
    return precision(model.row_factors_ @ model.components_, made.truth)


def clustering(seeds: range) -> Iterator[Case]:
    bunch = make_multiview_digits()
    settings: list[dict[str, Any]] = [{}, {"regularizer": "hard"}, {"view_scaling": "unit-row"}]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.choice(len(bunch.target), 600, replace=False))
        for dirty in (False, True):
            views = {name: np.array(view[rows], dtype=float) for name, view in bunch.views.items()}
            for block in views.values():  # of each dirty view, 15 % of the samples are drawn from far away
                wrong = rng.random(len(rows)) < (0.15 if dirty else 0.0)
                block[wrong] = block.mean(axis=0) + 4 * block.std(axis=0) * rng.normal(size=block[wrong].shape)
            model = selfpaced.SelfPacedMultiViewKMeans(10, random_state=seed, **settings[seed % len(settings)])
            yield Case(partial(cluster_score, model, views, bunch.target[rows]), dirty)


def cluster_score(model: Any, views: dict[str, np.ndarray], target: np.ndarray) -> float:
    return 100 * float(normalized_mutual_info_score(target, model.fit(views).labels_))


def label_noise(seeds: range) -> Iterator[Case]:
    model = LogisticRegression(C=0.3, max_iter=300)
    for rows in labelled(400, seeds):
        logits = logits_from_proba(cross_val_predict(model, rows.X, rows.given, cv=5, method="predict_proba"))
        codes = np.unique(rows.given, return_inverse=True)[1]
        yield Case(partial(rate_score, logits, codes, rows.wrong), rows.wrong > 0)


def rate_score(logits: np.ndarray, codes: np.ndarray, wrong: float) -> float:
    return -100 * abs(fit_channel(logits, codes).noise_rate - wrong)
