"""Some cases of every subject; ``make fuzz`` tries more."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from .cases import SUBJECTS, findings, run
from .outcomes import Unacceptable, acceptable, finite

CASES = {"command": 15, "suspect_filter": 20, "factorization": 25, "prmf": 25}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_result_or_an_error_that_names_what_is_wrong(subject: str) -> None:
    found = list(findings(subject, range(CASES.get(subject, 30))))
    assert not found, "\n".join(map(str, found))


def test_a_case_is_drawn_from_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setitem(SUBJECTS, "noise", lambda draw: seen.append(draw.rng.random()))
    for number in (3, 4, 3):
        run("noise", number)
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize(
    "error",
    [
        TypeError("'NoneType' object is not callable"),
        TypeError("'<' not supported between instances of 'str' and 'int' in C"),
        AttributeError("C"),
        IndexError("C"),
        ValueError("something is wrong"),
        ValueError("could not convert string to float: 'a'"),
        ZeroDivisionError("C"),
    ],
)
def test_words_that_tell_nothing_are_not_accepted(error: Exception) -> None:
    assert not acceptable(error, ["C", "X"])


@pytest.mark.parametrize(
    "message",
    ["C must be a positive number, got 'a'", "X must be numbers (could not convert ...)", "Input X contains NaN"],
)
def test_words_that_name_the_parameter_are(message: str) -> None:
    assert acceptable(ValueError(message), ["C", "X"])


def test_a_result_with_holes_is_none() -> None:
    with pytest.raises(Unacceptable, match="predict is not finite"):
        finite("predict", np.array([1.0, math.nan]))
    with pytest.raises(Unacceptable, match=r"predict has the shape \(2,\), not \(3,\)"):
        finite("predict", np.zeros(2), (3,))


def test_a_finding_says_how_to_try_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from . import __main__

    def broken(draw: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setitem(SUBJECTS, "noise", broken)
    monkeypatch.setattr(sys, "argv", ["fuzz", "noise", "--cases", "1", "--start", "7"])
    assert __main__.main() == 1
    assert "python -m fuzz noise 7: IndexError: list index out of range" in capsys.readouterr().out
