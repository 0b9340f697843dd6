"""Gross errors in values, told from misfit: how many, which rows, and how certain that is.

A residual is large because the value is wrong, or because the model is. So if there are large ones, a reference model
is fitted to other rows: boosted trees that correct the model, a spread that differs from row to row, the logarithm of
the target. In its units, errors are a core that may have heavy and uneven tails, and a gross part only if the
likelihood clearly asks for one.

The assessment says which values are grossly wrong. Models are fitted, and predict, on the target as given.
"""

from .assessment import EVEN_ODDS, ValueAssessment, assess_values, by_model, nearest, repeated_value
from .reference import numeric_features

__all__ = [
    "EVEN_ODDS",
    "ValueAssessment",
    "assess_values",
    "by_model",
    "nearest",
    "numeric_features",
    "repeated_value",
]
