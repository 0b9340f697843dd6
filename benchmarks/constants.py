"""What each constant that decides something is worth: its neighbours are tried on a small benchmark of its area.

    python benchmarks/constants.py AREA ... [--only NAME ...] [--quick] [--save]

Areas: linear, regression, wrapper, classifier, paper, regressor, factorization, clustering, label-noise, or `all`. A
constant is replaced in its module and the same fits are made again, same data and same seeds. The tables show the mean
change of the score against the value in use (above 0: the neighbour is better), ± its standard error over data sets and
seeds, apart for clean and for dirty data, and how many of the fits changed at all: none where the data never come near
it.

The fits and their scores are those of `small_fits.py`.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import small_fits
from small_fits import Case

from selfpaced.robust import ScaleStop

RESULT = Path(__file__).parent / "results" / "constants.md"
FIRST_SEED = 9000


class Constant(NamedTuple):
    """Where it lives, and what is tried beside it (half and double, unless said otherwise).

    A place is `module:NAME`, or `module:function.parameter` for a default; a constant that is also bound as a default
    has several.
    """

    places: tuple[str, ...]
    values: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return self.places[0].partition(":")[2]

    def neighbours(self, value: Any) -> tuple[Any, ...]:
        if self.values:
            return self.values
        if isinstance(value, tuple):
            return tuple(tuple(factor * np.array(value)) for factor in (0.5, 2.0))
        return tuple(type(value)(factor * value) for factor in (0.5, 2.0))


def at(*places: str, values: tuple[Any, ...] = ()) -> Constant:
    return Constant(places, values)


#: Area -> its cases, the number of seeds, and its constants.
AREAS: dict[str, tuple[Callable[[range], Iterator[Case]], int, tuple[Constant, ...]]] = {
    "linear": (
        small_fits.linear,
        4,
        (
            at("linear._candidates:HALF_LOSSES"),
            at("linear._candidates:WIDE", values=(1, 4)),
            at("linear._candidates:CLEAN"),
            at("linear._candidates:PENALTIES", values=((1.0,), (1.0, 0.1), (1.0, 0.1, 0.01, 0.001))),
            at("linear._candidates:PLENTY", values=(20, 500)),
            at("linear._candidates:FARTHEST", values=(1.0, 9.0)),
            at("label_noise.fit:MISFIT"),
            at("label_noise.fit:_CONVINCING"),
            at("label_noise.fit:_TO_SYMMETRIC", values=(0.0, 1.0)),
            at("linear._candidates:PLAIN_STEPS"),
            at("linear._candidates:PACED_STEPS"),
            at("linear._fold_fits:TOLERANCE"),
            at("linear._candidates:RARE"),
            at("linear._candidates:MOST_FLIPS", values=(0.2, 0.45)),
            at("linear._candidates:ROWS_PER_PARAMETER", values=(5, 80)),
            at("linear._folds:N_FOLDS", values=(3, 10)),
            at("label_noise:confident_error.share", values=(1 / 6, 2 / 3)),
        ),
    ),
    "regression": (
        small_fits.regression,
        6,
        (
            at("residuals.sigma:CUTOFF", "residuals.sigma:truncated_sigma.cutoff", values=(2.0, 3.0)),
            at("residuals.sigma:RISE", values=(1.2, 2.0)),
            at("linear.robust:GUARD", values=(1.04, 1.16)),
            at("linear.robust:ROWS_PER_COEFFICIENT", values=(2, 6)),
            at("linear.ascent:GROWTH", "linear.ascent:Upward.growth", values=(1.25, 2.0)),
            at("linear.ascent:EXPLAINED", values=(0.6, 0.85)),
            at("linear.ascent:TIGHTER", values=(0.9, 1.0)),
            at("linear.robust:SECOND", values=(0.8, 0.95)),
            at("linear.robust:WIDER", values=(1.0, 1.3)),
            at("linear.start:DIRECTIONS"),
        ),
    ),
    "wrapper": (
        small_fits.wrapper,
        1,
        (
            at("meta.soft_path:LEAST"),
            at("meta.posterior:HEAVY"),
            at("meta.posterior:PULL", values=(0.0, 1.0)),
            at("meta.joining:CLEARLY", values=(0.0, 9.0)),
            at("meta.joining:FLOOR", values=(1e-4, 1e-2)),
            at("meta.references:TREES", values=(20, 100)),
            at("meta.references:AGAIN", values=(8, 50)),
            at("meta.references:LEAF", values=(2, 10)),
            at("meta.references:PENALTY", values=(0.01, 1.0)),
            at("meta.soft_labels:DROPPED", values=(0.0, 0.1)),
        ),
    ),
    "classifier": (
        small_fits.classifier,
        1,
        (
            at("meta.label_path:CLEAN"),
            at("meta.label_path:LEAST"),
            at("meta.label_path:MEMORY"),
            at("meta.label_path:IN_SAMPLE"),
            at("meta.crossfit:decide_cross_fit.least"),
            at("meta.labels:HEAVY"),
            at("meta.labels:KEPT_PER_CLASS"),
            at("label_noise:confident_error.share", values=(1 / 6, 2 / 3)),
            at("label_noise:logits_from_proba.floor", values=(1e-4, 1e-2)),
        ),
    ),
    "paper": (
        small_fits.paper,
        1,
        (
            at("linear._paper:LITTLE"),
            at("linear._paper:MUCH", values=(0.2, 0.8)),
            at("linear._paper:LEAD"),
            at("linear._paper:FLOORS"),
            at("linear._paper:FULL", values=(0.95, 0.995)),
            at("linear._paper:LOST"),
            at("meta.label_path:FLOOR"),
        ),
    ),
    "regressor": (
        small_fits.regressor,
        1,
        (
            at("meta.value_path:ROUNDS", values=(1, 6)),
            at("meta.value_path:LEAST_GAIN"),
            at("meta.value_path:IN_SAMPLE"),
            at("meta.value_path:ERRORS"),
            at("meta.value_path:NO_OUTLIERS"),
            at("meta.value_path:LEAST_GAP"),
        ),
    ),
    "factorization": (
        small_fits.factorization,
        2,
        (
            at("factorization.row_refit:INLIER"),
            at("factorization.row_refit:STARVED", values=(0.5, 0.85)),
            at("factorization.row_refit:DOUBTFUL", values=(0.7, 0.95)),
            at("factorization.row_refit:THIN"),
            at("factorization.row_refit:CAP"),
            at("factorization.row_refit:BETTER", values=(0.95, 0.999)),
            at("factorization.row_refit:REFINED"),
            at("factorization.row_refit:SUBSETS"),
            at("factorization.solve:FIRST_SWEEPS"),
            at("factorization.solve:RESCUE_SWEEPS"),
            at("factorization.solve:POLISH_AGAIN"),
            at("factorization.solve:LONGER"),
            at("factorization.solve:STILL", values=(0.97, 0.999)),
            at("factorization.solve:REJECT", values=(2.5, 5.0)),
            at("factorization.solve:TRUNCATION", values=(1.0, 1.003, 1.01)),
            at("factorization.start:RIDGE_END", "factorization.estimator:RIDGE_END"),
            at("factorization.start:RIDGE_RANK"),
            at("factorization.start:SMOOTHING", "factorization.solve:Recipe.smoothing"),
            at("factorization.start:SPARE"),
            at("factorization.start:RANK_FLOOR"),
            at("residuals.pace:Opening.growth", values=(1.2, 2.0)),
            at("residuals.pace:Opening.stop", values=(ScaleStop(3.35), ScaleStop(13.4))),
        ),
    ),
    "clustering": (
        small_fits.clustering,
        6,
        (
            at("clustering.paced:WARM"),
            at("clustering.paced:INNER"),
            at("clustering.paced:WIDE"),
            at("clustering.paced:LEAST_CHANCE"),
            at("clustering.paced:PRUNE", values=({}, {0: 2, 1: 1 << 30})),
            at("clustering.rules:_DEFAULT_END", values=((1.1, 8), (4.4, 8), (2.2, 4), (2.2, 16))),
            at("clustering.rules:_END", values=({"hard": (2.2, 8)}, {"hard": (4.5, 24)})),
            at("clustering.rules:UNEVEN"),
        ),
    ),
    "label-noise": (
        small_fits.label_noise,
        4,
        (
            at("label_noise.binary:_MAX_RATE", values=(0.45, 0.495)),
            at("label_noise.binary:_BINS"),
            at("label_noise.multiclass:_MAX_SHARE", values=(0.9, 0.99)),
            at("label_noise.multiclass:_PSEUDO_COUNTS"),
        ),
    ),
}


# --------------------------------------------------------------------------------------------- replacing them


@contextmanager
def replaced(place: str, value: Any) -> Iterator[None]:
    """The constant with another value: in its module, and wherever it was imported by name."""
    path, name = place.split(":")
    owner: Any = import_module(f"selfpaced.{path}")
    if "." in name:
        with default_replaced(owner, *name.split("."), value):
            yield
        return
    old = getattr(owner, name)
    holders = [m for key, m in sys.modules.items() if key.startswith("selfpaced") and vars(m).get(name) is old]
    try:
        for module in holders:
            setattr(module, name, value)
        yield
    finally:
        for module in holders:
            setattr(module, name, old)


@contextmanager
def default_replaced(owner: Any, name: str, parameter: str, value: Any) -> Iterator[None]:
    """Another default of a function or of a class."""
    target = getattr(owner, name)
    function = target.__init__ if inspect.isclass(target) else target
    positional, by_name = function.__defaults__, function.__kwdefaults__
    if parameter in (by_name or {}):
        function.__kwdefaults__ = {**by_name, parameter: value}
    else:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
        changed = list(positional)
        changed[names.index(parameter)] = value
        function.__defaults__ = tuple(changed)
    try:
        yield
    finally:
        function.__defaults__, function.__kwdefaults__ = positional, by_name


def current(place: str) -> Any:
    """The value in use."""
    path, name = place.split(":")
    owner: Any = import_module(f"selfpaced.{path}")
    if "." not in name:
        return getattr(owner, name)
    name, parameter = name.split(".")
    return inspect.signature(getattr(owner, name)).parameters[parameter].default


# --------------------------------------------------------------------------------------------------- results


def scores(cases: list[Case]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([case.score() for case in cases])


def shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(shown(part) for part in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def change(difference: np.ndarray) -> str:
    error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else np.nan
    return f"{difference.mean():+.2f} ± {error:.2f}"


def table(area: str, only: list[str], quick: bool) -> str:
    make, seeds, constants = AREAS[area]
    cases = list(make(range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds))))
    dirty = np.array([case.dirty for case in cases])
    base = scores(cases)
    lines = [
        f"Score with the values in use: clean {base[~dirty].mean():.2f}, dirty {base[dirty].mean():.2f}; "
        f"{len(cases)} fits ({dirty.sum()} of dirty data) per row.",
        "",
        "| constant | in use | tried | clean | dirty | fits changed |",
        "|---|---|---|---|---|---|",
    ]
    print(f"\n## {area}\n\n" + "\n".join(lines), flush=True)
    for constant in constants:
        if only and constant.name not in only:
            continue
        value = current(constant.places[0])
        for other in constant.neighbours(value):
            with ExitStack() as stack:
                for place in constant.places:
                    stack.enter_context(replaced(place, other))
                off = scores(cases) - base
            cells = f"{change(off[~dirty])} | {change(off[dirty])} | {np.count_nonzero(off)}"
            lines.append(f"| `{constant.name}` | {shown(value)} | {shown(other)} | {cells} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def merged(area: str, old: str, new: str) -> str:
    """The new table, with the old rows of constants that were not varied this time; in the order of `AREAS`."""
    rows: dict[str, list[str]] = {}
    for text in (old, new):
        found: dict[str, list[str]] = {}
        for name, row in re.findall(r"^(\| `(?:[^`]+)`) (.*)$", text, flags=re.MULTILINE):
            found.setdefault(name, []).append(f"{name} {row}")
        rows |= found
    head = new.split("\n| `")[0].strip()
    known = [f"| `{constant.name}`" for constant in AREAS[area][2]]
    missing = [name[2:] for name in known if name not in rows]
    tail = ["", f"Not run yet: {', '.join(missing)}."] if missing else []
    return "\n".join([head, *(row for name in known for row in rows.get(name, [])), *tail])


def save(area: str, text: str) -> None:
    """Put the table into its section of the result file; the other sections stay."""
    words = str(__doc__).split("\n\n", 2)[2], str(small_fits.__doc__).split("\n\n", 1)[1]
    title = "# Constants and their neighbours\n\nPrinted by `python benchmarks/constants.py AREA --save`.\n"
    head = "\n".join([title, *words])
    old = RESULT.read_text(encoding="utf-8") if RESULT.exists() else ""
    sections = dict(re.findall(r"^## (\S+)\n\n(.*?)(?=\n\n## |\Z)", old, flags=re.MULTILINE | re.DOTALL))
    sections[area] = merged(area, sections.get(area, ""), text)
    parts = [f"## {name}\n\n{sections[name].strip()}" for name in AREAS if name in sections]
    RESULT.write_text("\n\n".join([head.strip(), *parts]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="+", choices=[*AREAS, "all"], metavar="AREA")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="vary only these constants")
    parser.add_argument("--quick", action="store_true", help="one seed; nothing is saved")
    parser.add_argument("--save", action="store_true", help=f"write the areas' sections of {RESULT.name}")
    options = parser.parse_args()
    for area in AREAS if "all" in options.areas else options.areas:
        began = time.perf_counter()
        text = table(area, options.only, options.quick)
        print(f"{time.perf_counter() - began:.0f} s", flush=True)
        if options.save and not options.quick:
            save(area, text)


if __name__ == "__main__":
    main()
