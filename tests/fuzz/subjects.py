"""What is tried: every estimator, the functions around them, tables, the command line, the criterion for networks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from .draws import Draw
from .estimators import classifier, clustering, factorization, linear, logistic, prmf, regressor, suspect_filter
from .files import command, tables
from .functions import noise, rules
from .interrupts import interrupts, leverage
from .networks import network

SUBJECTS: dict[str, Callable[[Draw], None]] = {
    subject.__name__: subject
    for subject in (
        logistic, linear, classifier, regressor, suspect_filter, factorization, prmf, clustering, noise, rules,
        tables, command, interrupts, leverage,
    )
}  # fmt: skip
if importlib.util.find_spec("torch"):
    SUBJECTS["network"] = network
