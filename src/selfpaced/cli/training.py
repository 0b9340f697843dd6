"""The work behind ``fit`` and ``clean``: table in, fitted pipeline, suspects and metrics out."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .choice import ROWS, ModelChoice, choose
from .data import Target, decided, find_target, merged, merges_of, open_table
from .models import build, kind_of, model_of, on_log_scale, paced
from .rounds import tell_of_merges, undecided_rows

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from selfpaced.tables import LoadedTable, Reviewed, TableEncoder

    from .console import Console

__all__ = [
    "STEPS",
    "Encodings",
    "Training",
    "candidate",
    "check_classes",
    "check_columns",
    "columns_of",
    "describe",
    "facts_of",
    "joined",
    "metrics",
    "noticed",
    "tell_notes",
    "train",
]

STEPS = 4  # display: of `train`
FEWEST_ROWS = 10  # a choice: rows of a class below which no row of it is assessed


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
    features : pandas.DataFrame or sparse matrix
        What the model saw, one row per label.
    suspects : pandas.DataFrame
        ``row, line, level, given, expected, weight, noise_probability, why, against``.
    too_few : pandas.DataFrame
        Rows of classes that are too small to assess: ``row, line, level, given``.
    choice : ModelChoice or None
        How the model was chosen, where the data decided.
    review : Reviewed or None
        The table as a person has corrected it, where ``--decisions`` says how.
    marks : list of str
        Fingerprints of the suspects' rows in the file, before any correction; then of the rows in ``too_few``.
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
    too_few: pd.DataFrame
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
        return paced(self.pipeline[-1])

    @property
    def likely(self) -> pd.DataFrame:
        """The likely errors among the suspects."""
        return self.suspects[self.suspects["level"] == "likely error"]

    @property
    def not_used(self) -> list[tuple[str, str]]:
        """Columns that are no features, each with the reason."""
        return list(self.encoder.not_used_)

    @property
    def encoder(self) -> TableEncoder:
        """What the columns hold, and which are not used."""
        found: TableEncoder = self.pipeline[0]
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
    encodings = Encodings(table, given, args)
    with console.step(f"{'comparing models, ' * (name == 'auto')}preparing the columns"):
        if name == "auto":
            choice = choose(encodings, given.values, given.task, args.seed, least=table.frame.shape[1])
            name, given = choice.model, replace(given, log=choice.log)
        encoder, features = encodings.all(kind_of(name))
        tell_notes(encoder, table, given, console)
    with console.step(f"fitting plain and self-paced {name.replace('-', ' ')}"):
        model = build(name, given.task, args, encoder.categorical_features_)
        model = on_log_scale(model, given.values) if given.log else model
        confirmed = None if review is None else review.confirmed[given.rows]
        together = None if args.groups is None else table.frame[args.groups].to_numpy(dtype=object)[given.rows]
        known = {"trusted": confirmed, "groups": together}
        model.fit(features, given.values, **{name: rows for name, rows in known.items() if rows is not None})
    with console.step("listing the rows to check"):
        from .suspects import suspicious

        undecided = undecided_rows(args, written)
        parts = encoder.text_parts(encodings.frame)
        found = suspicious(
            paced(model), features, given, table, threshold=args.threshold, undecided=undecided, parts=parts
        )
        found, too_few = _assessable(found, given, table, confirmed)
    pipeline = joined(encoder, model)
    marks = tuple(row_marks(written, np.concatenate([found["row"], too_few["row"]]).astype(np.intp)))
    return Training(
        table, given, name, pipeline, features, found, too_few, choice, review, marks, told, merges, args.threshold
    )


class Encodings:
    """Features of the rows with a label, encoded once for each kind of model.

    Parameters
    ----------
    table : LoadedTable
    given : Target
    args : argparse.Namespace
        With ``categorical`` and ``exclude``.
    """

    def __init__(self, table: LoadedTable, given: Target, args: argparse.Namespace) -> None:
        self.frame, self.decimal = _labelled(table, given), table.dialect.decimal
        self.categorical, self.exclude = args.categorical, list({given.name: 0, **dict.fromkeys(_apart(args), 0)})
        self._known: dict[str, tuple[TableEncoder, Any]] = {}

    def __call__(self, kind: str, rows: np.ndarray) -> tuple[Any, list[int]]:
        """Features of some rows as an array, and which of them are categories."""
        if len(self.frame) <= ROWS:
            encoder, features = self.all(kind)
            return (features.to_numpy() if hasattr(features, "columns") else features)[rows], _places(encoder)
        encoder = self.encoder(kind)
        return encoder.fit_transform(self.frame.iloc[rows]), _places(encoder)

    def encoder(self, kind: str, n_components: int | None = None) -> TableEncoder:
        """An encoder that is not fitted yet."""
        from selfpaced.tables import TableEncoder

        columns = {"categorical": self.categorical, "exclude": self.exclude, "decimal": self.decimal}
        return TableEncoder(kind, **columns, n_components=n_components)  # type: ignore[arg-type]

    def all(self, kind: str) -> tuple[TableEncoder, Any]:
        """The encoder, and the features of all rows: a data frame, or a sparse matrix if there is only text."""
        if kind not in self._known:
            encoder = self.encoder(kind)
            features = encoder.fit_transform(self.frame)
            if not encoder.sparse_:
                import pandas as pd

                encoder.set_output(transform="pandas")
                features = pd.DataFrame(features, columns=encoder.get_feature_names_out(), copy=False)
            self._known[kind] = encoder, features
        return self._known[kind]


def _apart(args: argparse.Namespace) -> list[str]:
    """Columns that are no features because the user says so."""
    return [*args.exclude, *([] if args.groups is None else [args.groups])]


def _places(encoder: TableEncoder) -> list[int]:
    return encoder.categorical_features_


def _assessable(
    found: pd.DataFrame, given: Target, table: LoadedTable, confirmed: np.ndarray | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The suspects without the rows of small classes, and the latter: too few rows to know what is usual.

    Rows that a person has confirmed are in neither.
    """
    import pandas as pd

    small = np.zeros(given.rows.size, dtype=bool)
    if given.task == "classification":
        _, codes, counts = np.unique(given.values, return_inverse=True, return_counts=True)
        small = counts[codes] < FEWEST_ROWS
        small &= True if confirmed is None else ~confirmed
    rows = given.rows[small]
    lines = table.lines.of(rows)
    apart = pd.DataFrame(
        {
            "row": rows,
            "line": pd.array([None] * len(rows) if lines is None else lines, dtype="Int64"),
            "level": "too few to assess",
            "given": given.values[small],
        }
    )
    return found[~found["row"].isin(rows)].reset_index(drop=True), apart


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

    groups = [] if getattr(args, "groups", None) is None else [args.groups]  # commands without a model have none
    for option, names in (("exclude", args.exclude), ("categorical", args.categorical), ("groups", groups)):
        for name in names:
            if name not in table.frame.columns:
                raise UsageError(f"--{option}: the table has no column {name!r}{suggestion(name, table.frame.columns)}")


def tell_notes(encoder: TableEncoder, table: LoadedTable, given: Target, console: Console) -> None:
    """Say how columns were read, if a user should know."""
    for note in encoder.notes_:
        line = table.lines.of([given.rows[note.row]]) if note.row >= 0 else None
        console.warn(f"column {note.column!r}: {note.text}" + (f" on line {line[0]}" if line is not None else ""))


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


def joined(encoder: TableEncoder, model: Any) -> Any:
    """One pipeline from raw table to prediction."""
    from sklearn.pipeline import Pipeline

    return Pipeline([("table", encoder), ("model", model)])


def columns_of(encoder: TableEncoder) -> dict[str, Any]:
    """What the columns of a table hold, and which are not used, as data."""
    kinds = {"numeric": "number", "categorical": "category", "date": "date", "text": "text"}
    return {
        "columns": {name: encoder.names_of(kind) for name, kind in kinds.items()},
        "not_used": [{"column": name, "reason": reason} for name, reason in encoder.not_used_],
    }


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
    expected = {name: run.target.in_unit(model.predict(run.features)) for name, model in models.items()}
    errors = {name: np.abs(run.target.values - values) for name, values in expected.items()}
    return {name: float(np.median(error)) for name, error in errors.items()}


def metrics(run: Training, console: Console) -> dict[str, Any]:
    """What ``metrics.json`` holds."""
    from selfpaced import __version__
    from selfpaced.inspection import held_out_accuracy

    model = run.model
    return {
        "selfpaced": __version__,
        "data": str(run.table.path) if run.table.path is not None else "built-in",
        "rows": len(run.table.frame),
        "rows_fitted": int(run.target.rows.size),
        "target": run.target.name,
        "task": run.target.task,
        "merged_labels": run.merges,
        "model": run.model_name,
        "model_choice": None if run.choice is None else run.choice.sentence(run.target.name),
        "models_compared": None if run.choice is None else run.choice.data,
        "log_scale": run.target.log,
        "features": int(run.features.shape[1]),
        **columns_of(run.encoder),
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
        "too_few_to_assess": {str(name): int(n) for name, n in run.too_few["given"].value_counts().items()},
        "expected_precision": dict(zip(("likely_errors", "worth_a_look_if_any"), run.precision, strict=True)),
        "notices": list(run.notices),
        "termination": model.termination_,
        "path": [candidate(found) | {"chosen": found.chosen} for found in model.path_],
        "seconds": dict(console.seconds),
    }
