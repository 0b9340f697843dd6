"""The work behind ``fit`` and ``clean``: table in, fitted pipeline, suspects and metrics out."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .choice import ModelChoice, choose
from .data import Target, decided, find_target, merged, merges_of, open_table
from .models import build, kind_of, model_of
from .rounds import tell_of_merges, undecided_rows

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from selfpaced.tables import LoadedTable, Reviewed, Schema

    from .console import Console

__all__ = [
    "STEPS",
    "Training",
    "candidate",
    "check_classes",
    "check_columns",
    "describe",
    "facts_of",
    "joined",
    "metrics",
    "noticed",
    "prepared",
    "train",
]

STEPS = 4  # display: of `train`


@dataclass(frozen=True)
class Training:
    """Everything a fit on a table has made.

    Attributes
    ----------
    table : LoadedTable
    target : Target
    model_name : str
    pipeline : Pipeline
        From raw table to prediction, fitted.
    features : pandas.DataFrame
        What the model saw, one row per label.
    suspects : pandas.DataFrame
        ``row, line, level, given, expected, weight, noise_probability, why, against``.
    choice : ModelChoice or None
        How the model was chosen, where the data decided.
    review : Reviewed or None
        The table as a person has corrected it, where ``--decisions`` says how.
    marks : list of str
        Fingerprints of the suspects' rows in the file, before any correction.
    notices : tuple of str
        What was noticed of the table before the fit.
    merges : dict of str to str
        Labels that were merged, and into which.
    threshold : float
        Probability of being wrong above which a row is a likely error.
    """

    table: LoadedTable
    target: Target
    model_name: str
    pipeline: Pipeline
    features: pd.DataFrame
    suspects: pd.DataFrame
    choice: ModelChoice | None = None
    review: Reviewed | None = None
    marks: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    merges: dict[str, str] = field(default_factory=dict)
    threshold: float = 0.5

    @property
    def precision(self) -> tuple[float, float]:
        """Expected precision of the likely errors, and of the rows worth a look if any labels are wrong."""
        assessed = self.model.assessment_
        found: tuple[float, float] = assessed.expected_precision(assessed.levels(self.threshold))
        return found

    @property
    def model(self) -> Any:
        """The self-paced estimator at the end of the pipeline."""
        return self.pipeline[-1]

    @property
    def likely(self) -> pd.DataFrame:
        """The likely errors among the suspects."""
        return self.suspects[self.suspects["level"] == "likely error"]

    @property
    def not_used(self) -> list[tuple[str, str]]:
        """Columns that are no features, each with the reason."""
        found = next((step.not_used_ for _, step in self.pipeline.steps if hasattr(step, "not_used_")), None)
        return [(c.name, c.kind) for c in self.schema.left_out] if found is None else list(found)

    @property
    def schema(self) -> Schema:
        """What the columns hold."""
        found: Schema = self.pipeline.named_steps["types"].schema_
        return found


def train(args: argparse.Namespace, console: Console) -> Training:
    """Read, correct, prepare, fit, and look for suspects."""
    from selfpaced.tables import row_marks

    with console.step(f"reading {args.data or 'the built-in table'}"):
        table = open_table(args)
        written, review = table.frame, decided(table.frame, args)
        merges = merges_of(table, args)  # before decisions remove a label
        if review is not None:
            table = replace(table, frame=review.corrected)
            tell_of_merges(args, console)
        table, done = merged(table, merges, args)
        given = find_target(table, args, console)
        if review is not None:
            given = given.without(review.dropped)
        check_columns(table, args)
        check_classes(given)
        told = noticed(_labelled(table, given), given, args, console, done)
    name, choice = model_of(args, given.task), None
    with console.step(f"{'comparing models, ' * (name == 'auto')}preparing the columns"):
        if name == "auto":
            choice = choose(
                _labelled(table, given), given.values, args, [given.name, *args.exclude], table.dialect.decimal
            )
            name = choice.model
        prepare, features = prepared(table, given, args, kind_of(name), console)
    with console.step(f"fitting plain and self-paced {name.replace('-', ' ')}"):
        codes = prepare.named_steps["types"].schema_.names("categorical")
        places = [features.columns.get_loc(code) for code in codes] if kind_of(name) == "tree" else []
        model = build(name, given.task, args, places)
        confirmed = {} if review is None else {"trusted": review.confirmed[given.rows]}
        model.fit(features, given.values, **confirmed)
    with console.step("listing the rows to check"):
        from .suspects import suspicious

        undecided = undecided_rows(args, written)
        found = suspicious(model, features, given, table, threshold=args.threshold, undecided=undecided)
    pipeline = joined(prepare, model)
    marks = tuple(row_marks(written, found["row"].to_numpy()))
    return Training(table, given, name, pipeline, features, found, choice, review, marks, told, merges, args.threshold)


def noticed(
    frame: pd.DataFrame,
    given: Target,
    args: argparse.Namespace,
    console: Console,
    done: Sequence[str],
    prefix: str = "",
) -> tuple[str, ...]:
    """What was done to the labels, and what checks of the labelled rows report; these change nothing."""
    from selfpaced.tables import notices

    found = notices(frame, given.name, given.values, task=given.task, exclude=args.exclude)
    told = (*done, *(prefix + notice for notice in found))
    for notice in told:
        console.notice(notice)
    return told


def _labelled(table: LoadedTable, given: Target) -> pd.DataFrame:
    """The rows that have a label."""
    return table.frame if given.rows.size == len(table.frame) else table.frame.iloc[given.rows]


def check_columns(table: LoadedTable, args: argparse.Namespace) -> None:
    """Columns that are named must be there."""
    from selfpaced.tables import suggestion

    from .errors import UsageError

    for option, names in (("exclude", args.exclude), ("categorical", args.categorical)):
        for name in names:
            if name not in table.frame.columns:
                raise UsageError(f"--{option}: the table has no column {name!r}{suggestion(name, table.frame.columns)}")


def prepared(table: LoadedTable, given: Target, args: argparse.Namespace, kind: str, console: Console) -> Any:
    """The columns of a table as features, what they were made by, and what of it a user should know."""
    from selfpaced.tables import preprocessor

    exclude, decimal = [given.name, *args.exclude], table.dialect.decimal
    prepare = preprocessor(kind, categorical=args.categorical, exclude=exclude, decimal=decimal)
    features = prepare.fit_transform(_labelled(table, given))
    for column in prepare.named_steps["types"].schema_.columns:
        if column.kind in ("numeric", "categorical", "date") and column.note:
            line = table.lines.of([column.bad]) if column.bad >= 0 else None
            console.warn(f"column {column.name!r}: {column.note}" + (f" on line {line[0]}" if line is not None else ""))
        elif column.kind not in ("numeric", "categorical", "date", "excluded"):
            console.warn(f"column {column.name!r} is left out ({column.kind}): {column.note}")
    return prepare, features


def check_classes(given: Target) -> None:
    """One class cannot be learnt; many classes are probably values."""
    if given.task != "classification":
        return
    from .errors import UsageError

    classes = np.unique(given.values)
    if classes.size < 2:
        raise UsageError(f"the target {given.name!r} has only one class, {str(classes[0])!r}: nothing to tell apart")
    if classes.size > max(200, given.values.size // 5):
        raise UsageError(
            f"the target {given.name!r} has {classes.size:,} classes in {given.values.size:,} rows; "
            "is it the right column?"
        )


def joined(prepare: Any, model: Any) -> Any:
    """One pipeline from raw table to prediction."""
    from sklearn.pipeline import Pipeline

    return Pipeline([*prepare.steps, ("model", model)])


def facts_of(given: Target, model: str, merges: dict[str, str]) -> dict[str, Any]:
    """What a model file says about the target it was fitted to."""
    return {"target": given.name, "task": given.task, "model": model, "merged_labels": merges}


def describe(run: Training) -> dict[str, Any]:
    """The plain model against the chosen one, as the model's own path has scored them."""
    path = run.model.path_
    plain = next((c for c in path if math.isinf(c.lam)), None)
    chosen = next((c for c in path if c.chosen), None)
    score = "held-out score on the given labels" if run.target.task == "classification" else "minus the robust loss"
    return {"score": score, "plain": plain and candidate(plain), "chosen": chosen and candidate(chosen)}


def candidate(found: Any) -> dict[str, Any]:
    """A candidate of the path as data."""
    keys = ("label", "lam", "score", "spread", "mean_weight", "cost")
    return {key: getattr(found, key) for key in keys}


def _typical_error(run: Training) -> dict[str, float] | None:
    """The median absolute residual of the plain and of the chosen model, in the unit of the target."""
    if run.target.task == "classification":
        return None
    models = {"plain": run.model.plain_, "chosen": run.model}
    errors = {name: np.abs(run.target.values - model.predict(run.features)) for name, model in models.items()}
    return {name: float(np.median(error)) for name, error in errors.items()}


def metrics(run: Training, console: Console) -> dict[str, Any]:
    """What ``metrics.json`` holds."""
    from selfpaced import __version__
    from selfpaced.inspection import held_out_accuracy

    model, schema = run.model, run.schema
    return {
        "selfpaced": __version__,
        "data": str(run.table.path) if run.table.path is not None else "built-in",
        "rows": len(run.table.frame),
        "rows_fitted": int(run.target.rows.size),
        "target": run.target.name,
        "task": run.target.task,
        "merged_labels": run.merges,
        "model": run.model_name,
        "model_choice": None if run.choice is None else run.choice.sentence,
        "features": int(run.features.shape[1]),
        "columns": {kind: schema.names(kind) for kind in ("numeric", "categorical", "date")},
        "not_used": run.not_used,
        "comparison": describe(run),
        "held_out_accuracy": held_out_accuracy(model) if run.target.task == "classification" else None,
        "lam": model.lam_,
        "mean_weight": float(np.mean(model.assessment_.weight)),
        "noise_rate": model.noise_rate_,
        "noise_rate_interval": model.noise_rate_interval_,
        "noise_rate_if_any": getattr(model, "noise_rate_if_any_", None),
        "misfit": getattr(model.assessment_.diagnosis, "misfit", None),
        "misfit_words": getattr(model.assessment_.diagnosis, "misfit_words", ""),
        "typical_error": _typical_error(run),
        "likely_errors": len(run.likely),
        "worth_a_look": len(run.suspects) - len(run.likely),
        "expected_precision": dict(zip(("likely_errors", "worth_a_look_if_any"), run.precision, strict=True)),
        "notices": list(run.notices),
        "termination": model.termination_,
        "path": [candidate(found) | {"chosen": found.chosen} for found in model.path_],
        "seconds": dict(console.seconds),
    }
