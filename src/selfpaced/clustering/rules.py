"""Which rules the clusterer knows, and how far it paces each by default."""

from __future__ import annotations

from typing import Any

from ..fitting import check_rule
from ..pacing import Fixed, Geometric, Ladder, Pacing, Span, check_pace
from ..regularizers import Logistic, Regularizer

# theory: not free of scale; what the median starting loss is scaled to before it meets the rule. At 4 the logistic
# weight falls from near 1 to near 0 within the spread of the losses; the logarithmic rule lives in (0, 1).
_TYPICAL = {"logistic": 4.0, "channel": 4.0, "logarithmic": 0.1}

# a choice, made on development data.
# Last half-weight loss as a multiple of the median starting loss, and the number of stages.
_END = {"hard": (3.2, 16), "tls": (3.2, 16), "logistic": (3.2, 16), "channel": (3.2, 16)}
_DEFAULT_END = (2.2, 8)
UNEVEN = 1.8  # times as far for views of different spread


def resolve(regularizer: Any) -> Regularizer | None:
    """The rule of this name or instance; ``"mspl"`` is the logistic rule, None is plain k-means."""
    if regularizer is None:
        return None
    if isinstance(regularizer, str) and regularizer.lower() == "mspl":
        return Logistic()
    return check_rule(regularizer)


def pace_of(rule: Regularizer | None, pace: Any, uneven: bool = False) -> tuple[Pacing, float | None]:
    """The pacing that the parameter ``pace`` asks for, and the median loss that it is meant for (None: as it is).

    "auto" runs from one median loss to the rule's own end; "paper" starts at half the samples and grows lam by 1.05.
    ``uneven`` views were not brought to one variance. The median loss is then that of the middle view, and the
    pace has to run further for the wider views to be heard.
    """
    pace = check_pace(pace)
    if rule is None:
        return Ladder((1.0,)), None
    if isinstance(pace, float):
        return Fixed(pace), None
    typical = _TYPICAL.get(rule.name, 1.0)
    if isinstance(pace, Pacing):
        return pace, typical
    if pace == "paper":
        return Geometric(), typical
    end, stages = _END.get(rule.name, _DEFAULT_END)
    if uneven:
        end, stages = UNEVEN * end, 2 * stages
    return Span(1.0, end, stages), typical
