"""Fit one method on the ten folds of one noisy data set."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfpaced.datasets import flip_symmetric
from selfpaced_experiments import data
from selfpaced_experiments.tasks.ours import LINEAR

__all__ = ["MAKERS", "SETS", "run"]

SETS = {"Breast": "load_breast", "Spambase": "load_spambase", "Svmguide1": "load_svmguide1"}


def _liblinear(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="liblinear", C=1.0, random_state=seed)


def _tuned(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    grid = {"C": [0.001, 0.01, 0.1, 1.0, 10.0]}
    return GridSearchCV(LogisticRegression(solver="liblinear", random_state=seed), grid, cv=folds)


def _cleanlab(seed: int) -> Any:
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    # One process: cleanlab's own pool does not survive inside a worker.
    kwargs = {"n_jobs": 1}
    model = LogisticRegression(C=1.0, max_iter=1000)
    return CleanLearning(model, seed=seed, verbose=False, find_label_issues_kwargs=kwargs)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


MAKERS: dict[str, Callable[[int], Any]] = {
    "LR": _liblinear,
    "LR, C by 3-fold": _tuned,
    "cleanlab": _cleanlab,
    "Random forest": _forest,
    "HistGradientBoosting": _boosting,
}


@functools.lru_cache(maxsize=3)
def _data(name: str, data_dir: str | None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    loader = getattr(data, SETS[name])
    X, y = loader(return_X_y=True) if name == "Breast" else loader(data_dir=data_dir, return_X_y=True)
    return X, y


def run(*, dataset: str, rate: float, seed: int, folds: int, method: str, data_dir: str | None) -> dict[str, Any]:
    """Accuracy on the clean labels of each test fold, trained on noisy ones.

    The seeds of folds, noise and model are apart; features are z-scored on the training fold.
    """
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    X, y = _data(dataset, data_dir)
    accuracy, seconds = [], 0.0
    for fold, (train, test) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)):
        scaler = StandardScaler().fit(X[train])
        noisy, _ = flip_symmetric(y[train], rate, random_state=10_000 + 100 * seed + fold)
        model = (MAKERS | LINEAR)[method](20_000 + seed)
        start = time.process_time()
        model.fit(scaler.transform(X[train]), noisy)
        seconds += time.process_time() - start
        accuracy.append(100.0 * float(np.mean(model.predict(scaler.transform(X[test])) == y[test])))
    return {"accuracy": accuracy, "seconds": seconds / folds}
