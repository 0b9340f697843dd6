"""scikit-learn's own estimator checks, for a model that memorises; tests/test_estimator_checks.py has others."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedClassifier


@parametrize_with_checks([SelfPacedClassifier(DecisionTreeClassifier(random_state=0))])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
