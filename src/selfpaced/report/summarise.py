"""From a fitted object to a :class:`~selfpaced.report.data.Summary`."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..assessment import LEVELS
from ..inspection import look_through
from ..path import BINS, Candidate, trust_in_words
from .data import Comparison, Fact, Histogram, History, PathStep, ReportTable, Summary
from .rows import pairs_of, patterns_of, reviewable, scatter_of, with_reasons
from .stories import story_of
from .story import Story
from .tables import as_columns, cell, feature_rows, make_table
from .thumbnails import thumbnails
from .words import count, number, percent

# What a page holds, so that a browser stays quick: rows in the table (benchmarks/report.py), rows with their features,
# and classes with a chart of their own.
MAX_ROWS = 100_000
MAX_DETAILED = 500
_SHOWN_CLASSES = 6

CITATION = """\
@inproceedings{fan2017selfpaced,
  title     = {Self-Paced Learning: An Implicit Regularization Perspective},
  author    = {Fan, Yanbo and He, Ran and Liang, Jian and Hu, Bao-Gang},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year      = {2017}
}"""


def summarise(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    *,
    suspects: Any = None,
    cells: Any = None,
    metrics: Mapping[str, tuple[Any, Any]] | None = None,
    title: str | None = None,
    note: str | None = None,
    notices: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
) -> Summary:
    """What there is to say about a fitted object, as plain data.

    Parameters
    ----------
    fitted : object
        A fitted estimator of this library, a Pipeline or search that ends in one, a
        :class:`~selfpaced.solver.Solution`, a network as `selfpaced.torch.review` gives it, or anything with a
        ``history_`` (or ``history``) of epochs.
    X, y : array-like, optional
        The data it was fitted on: they add the given labels, the comparison and the cells of each suspect.
    suspects : table, optional
        Shown instead of the library's own table of suspects; its column ``row`` names rows of the data by index
        label where the data has one, else by position.
    cells : table, optional
        Whose cells are shown for each suspect, for example the raw table of which X was made; X by default.
    metrics : mapping of name -> (plain, self-paced), optional
        Further lines of the comparison.
    title : str, optional
        Heading; the estimator's class name by default.
    note : str, optional
        A sentence for the head of the page.
    notices : sequence of str
        What was noticed of the data before the fit.
    max_rows : int
        The largest number of suspects shown.

    Returns
    -------
    Summary
    """
    model, seen = look_through(fitted, X)
    story = story_of(model)
    story.check_rows(X, y)
    table = suspects if suspects is not None else with_reasons(story.suspects(seen, y), story, fitted, X, y)
    shown = None if table is None else make_table(table, limit=max_rows)
    shown, review = reviewable(shown, story, title or story.name)
    found, look = _counted(shown)
    path = tuple(_steps(story))
    return Summary(
        title=title or story.name,
        kind=story.kind,
        sentence=story.sentence(),
        noun=story.noun,
        verdict=story.verdict(found, look),
        aside=story.aside(found),
        notices=tuple(notices),
        termination=story.termination,
        note=note or "",
        facts=_headline(story, path, found, look),
        comparison=(
            *_selection(path, story),
            *story.comparison(seen, y),
            *_given_metrics(metrics),
        ),
        path=path,
        score_name=story.score_name,
        weights=_histogram(story.weights, y if story.kind == "classification" else None),
        suspects=shown,
        review=review,
        pairs=pairs_of(shown, story),
        patterns=patterns_of(shown, cells if cells is not None else X, story, "" if review is None else review.target),
        scatter=scatter_of(story),
        features=_features(shown, cells if cells is not None else X, story, by_label=suspects is not None),
        pictures=() if suspects is not None else thumbnails(story.pictures),
        grid=story.grid,
        views=story.views,
        history=_history(story),
        parameters=_parameters(model),
        versions=_versions(),
        citation=CITATION,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _counted(table: ReportTable | None) -> tuple[int, int]:
    """Likely errors, and rows worth a look; a table without levels has likely errors only."""
    if table is None:
        return 0, 0
    levels: Any = next((column.values for column in table.columns if column.key == "level"), ())
    look = sum(level == LEVELS[1] for level in levels)
    return table.total - look, look


def _headline(story: Story, path: tuple[PathStep, ...], found: int, look: int) -> tuple[Fact, ...]:
    out, weights = story.counts(), story.weights
    if story.verdict(found, look):
        out.insert(0, Fact("likely errors", count(found), f"{count(look)} worth a look" if look else ""))
    if weights is not None and weights.size:
        low = int((weights < 0.5).sum())
        out.append(Fact("below half weight", count(low), percent(low / weights.size)))
        out.append(Fact("mean weight", number(float(weights.mean()))))
    out += story.pace()
    spent = sum(step.cost for step in path)
    if path:
        out.append(Fact("candidates tried", count(len(path)), f"{number(spent, 2)} s" if spent > 0 else ""))
    return tuple(out)


def _steps(story: Story) -> list[PathStep]:
    steps = []
    # the plain model is where an opening path leads to: show it last
    for stage, candidate in enumerate(sorted(story.path, key=lambda c: math.isinf(c.lam))):
        counts = np.asarray(candidate.histogram, dtype=float)
        if not counts.size and math.isinf(candidate.lam):
            counts = np.eye(BINS)[-1]  # the plain model: every sample has full weight
        score, spread = map(_finite, story.scored(candidate))
        label, weight = candidate.label or _lam_label(candidate), _finite(candidate.mean_weight)
        share = counts / counts.sum() if counts.size and counts.sum() > 0 else counts
        steps.append(
            PathStep(
                stage=stage,
                label=label,
                words=label if math.isinf(candidate.lam) or weight is None else trust_in_words(weight, story.noun),
                plain=math.isinf(candidate.lam),
                lam=_finite(candidate.lam),
                score=score,
                spread=spread,
                compared="" if score is None else story.score_text(score, spread),
                mean_weight=weight,
                cost=_finite(candidate.cost) or 0.0,
                chosen=bool(candidate.chosen),
                histogram=tuple(round(float(value), 6) for value in share),
            )
        )
    return steps


def _lam_label(candidate: Candidate) -> str:
    return "plain" if math.isinf(candidate.lam) else f"λ = {number(float(candidate.lam))}"


def _finite(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _selection(path: tuple[PathStep, ...], story: Story) -> list[Comparison]:
    """The score by which the stop was chosen, of the plain candidate and of the chosen one.

    Not of values: their comparison is in the unit of the target.
    """
    if story.kind == "regression":
        return []
    plain = next((s for s in path if s.plain and s.score is not None), None)
    chosen = next((s for s in path if s.chosen and s.score is not None), None)
    if plain is None or chosen is None:
        return []
    note = "what the stop compared, on data as given (larger is better)"
    return [Comparison(story.score_name.capitalize(), plain.compared, chosen.compared, note)]


def _given_metrics(metrics: Mapping[str, tuple[Any, Any]] | None) -> list[Comparison]:
    def show(value: Any) -> str:
        return number(float(value), 4) if isinstance(value, int | float | np.number) else str(value)

    return [Comparison(str(name), show(plain), show(paced)) for name, (plain, paced) in (metrics or {}).items()]


def _histogram(weights: Any, y: Any) -> Histogram | None:
    if weights is None or not weights.size:
        return None
    bins = np.minimum((np.clip(weights, 0, 1) * BINS).astype(int), BINS - 1)
    labels = None if y is None else np.asarray(y).astype(str, copy=False)
    names = [] if labels is None else np.unique(labels).tolist()
    if labels is None or len(names) > _SHOWN_CLASSES:
        names, parts = ["all"], [bins]
    else:
        parts = [bins[labels == name] for name in names]
    counts = [np.bincount(part, minlength=BINS) for part in parts]
    return Histogram(tuple(names), tuple(tuple(int(c) for c in series) for series in counts))


def _features(table: Any, X: Any, story: Story, *, by_label: bool) -> Any:
    if table is None or X is None or story.kind == "factorization" or isinstance(X, list | dict):
        return None
    rows: Any = next((column.values for column in table.columns if column.key == "row"), [])[:MAX_DETAILED]
    if not rows or not all(isinstance(row, int) for row in rows):
        return None
    if by_label and hasattr(X, "iloc"):
        rows = X.index.get_indexer(rows).tolist() if X.index.is_unique else [-1]
    if min(rows) < 0 or max(rows) >= X.shape[0]:
        return None  # a table about other data
    return feature_rows(X, rows, getattr(story.model, "feature_names_in_", None), limit=MAX_DETAILED)


def _history(story: Story) -> History | None:
    """Numbers per epoch or, of a Solution, per stage."""
    recorded, unit = story.recorded, story.unit
    if recorded is None:
        return None
    columns = as_columns(recorded)
    index = columns.pop(unit, None)
    phases = columns.pop("phase", ())
    series = {}
    for name, values in columns.items():
        plain = [cell(value) for value in values]
        if any(isinstance(value, float | int) for value in plain):
            series[name] = tuple(value if isinstance(value, float | int) else None for value in plain)
    if not series:
        return None
    length = len(next(iter(series.values())))
    numbers = tuple(range(length)) if index is None else tuple(int(i) for i in index)
    bands = {
        name: (series.pop(low), series.pop(high))
        for name, (low, high) in story.bands.items()
        if {name, low, high} <= set(series)
    }
    return History(unit, numbers, series, bands, tuple(str(phase) for phase in phases))


def _parameters(model: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(model, BaseEstimator):
        return ()
    return tuple((name, str(cell(repr(value)))) for name, value in sorted(model.get_params(deep=False).items()))


def _versions() -> tuple[tuple[str, str], ...]:
    out = []
    for name in ("selfpaced", "numpy", "scipy", "scikit-learn"):
        try:
            out.append((name, version(name)))
        except PackageNotFoundError:  # pragma: no cover - run from a source tree
            continue
    return (*out, ("Python", platform.python_version()))
