"""Everything scikit-learn asks of a classifier."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedLogisticRegression


@parametrize_with_checks([SelfPacedLogisticRegression()])
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
