"""The path: one driver for every estimator, and Algorithm 1 of the paper as its simplest passenger.

:func:`walk` sets the pace, asks a step for the model at that pace, keeps the record and knows when to end.
:func:`alternate` is the walk whose step alternates between weights and weighted fits.  Whatever else reaches the
same points (the latent loss minimised directly, a sweep with the weights fused into it) is another step behind the
same walk.
"""

from .alternation import Alternation, Problem, alternate, latent_objective
from .walking import Callback, DeadEnd, End, Solution, Stage, State, Step, stop_reason, walk

__all__ = [
    "Alternation",
    "Callback",
    "DeadEnd",
    "End",
    "Problem",
    "Solution",
    "Stage",
    "State",
    "Step",
    "alternate",
    "latent_objective",
    "stop_reason",
    "walk",
]
