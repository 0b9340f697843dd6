"""Which rules the clusterer knows, and how far it paces each by default."""

from __future__ import annotations

from typing import Any

from ..regularizers import REGISTRY, Logistic, Regularizer, get
from .paced import Pace

# Not free of scale: what the median starting loss is scaled to before it meets the rule. At 4 the logistic
# weight falls from near 1 to near 0 within the spread of the losses; the logarithmic rule lives in (0, 1).
_TYPICAL = {"logistic": 4.0, "channel": 4.0, "logarithmic": 0.1}

# Last half-weight loss as a multiple of the median starting loss, and the number of stages.
_END = {"hard": (3.2, 16), "tls": (3.2, 16), "logistic": (3.2, 16), "channel": (3.2, 16)}
_DEFAULT_END = (2.2, 8)
UNEVEN = 1.8


def resolve(regularizer: Any) -> Regularizer | None:
    """The rule of this name or instance; ``"mspl"`` is the logistic rule, None is plain k-means."""
    if regularizer is None:
        return None
    if isinstance(regularizer, str) and regularizer.lower() == "mspl":
        return Logistic()
    rule = get(regularizer)
    if not isinstance(rule, Regularizer):
        names = [name for name, known in REGISTRY.items() if issubclass(known, Regularizer)]
        raise ValueError(
            f"regularizer must be an elementwise rule, got {regularizer!r}, whose weights depend on groups; "
            f"choose one of {', '.join([*names, 'mspl'])}"
        )
    return rule


def default_pace(
    regularizer: Any,
    start: float = 1.0,
    end: float | None = None,
    stages: int | None = None,
    uneven: bool = False,
) -> Pace:
    """The pace of a rule, with its own end and number of stages where they are not given.

    ``uneven`` views were not brought to one variance. The median loss is then that of the middle view, and the
    pace has to run further for the wider views to be heard.
    """
    rule = resolve(regularizer)
    if rule is None:
        return Pace(None, stages=1)
    usual_end, usual_stages = _END.get(rule.name, _DEFAULT_END)
    if uneven:
        usual_end, usual_stages = UNEVEN * usual_end, 2 * usual_stages
    return Pace(
        rule,
        _TYPICAL.get(rule.name, 1.0),
        start,
        usual_end if end is None else end,
        usual_stages if stages is None else stages,
    )
