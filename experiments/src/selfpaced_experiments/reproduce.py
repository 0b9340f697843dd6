"""Run the sections of the reproduction and put their answers together."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import selfpaced
from selfpaced_experiments import SECTIONS, classification, clustering, data, factorization, figures, theory
from selfpaced_experiments.cells import Answer, Cache, Cell, run_cells
from selfpaced_experiments.claims import assess
from selfpaced_experiments.progress import StageProgress
from selfpaced_experiments.render import claims_page, results_page
from selfpaced_experiments.results import Figure, Results, ResultTable, RunRecord, Statement, load, save
from selfpaced_experiments.sources import fingerprint
from selfpaced_experiments.tasks.classification import SETS

__all__ = ["ReproduceSettings", "reproduce", "write"]

_PACKAGES = ("selfpaced", "numpy", "scipy", "scikit-learn", "numba", "cleanlab")


@dataclass(frozen=True)
class ReproduceSettings:
    """What to run and how.

    Parameters
    ----------
    sections : tuple of str
        Some of ``SECTIONS``.
    quick : bool
        Few seeds and folds: a look in minutes.
    seeds : dict of str to int
        Seeds (or realizations, or runs) of a section where they are not the paper's (5, 50 and 20).
    data_dir : path-like, optional
        Directory of the data files.
    out : Path
        Where results and figures are written.
    jobs : int
        Worker processes.
    cache : Cache
        Where answers of cells are kept.
    command : str
        The command as typed, for the record.
    compute : bool
        False makes tables of what is cached, to see how far an interrupted run came.
    keep : bool
        Sections that are not run stay as they are in ``out``.
    """

    sections: tuple[str, ...] = SECTIONS
    quick: bool = False
    seeds: dict[str, int] = field(default_factory=dict)
    data_dir: str | os.PathLike[str] | None = None
    out: Path = Path("results")
    jobs: int = 1
    cache: Cache = field(default_factory=Cache)
    command: str = "selfpaced reproduce claims"
    compute: bool = True
    keep: bool = False


@dataclass
class _RunTally:
    """Counts over all cells of a run."""

    cells: int = 0
    cached: int = 0
    missing: int = 0
    work: float = 0.0
    seeds: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def reproduce(settings: ReproduceSettings, progress: StageProgress | None = None) -> Results:
    """Run the sections and return everything they found; figures are written on the way."""
    unknown = sorted(set(settings.sections) - set(SECTIONS))
    if unknown:
        raise ValueError(f"sections must be some of {SECTIONS}, got {unknown!r}")
    begun, tally = time.monotonic(), _RunTally()
    settings.out.mkdir(parents=True, exist_ok=True)
    tables: list[ResultTable] = []
    drawn: list[Figure] = []
    proved: tuple[Statement, ...] = ()
    with progress or StageProgress(quiet=True) as bar:
        if "table1" in settings.sections:
            bar.start("table1", theory.STEPS)
            proved = theory.statements(bar.step)
        if "table2" in settings.sections:
            tables += factorization.tables(_answers("table2", settings, bar, tally))
        if "table3" in settings.sections:
            tables += _clustering(settings, bar, tally)
        if "table5" in settings.sections:
            tables += _classification(settings, bar, tally)
        if "figure1" in settings.sections:
            drawn.append(figures.draw_losses(settings.out))
        if "figure2" in settings.sections:
            drawn += [figures.draw_toy(settings.out), *_half_quadratic(settings, bar, tally)]
        if "figure3" in settings.sections:
            drawn += _tendency(settings, bar, tally)
    results = Results(
        run=_run(settings, tally, time.monotonic() - begun),
        tables=tuple(tables),
        theory=proved,
        figures=tuple(drawn),
        skipped=tuple(tally.skipped),
    )
    if settings.keep:
        results = results.beside(load(settings.out / "results.json"), settings.sections)
    # Assessed as they are stored, so that the file and its outcomes can never disagree by a rounding.
    return assess(Results.from_json(results.to_json()))


def write(results: Results, directory: Path) -> tuple[Path, ...]:
    """Write ``results.json``, ``results.md`` and ``claims.md``."""
    directory.mkdir(parents=True, exist_ok=True)
    written = [save(results, directory)]
    pages = {"results.md": results_page(results)}
    if results.claims:
        pages["claims.md"] = claims_page(results)
    for name, text in pages.items():
        (directory / name).write_text(text, encoding="utf-8")
        written.append(directory / name)
    return tuple(written)


def _compute(
    stage: str, cells: Sequence[Cell], settings: ReproduceSettings, bar: StageProgress, tally: _RunTally
) -> list[Answer]:
    bar.start(stage, len(cells))
    found = []
    options: dict[str, Any] = {"jobs": settings.jobs, "data_dir": settings.data_dir, "compute": settings.compute}
    for answer in run_cells(cells, cache=settings.cache, **options):
        found.append(answer)
        tally.cells += 1
        tally.cached += answer.cached
        bar.step(answer.cell.label)
    tally.missing += len(cells) - len(found)
    tally.work += sum(answer.seconds for answer in found)
    tally.seeds[stage] = len({answer.cell.params["seed"] for answer in found})
    return found


_CELLS = {
    "table2": factorization.cells,
    "table3": clustering.cells,
    "figure2": factorization.figure2_cells,
    "figure3": factorization.figure3_cells,
}


def _answers(stage: str, settings: ReproduceSettings, bar: StageProgress, tally: _RunTally) -> list[Answer]:
    made = _CELLS[stage]
    return _compute(stage, made(quick=settings.quick, seeds=settings.seeds.get(stage)), settings, bar, tally)


def _clustering(settings: ReproduceSettings, bar: StageProgress, tally: _RunTally) -> list[ResultTable]:
    try:
        data.load_mfeat(data_dir=settings.data_dir)
    except data.DataNotFoundError as error:
        tally.skipped.append(f"table 3: {error}")
        return []
    return clustering.tables(_answers("table3", settings, bar, tally))


def _classification(settings: ReproduceSettings, bar: StageProgress, tally: _RunTally) -> list[ResultTable]:
    sets = []
    for name, loader in SETS.items():
        try:
            getattr(data, loader)(**({} if name == "Breast" else {"data_dir": settings.data_dir}))
            sets.append(name)
        except data.DataNotFoundError as error:
            tally.skipped.append(f"table 5, {name}: {error}")
    cells = classification.cells(quick=settings.quick, seeds=settings.seeds.get("table5"), sets=sets)
    return classification.tables(_compute("table5", cells, settings, bar, tally))


def _half_quadratic(settings: ReproduceSettings, bar: StageProgress, tally: _RunTally) -> list[Figure]:
    answers = _answers("figure2", settings, bar, tally)
    if not answers:
        tally.skipped.append("figure 2b: nothing of it is cached")
        return []
    return [figures.draw_half_quadratic(settings.out, *factorization.half_quadratic_series(answers))]


def _tendency(settings: ReproduceSettings, bar: StageProgress, tally: _RunTally) -> list[Figure]:
    missing = tally.missing
    answers = _answers("figure3", settings, bar, tally)
    if tally.missing > missing:
        tally.skipped.append("figure 3: not all of it is cached")
        return []
    return [figures.draw_tendency(settings.out, *factorization.tendency_series(answers))]


def _commit() -> str:
    """The commit of the checkout that holds the library, with a mark if files of the library differ from it."""
    git = ["git", "-C", str(Path(selfpaced.__file__).parent)]
    try:
        commit, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (["describe", "--always", "--exclude=*"], ["status", "--porcelain", "."])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}-dirty" if changed else commit


def _run(settings: ReproduceSettings, tally: _RunTally, seconds: float) -> RunRecord:
    versions = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    sources = {
        "table2": fingerprint(factorization.PARTS),
        "table3": fingerprint(clustering.PARTS),
        "table5": fingerprint(classification.OURS),
    }
    return RunRecord(
        command=settings.command,
        quick=settings.quick,
        seeds=tally.seeds,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        seconds=seconds,
        jobs=settings.jobs,
        versions=versions,
        sources=sources,
        cells=tally.cells,
        cached=tally.cached,
        work=tally.work,
        missing=tally.missing,
        commit=_commit(),
    )
