"""The models that can be asked for by name."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from .choice import log_scale
from .errors import UsageError

__all__ = ["MODELS", "add_model_arguments", "build", "kind_of", "model_of", "on_log_scale", "paced", "share"]

MODELS = ("logistic", "ridge", "hist-gradient-boosting", "random-forest")
SHORT = {"boosting": "hist-gradient-boosting", "forest": "random-forest"}
_TASK = {"logistic": "classification", "ridge": "regression"}


def add_model_arguments(parser: argparse.ArgumentParser, *, seed: str = "random seed (default 0)") -> None:
    """The arguments of every command that fits."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        choices=("auto", *MODELS, *SHORT),
        default="auto",
        help="auto (default): logistic (or boosting, if it is far ahead) for classes; for values ridge or boosting, on "
        "the plain or a log scale, whichever predicts held-out rows better",
    )
    group.add_argument("--regularizer", metavar="RULE", help="weighting rule (see: selfpaced list)")
    group.add_argument("--pace", metavar="PACE", default="auto", help="auto (default), paper, or a number (lam)")
    group.add_argument(
        "--threshold",
        type=share,
        default=0.5,
        metavar="P",
        help="rows more probably wrong than this are likely errors (default 0.5)",
    )
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="rows that belong together, such as visits of a patient; no feature",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help=seed)
    group.add_argument("--jobs", type=int, default=None, metavar="N", help="number of parallel jobs")


def model_of(args: argparse.Namespace, task: str) -> str:
    """The model's name ("auto" if the data decide), or an error if it cannot do the task."""
    name: str = SHORT.get(args.model, args.model)
    if _TASK.get(name, task) != task:
        target = "classes" if task == "classification" else "values"
        raise UsageError(f"--model {name} is for {_TASK[name]}, but the target holds {target}; see --task and --model")
    return name


def on_log_scale(model: Any, values: np.ndarray) -> Any:
    """A model of the logarithm of the values, which predicts the values."""
    from sklearn.compose import TransformedTargetRegressor

    to_log, from_log = log_scale(values)
    return TransformedTargetRegressor(model, func=to_log, inverse_func=from_log, check_inverse=False)


def paced(model: Any) -> Any:
    """The self-paced model itself, without a change of scale around it."""
    return getattr(model, "regressor_", model)


def kind_of(name: str) -> str:
    """Which preprocessing a model wants."""
    return "linear" if name in _TASK else "tree"


def build(name: str, task: str, args: argparse.Namespace, categorical: list[int]) -> Any:
    """An unfitted self-paced model; ``categorical`` are the positions of features that are ranks of categories."""
    options: dict[str, Any] = {"random_state": args.seed, "pace": _pace(args.pace)}
    if args.regularizer is not None:
        options["regularizer"] = _rule(args.regularizer)
    if name == "logistic":
        from selfpaced import SelfPacedLogisticRegression

        return SelfPacedLogisticRegression(**options)
    if name == "ridge":
        from selfpaced import SelfPacedLinearRegression

        return SelfPacedLinearRegression(alpha=1.0, **options)
    return _wrapped(name, task, args, categorical, options)


def _wrapped(name: str, task: str, args: argparse.Namespace, categorical: list[int], options: dict[str, Any]) -> Any:
    from sklearn import ensemble

    from selfpaced import SelfPacedClassifier, SelfPacedRegressor

    classify = task == "classification"
    if name == "random-forest":
        forest = ensemble.RandomForestClassifier if classify else ensemble.RandomForestRegressor
        inner = forest(random_state=args.seed, n_jobs=args.jobs)
    else:
        known: dict[str, Any] = {"random_state": args.seed, "categorical_features": categorical or None}
        if classify:
            inner = ensemble.HistGradientBoostingClassifier(**known)
        else:  # gross errors move a median less than a mean
            inner = ensemble.HistGradientBoostingRegressor(loss="absolute_error", **known)
    return (SelfPacedClassifier if classify else SelfPacedRegressor)(inner, **options)


def _rule(name: str) -> str:
    from selfpaced.regularizers import get

    try:
        get(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return name


def _pace(text: str) -> str | float:
    if text in ("auto", "paper"):
        return text
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"--pace must be auto, paper or a positive number, got {text!r}") from None
    if not value > 0:
        raise UsageError(f"--pace must be auto, paper or a positive number, got {text!r}")
    return value


def share(text: str) -> float:
    """A number strictly between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return value
