"""scikit-learn's own estimator checks."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import PRMF, SelfPacedMF


def expected_failures(estimator: Any) -> dict[str, str]:
    start = "starts are random factors of every row: a repeated row starts twice, a weighted one once"
    return {
        "check_sample_weights_shape": "sample_weight has one value per entry: two-dimensional is what is asked for",
        "check_estimator_sparse_array": "predict gives whole rows of the matrix, not one number for each",
        "check_estimator_sparse_matrix": "predict gives whole rows of the matrix, not one number for each",
        "check_sample_weight_equivalence_on_dense_data": start,
        "check_sample_weight_equivalence_on_sparse_data": start,
    }


@parametrize_with_checks([SelfPacedMF(random_state=0), PRMF(random_state=0)], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore:.*no observed entry")
@pytest.mark.filterwarnings("ignore:means only")  # most checks fit pure noise
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
