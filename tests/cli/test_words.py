"""What the command line says about a share of wrong rows and about scores."""

from __future__ import annotations

import pytest

from selfpaced.cli.fit import _score, _share


@pytest.mark.parametrize(
    ("rate", "interval", "said"),
    [
        (0.2, (0.1, 0.3), "about 20.0% (between 10.0% and 30.0%)"),
        (0.32, (0.0, 0.57), "perhaps 32.0%, perhaps none (between 0.0% and 57.0%)"),
        (0.0, (0.0, 0.024), "none found (at most 2.4%)"),
        (0.2, None, "about 20.0% (between nan% and nan%)"),
    ],
)
def test_a_share_is_claimed_no_further_than_its_interval(rate, interval, said):
    assert _share(rate, interval) == said


def test_a_log_likelihood_is_no_percentage():
    row = {"score": -0.693, "spread": 0.02}
    assert _score(row, "classification") == "-0.693 +- 0.02"
    assert _score({"score": 0.91, "spread": 0.01}, "classification") == "91.0% +- 1.0%"
