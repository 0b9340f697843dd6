"""Sentences about an audit, for people."""

from __future__ import annotations

import math

__all__ = ["counted", "levels_in_words", "percent", "rate_in_words"]


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.031), percent(0.31), percent(0.0)
    ('3.1 %', '31 %', '0 %')
    """
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(1200, "label")
    ('1 row', '1,200 labels')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def rate_in_words(rate: float, interval: tuple[float, float], if_any: float, nothing: bool, established: bool) -> str:
    """What is known about the share of wrong labels.

    >>> rate_in_words(0.2, (0.15, 0.25), 0.2, False, True)
    'Estimated label-error rate 20 % (15 % to 25 %).'
    >>> rate_in_words(math.nan, (0.0, 0.12), 0.05, False, False)[:49]
    'Between 0 and 12 % of the labels may be wrong (ab'
    """
    low, high = interval
    if nothing:
        return "The probabilities do not predict the labels, so wrong labels cannot be found with them."
    if established:
        return f"Estimated label-error rate {percent(rate)} ({percent(low)} to {percent(high)})."
    if not math.isnan(rate):
        return f"No label noise detected: at most {percent(high)} of the labels are wrong."
    return (
        f"Between 0 and {percent(high)} of the labels may be wrong (about {percent(if_any)} if any are); these labels "
        "cannot tell whether any are."
    )


def levels_in_words(likely: int, look: int, right: float, if_any: float) -> str:
    """How long the two lists are, and how many of their rows are expected to be wrong.

    >>> levels_in_words(2, 10, 0.9, 0.4)
    '2 likely errors (about 90 % of them wrong), 10 worth a look (about 40 % of them wrong, if any labels are).'
    """
    first = (
        f"{counted(likely, 'likely error')} (about {percent(right)} of them wrong)" if likely else "No likely errors"
    )
    second = f"{look:,} worth a look"
    if look and not math.isnan(if_any):
        second += f" (about {percent(if_any)} of them wrong, if any labels are)"
    return f"{first}, {second}."
