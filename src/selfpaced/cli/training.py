"""The work behind ``fit`` and ``clean``: table in, fitted pipeline, suspects and metrics out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import UsageError
from .data import Target, check_columns, decided, find_target, merged, merges_of, open_table
from .models import ROWS, ModelChoice, build, choose, kind_of, model_of, paced
from .rounds import LastRun
from .suspects import line_column, suspicious

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from selfpaced.inspection import Findings
    from selfpaced.tables import LoadedTable, Reviewed, TableEncoder

    from .console import Console


@dataclass(frozen=True)
class Training:
    """Everything a fit on a table has made.

    ``suspects`` has the columns ``row, line, level, given, expected, weight, noise_probability, why, against``;
    ``too_few`` holds the rows of classes that are too small to assess. ``marks`` are the fingerprints of the rows of
    both in the file, before any correction. ``review`` is the table as ``--decisions`` corrects it.
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
    last: LastRun | None = None
    marks: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    merges: dict[str, str] = field(default_factory=dict)

    @cached_property
    def findings(self) -> Findings:
        """The figures of the fit."""
        from selfpaced.inspection import Findings

        return Findings.of(self.model, self.suspects, in_unit=self.target.in_unit)

    @property
    def model(self) -> Any:
        """The self-paced estimator at the end of the pipeline."""
        return paced(self.pipeline[-1])

    @property
    def likely(self) -> pd.DataFrame:
        """The likely errors among the suspects."""
        return self.suspects[self.suspects["level"] == "likely error"]

    @property
    def listed(self) -> pd.DataFrame:
        """The suspects, and after them the rows of classes that are too small to assess."""
        import pandas as pd

        return pd.concat([self.suspects, self.too_few], ignore_index=True)

    @property
    def encoder(self) -> TableEncoder:
        """What the columns hold, and which are not used."""
        found: TableEncoder = self.pipeline[0]
        return found


def train(args: argparse.Namespace, console: Console) -> Training:
    """Read, correct, prepare, fit, and look for suspects."""
    from sklearn.pipeline import Pipeline

    from selfpaced.tables import row_marks

    with console.step(f"reading {args.data or 'the built-in table'}"):
        table = open_table(args)
        written, review = table.frame, decided(table, args)
        merges = merges_of(table, args)  # before decisions remove a label
        if review is not None:
            table = replace(table, frame=review.corrected)
        table, merges, done = merged(table, args, merges)
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
    with console.step(f"fitting plain and self-paced {name}"):
        model = build(name, given.task, args, encoder.categorical_features_, given.values if given.log else None)
        confirmed = None if review is None else review.confirmed[given.rows]
        together = None if args.groups is None else table.frame[args.groups].to_numpy(dtype=object)[given.rows]
        known = {"trusted": confirmed, "groups": together}
        model.fit(features, given.values, **{name: rows for name, rows in known.items() if rows is not None})
    with console.step("listing the rows to check"):
        last = LastRun.of(args)
        undecided = None if last is None else last.undecided(written)
        parts = encoder.text_parts(encodings.frame) if len(encoder.names_of("text")) > 1 else None
        found = suspicious(
            paced(model), features, given, table, threshold=args.threshold, undecided=undecided, parts=parts
        )
        found, too_few = _assessable(found, given, table, confirmed)
    pipeline = Pipeline([("table", encoder), ("model", model)])
    marks = tuple(row_marks(written, np.concatenate([found["row"], too_few["row"]]).astype(np.intp)))
    return Training(
        table,
        given,
        name,
        pipeline,
        features,
        found,
        too_few,
        choice,
        review,
        last,
        marks,
        told,
        merges,
    )


class Encodings:
    """Features of the rows with a label, encoded once for each kind of model."""

    def __init__(self, table: LoadedTable, given: Target, args: argparse.Namespace) -> None:
        apart = [given.name, *args.exclude, *([] if args.groups is None else [args.groups])]
        self.frame, self.decimal = _labelled(table, given), table.dialect.decimal
        self.categorical, self.exclude = args.categorical, list(dict.fromkeys(apart))
        self._known: dict[str, tuple[TableEncoder, Any]] = {}

    def __call__(self, kind: str, rows: np.ndarray) -> tuple[Any, list[int]]:
        """Features of some rows as an array, and which of them are categories."""
        if len(self.frame) <= ROWS:
            encoder, features = self.all(kind)
            return (features.to_numpy() if hasattr(features, "columns") else features)[
                rows
            ], encoder.categorical_features_
        encoder = self.encoder(kind)
        return encoder.fit_transform(self.frame.iloc[rows]), encoder.categorical_features_

    def encoder(self, kind: str) -> TableEncoder:
        """An encoder that is not fitted yet."""
        from selfpaced.tables import TableEncoder

        return TableEncoder(kind, categorical=self.categorical, exclude=self.exclude, decimal=self.decimal)  # type: ignore[arg-type]

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


def _assessable(
    found: pd.DataFrame, given: Target, table: LoadedTable, confirmed: np.ndarray | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The suspects without the rows of small classes, and the latter: too few rows to know what is usual.

    Rows that a person has confirmed are in neither.
    """
    import pandas as pd

    from selfpaced.tables.checks import FEWEST_ROWS

    small = np.zeros(given.rows.size, dtype=bool)
    if given.task == "classification":
        _, codes, counts = np.unique(given.values, return_inverse=True, return_counts=True)
        small = counts[codes] < FEWEST_ROWS
        small &= True if confirmed is None else ~confirmed
    rows = given.rows[small]
    apart = pd.DataFrame({"row": rows, "line": line_column(table, rows), "given": given.values[small]})
    apart.insert(2, "level", "too few to assess")
    return found[~found["row"].isin(rows)].reset_index(drop=True), apart


def noticed(
    frame: pd.DataFrame,
    given: Target,
    args: argparse.Namespace,
    console: Console,
    done: Sequence[str] = (),
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


def tell_notes(encoder: TableEncoder, table: LoadedTable, given: Target, console: Console) -> None:
    """Say how columns were read, if a user should know."""
    for note in encoder.notes_:
        line = table.lines.of([given.rows[note.row]]) if note.row >= 0 else None
        console.warn(f"column {note.column!r}: {note.text}" + (f" on line {line[0]}" if line is not None else ""))


def check_classes(given: Target) -> None:
    """One class cannot be learnt; many classes are probably values."""
    if given.task != "classification":
        return
    from selfpaced.tables.checks import FEWEST_ROWS

    classes, counts = np.unique(given.values, return_counts=True)
    if classes.size < 2:
        raise UsageError(f"the target {given.name!r} has only one class, {str(classes[0])!r}; a fit needs at least two")
    if counts.max() < FEWEST_ROWS:
        what = f"the target {given.name!r} has no class of {FEWEST_ROWS} rows, so that no row could be assessed"
        raise UsageError(f"{what}; is it the right column?")
    if classes.size > max(200, given.values.size // 5):
        raise UsageError(
            f"the target {given.name!r} has {classes.size:,} classes in {given.values.size:,} rows; "
            "is it the right column?"
        )


def facts_of(target: Target, model: str, merges: dict[str, str]) -> dict[str, Any]:
    """Return what the model file and ``metrics.json`` say about the target."""
    return {"target": target.name, "task": target.task, "model": model, "merged_labels": merges}


def fit_facts(found: Findings, model: Any, encoder: TableEncoder) -> dict[str, Any]:
    """Return what ``metrics.json`` holds about any fit and the columns it uses."""
    from selfpaced import __version__

    kinds = {"numeric": "number", "categorical": "category", "date": "date", "text": "text"}
    keys = ("label", "lam", "score", "spread", "mean_weight", "cost", "chosen")
    return {
        "selfpaced": __version__,
        **asdict(found),
        "lam": model.lam_,
        "path": [{key: getattr(candidate, key) for key in keys} for candidate in model.path_],
        "columns": {name: encoder.names_of(kind) for name, kind in kinds.items()},
        "not_used": [{"column": name, "reason": reason} for name, reason in encoder.not_used_],
    }


def metrics(run: Training, console: Console) -> dict[str, Any]:
    """Return what ``metrics.json`` holds."""
    return {
        "data": str(run.table.path) if run.table.path is not None else "built-in",
        **facts_of(run.target, run.model_name, run.merges),
        "rows": len(run.table.frame),
        **fit_facts(run.findings, run.model, run.encoder),
        "model_choice": None if run.choice is None else run.choice.sentence(run.target.name),
        "models_compared": None if run.choice is None else run.choice.data,
        "log_scale": run.target.log,
        "mean_weight": float(np.mean(run.model.assessment_.weight)),
        "features": int(run.features.shape[1]),
        "too_few_to_assess": {str(name): int(n) for name, n in run.too_few["given"].value_counts().items()},
        "notices": list(run.notices),
        "seconds": dict(console.seconds),
    }
