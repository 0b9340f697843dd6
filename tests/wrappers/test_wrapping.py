"""Seeds and threads of the wrapped models, and whether losses are cross-fitted."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from selfpaced import SelfPacedClassifier
from selfpaced.wrappers._wrapper import decide_cross_fit, seeded


def test_seeds_are_set_only_where_unset() -> None:
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier())
    assert seeded(pipe, 0)[-1].random_state == seeded(pipe, 0)[-1].random_state
    assert isinstance(seeded(pipe, 0)[-1].random_state, int)
    assert pipe[-1].random_state is None
    assert seeded(RandomForestClassifier(random_state=5), 0).random_state == 5


def test_the_gap_between_seen_and_unseen_rows_decides() -> None:
    rng = np.random.default_rng(0)
    unseen = (rng.random(500) < 0.3).astype(float)
    assert decide_cross_fit("auto", np.zeros(500), unseen, unit="error")[0]
    cross, why = decide_cross_fit("auto", unseen, unseen, unit="error")
    assert not cross
    assert "in-sample" in why
    assert decide_cross_fit(True, unseen, unseen, unit="error")[0]
    assert not decide_cross_fit(False, np.zeros(500), unseen, unit="error")[0]


class Threads(DummyClassifier):
    """Remembers how many threads OpenMP had in its fits."""

    seen: list[int] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        self.seen += [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]
        return super().fit(X, y, sample_weight)


def test_small_fits_do_not_wait_for_threads(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    X = np.random.default_rng(0).normal(size=(60, 2))
    Threads.seen.clear()
    with threadpool_limits(2, user_api="openmp"):
        SelfPacedClassifier(Threads()).fit(X, X[:, 0] > 0)
        after = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}
    assert set(Threads.seen) == {1}
    assert after == {2}
