"""The plumbing of every fit: user weights, progress."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from selfpaced.fitting import Progress, check_weight


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones((3, 1)), "1D array"),
        (np.ones(4), r"shape \(3,\), one value per row, got \(4,\)"),
        ([1, -1, 1], ">= 0, got -1.0"),
        ([1, np.nan, 1], "must be finite"),
        ([0, 0, 0], "zero for every row"),
    ],
)
def test_bad_user_weights(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_weight(weight, 3)


def test_verbose_lines_reach_stderr_and_logging_is_restored(capsys: Any) -> None:
    class Owner:
        verbose = 1

    logger = logging.getLogger("selfpaced")
    before = (logger.level, list(logger.handlers))
    with Progress(Owner()).running() as progress, progress.stage("round 1"):
        pass
    assert "Owner: round 1" in capsys.readouterr().err
    assert (logger.level, list(logger.handlers)) == before
