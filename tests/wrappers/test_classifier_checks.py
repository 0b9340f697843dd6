"""scikit-learn's own estimator checks, for a model with weights, and one that memorises."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedClassifier

WRAPPED = [
    SelfPacedClassifier(LogisticRegression()),
    SelfPacedClassifier(DecisionTreeClassifier(random_state=0)),
]


@parametrize_with_checks(WRAPPED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
