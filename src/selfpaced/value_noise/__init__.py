"""Gross errors in values, told from what a model misfits: how many, which rows, and how sure that is.

A residual is large because the value is wrong, or because the model is. The assessment of this room looks for another
explanation of the rows before it calls any of them wrong: the target on another scale (none, log or power, chosen on
held-out rows), what boosted medians add to the model, and a spread that differs from row to row. In the units of the
likeliest explanation, errors are a core that may have heavy tails of two kinds, and a gross part only where the
likelihood clearly asks for one. Nothing is asked where outliers are strewn over the rows, far from the others, and the
others are even and normal: then they need no other explanation.

The assessment is a helper: it says which values are grossly wrong. Models are fitted, and predict, on the target
as given.
"""

from .choice import nearest
from .explanation import Rows
from .features import numeric_features
from .verdict import EVEN_ODDS, WITHOUT, Verdict, assess_values, model_verdict, repeated_value

__all__ = [
    "EVEN_ODDS",
    "WITHOUT",
    "Rows",
    "Verdict",
    "assess_values",
    "model_verdict",
    "nearest",
    "numeric_features",
    "repeated_value",
]
