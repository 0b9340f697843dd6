"""The mathematics: every weight rule as a latent loss, its slope (the weight) and its dual regularizer.

>>> from selfpaced.regularizers import get
>>> rule = get("welsch")
>>> rule.weight([0.0, 1.0, 10.0], lam=1.0).round(4).tolist()
[1.0, 0.3679, 0.0]
"""

from __future__ import annotations

import difflib
from typing import Any

from .base import Formula, Quadratic, Regularizer, Relative, Scaled, quadratic, relative
from .checks import Condition, Report, check
from .custom import FromLoss, from_loss
from .explicit import Hard, Linear, Logarithmic, Logistic, MixtureJiang, MixtureZhao
from .grouped import BoundGroups, Diversity, GroupRegularizer, GroupSqrt
from .robust import (
    L1L2,
    Barron,
    Cauchy,
    Channel,
    GemanMcClure,
    Huber,
    TruncatedQuadratic,
    Tukey,
    Welsch,
)

_IMPLICIT = (Huber, Cauchy, L1L2, Welsch, GemanMcClure, Tukey, Barron, TruncatedQuadratic, Channel)
_EXPLICIT = (Hard, Linear, Logarithmic, MixtureJiang, MixtureZhao, Logistic)
_GROUPED = (Diversity, GroupSqrt)

#: Every rule by name: what tests, documentation and command line read.
REGISTRY: dict[str, type[Regularizer] | type[GroupRegularizer]] = {
    rule.name: rule for rule in (*_IMPLICIT, *_EXPLICIT, *_GROUPED)
}
ALIASES = {"mixture": "mixture-zhao"}


def get(rule: Any) -> Any:
    """The rule of this name, with its default shape; an instance is returned as it is.

    >>> get("mixture")
    MixtureZhao(gamma=None)
    """
    if isinstance(rule, Regularizer | GroupRegularizer | BoundGroups):
        return rule
    known = [*REGISTRY, *ALIASES]
    if not isinstance(rule, str):
        raise TypeError(f"regularizer must be a name or an instance of Regularizer, got {rule!r}")
    name = ALIASES.get(rule, rule)
    if name not in REGISTRY:
        near = difflib.get_close_matches(rule.lower(), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"regularizer must be one of {', '.join(known)}, got {rule!r}{hint}")
    return REGISTRY[name]()


__all__ = [
    "ALIASES",
    "L1L2",
    "REGISTRY",
    "Barron",
    "BoundGroups",
    "Cauchy",
    "Channel",
    "Condition",
    "Diversity",
    "Formula",
    "FromLoss",
    "GemanMcClure",
    "GroupRegularizer",
    "GroupSqrt",
    "Hard",
    "Huber",
    "Linear",
    "Logarithmic",
    "Logistic",
    "MixtureJiang",
    "MixtureZhao",
    "Quadratic",
    "Regularizer",
    "Relative",
    "Report",
    "Scaled",
    "TruncatedQuadratic",
    "Tukey",
    "Welsch",
    "check",
    "from_loss",
    "get",
    "quadratic",
    "relative",
]
