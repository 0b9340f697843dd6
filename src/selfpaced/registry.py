"""Every estimator of this library, once: what is exported, saved, reported, documented and tested follows from here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, NamedTuple

#: What an estimator assesses: labels, values, entries of a matrix, samples of a clustering.
Kind = Literal["labels", "values", "entries", "samples"]


class Known(NamedTuple):
    """The module of an estimator, and what it assesses."""

    module: str
    kind: Kind


#: Name -> the module that defines it and what it assesses. To add an estimator, add its line.
ESTIMATORS: dict[str, Known] = {
    "PRMF": Known("factorization", "entries"),
    "SelfPacedClassifier": Known("wrappers", "labels"),
    "SelfPacedLinearRegression": Known("linear", "values"),
    "SelfPacedLogisticRegression": Known("linear", "labels"),
    "SelfPacedMF": Known("factorization", "entries"),
    "SelfPacedMultiViewKMeans": Known("clustering", "samples"),
    "SelfPacedRegressor": Known("wrappers", "values"),
}


def estimator(name: str) -> Any:
    """The class of this name."""
    return getattr(import_module(f"{__package__}.{ESTIMATORS[name].module}"), name)


__all__ = ["ESTIMATORS", "Kind", "Known", "estimator"]
