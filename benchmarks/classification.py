"""Linear classification under label noise: self-paced against logistic regression, its C chosen or not, and cleanlab.

    python benchmarks/label_sets.py                                     # once: the tables
    python benchmarks/classification.py --part development [--seeds 2] [--jobs 2] [--save]
    python benchmarks/classification.py --part development --library REVISION --save

development  25 KEEL tables (label_sets.py), looked at freely.
fresh        32 tables of R packages (label_sets.py), listed before the first look; one look per design.
third        16 others, listed before the third look.
fourth       21 others, listed before the fourth look.
three        the paper's data sets in the paper's folds; ``--seeds 10`` is one split into ten folds.
nothing      labels at random, labels drawn from a model, the same table with ten splits into folds.
stability    how much of the lists stays under another random_state, and when 3 % of the rows are deleted.
schedule     ``pace="paper"`` for each rule of the paper's table, C given and chosen, beside the paper's own figure.

Labels are clean, wrong at random (5, 10, 20, 40 %), by class (35 and 5 % in turn), near the border (20 %) or in a
region (half of the labels of 30 % of the rows). All methods run with their defaults and see the same rows, scaling and
labels; nothing is chosen with clean labels. Answers are cached cell by cell, so a run can be stopped and taken up
again; ``--library`` computes the rows of the library with the code of another revision. Needs the packages of
``.[peers]`` and ``experiments``.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import label_sets
import noisy_fits
import numpy as np
from noisy_fits import BALANCED, NOISES, OURS, PAPER, PEERS

from selfpaced_experiments.cells import Cache, run_cells
from selfpaced_experiments.data import DataNotFoundError

ROOT = Path(__file__).parents[1]
RESULT = Path(__file__).parent / "results" / "classification.md"
SETS = {
    "development": label_sets.DEVELOPMENT,
    "fresh": list(label_sets.FRESH),
    "third": list(label_sets.THIRD),
    "fourth": list(label_sets.FOURTH),
    "three": list(PAPER),
}
METHODS = ("plain", "LR CV", "cleanlab", OURS, BALANCED, "oracle")
FIGURES = {  # the paper's table: clean and 20 %
    "hard": {"breast": (97.54, 96.13), "spambase": (92.63, 89.81), "svmguide1": (95.39, 92.72)},
    "mixture-zhao": {"breast": (98.25, 96.66), "spambase": (92.83, 90.76), "svmguide1": (95.51, 93.81)},
    "huber": {"breast": (98.77, 96.84), "spambase": (93.05, 90.92), "svmguide1": (95.57, 93.54)},
    "l1l2": {"breast": (97.90, 94.72), "spambase": (93.00, 90.09), "svmguide1": (95.57, 92.83)},
    "cauchy": {"breast": (98.42, 97.54), "spambase": (93.09, 90.85), "svmguide1": (95.65, 93.88)},
    "welsch": {"breast": (98.25, 97.89), "spambase": (93.13, 91.37), "svmguide1": (95.68, 94.37)},
}
PENALTIES = (1.0, "auto")
STABLE, LEAST_STABLE = ("10 %", "20 %", "40 %", "35/5 %"), 0.8
Found = dict[tuple[str, str, str], list[dict[str, Any]]]  # (set, noise, method) -> one answer per seed


# ------------------------------------------------------------------------------------------------- running


def answers(cells: list[Any], options: argparse.Namespace) -> list[Any]:
    """The answers in the order of the cells, with a line of progress on standard error."""
    by_key = {}
    for done, answer in enumerate(run_cells(cells, cache=Cache(), jobs=options.jobs, compute=not options.cached), 1):
        by_key[answer.cell.key] = answer.value
        if not answer.cached:
            print(f"{done} of {len(cells)}: {answer.cell.label}, {answer.seconds:.1f} s", file=sys.stderr, flush=True)
    return [by_key.get(cell.key) for cell in cells]


def measured(names: list[str], options: argparse.Namespace) -> Found:
    """Every method on every table under every noise."""
    methods = [m for m in METHODS if m != BALANCED or noisy_fits.balances()]
    keys, cells = [], []
    for seed in range(options.seeds):
        for name in _at_hand(names):
            for noise in NOISES:
                for method in methods:
                    keys.append((name, noise, method))
                    params = {"name": name, "noise": noise, "seed": seed, "method": method}
                    cells.append(noisy_fits.cell("fit", f"{name}, {noise}, {method}", method not in PEERS, **params))
    found: Found = {}
    for key, value in zip(keys, answers(cells, options), strict=True):
        if value is not None:
            found.setdefault(key, []).append(value)
    return found


def _at_hand(names: list[str]) -> list[str]:
    """The tables that can be read; the others are named with the reason."""
    kept = []
    for name in names:
        try:
            noisy_fits.table(name)
            kept.append(name)
        except DataNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return kept


# -------------------------------------------------------------------------------------------------- tables


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(corner: str, rows: dict[str, list[str]], columns: tuple[str, ...] = NOISES) -> list[str]:
    head = [corner, *columns]
    return [_line(head), _line(["---"] * len(head)), *(_line([name, *cells]) for name, cells in rows.items()), ""]


class Tables:
    """What was measured, as tables."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.methods = [m for m in METHODS if any(method == m for _, _, method in found)]
        every = list(dict.fromkeys(name for name, _, _ in found))
        # A run that was stopped: only tables on which all methods have been under all noises can be compared.
        self.names = [name for name in every if all((name, n, m) in found for n in NOISES for m in self.methods)]
        self.seeds = max(len(values) for values in found.values())

    def values(self, noise: str, method: str, measure: Callable[[dict[str, Any]], Any]) -> np.ndarray:
        """One row per table: the mean over its seeds."""
        rows = [[measure(v) for v in self.found[name, noise, method]] for name in self.names]
        return np.array([np.mean([math.nan if v is None else float(v) for v in row]) for row in rows])

    def mean_of(self, title: str, key: str, digits: int) -> list[str]:
        rows = {
            m: [
                f"{np.nanmean(v):.{digits}f}" if np.isfinite(v := self.values(n, m, lambda a: a[key])).any() else "-"
                for n in NOISES
            ]
            for m in self.methods
        }
        return [f"{title}, mean over the tables.", "", *_table("method", rows)]

    def gains(self, base: str) -> list[str]:
        """Accuracy over another method, with its standard error over the tables."""
        rows = {}
        for method in self.methods:
            if method == base:
                continue
            rows[method] = []
            for noise in NOISES:
                gap = self._accuracy(noise, method) - self._accuracy(noise, base)
                gap = gap[np.isfinite(gap)]
                rows[method].append(
                    f"{gap.mean():+.2f} ({gap.std(ddof=1) / math.sqrt(len(gap)):.2f})" if len(gap) > 1 else "-"
                )
        return [f"Accuracy over {base}, in points (standard error over the tables).", "", *_table("method", rows)]

    def _accuracy(self, noise: str, method: str) -> np.ndarray:
        return self.values(noise, method, lambda a: a["accuracy"])

    def rates(self) -> list[str]:
        """What the library says about the share of wrong labels."""
        rows: dict[str, list[str]] = {
            "true share": [],
            "claimed": [],
            "interval covers it": [],
            "interval without 0": [],
        }
        for noise in NOISES:
            every = [answer for name in self.names for answer in self.found[name, noise, OURS]]
            low, high = np.array([a["interval"] for a in every]).T
            truth = np.array([a["flipped"] for a in every])
            rows["true share"].append(f"{truth.mean():.3f}")
            rows["claimed"].append(f"{np.mean([a['rate'] for a in every]):.3f}")
            rows["interval covers it"].append(f"{np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9)):.0%}")
            rows["interval without 0"].append(f"{np.mean(low > 0):.0%}")
        return [f"The share of wrong labels by {OURS}; every fit counts.", "", *_table("", rows)]

    def lists(self) -> list[str]:
        """What is listed: F1 of both levels, and how often a likely error is one."""
        rows: dict[str, list[str]] = {}
        for method in (OURS, "cleanlab"):
            by_noise = [[a for name in self.names for a in self.found[name, noise, method]] for noise in NOISES]
            listed = [f"{np.median([a['listed'] for a in every]):.0f}" for every in by_noise]
            f1 = [[a["f1"] for a in every if a["f1"] is not None] for every in by_noise]
            rows[f"{method}, F1"] = [f"{np.mean(values):.3f}" if values else "-" for values in f1]
            rows[f"{method}, rows listed (median)"] = listed
        ours = [[a for name in self.names for a in self.found[name, noise, OURS]] for noise in NOISES]
        rows["likely errors (median)"] = [f"{np.median([a['likely'] for a in every]):.0f}" for every in ours]
        rows["fits with any"] = [f"{np.mean([a['likely'] > 0 for a in every]):.0%}" for every in ours]
        pooled = [
            (sum(a["likely"] * (a["right"] or 0.0) for a in every), sum(a["likely"] for a in every)) for every in ours
        ]
        rows["likely errors that are wrong"] = [f"{right / total:.2f}" if total else "-" for right, total in pooled]
        return ["Rows that are listed. cleanlab has one list; likely errors are claims.", "", *_table("", rows)]

    def worst(self) -> list[str]:
        """The table where each method loses most against the plain model."""
        rows: dict[str, list[str]] = {}
        for method in self.methods:
            if method in ("plain", "oracle"):
                continue
            rows[method] = []
            for noise in NOISES:
                gap = self._accuracy(noise, method) - self._accuracy(noise, "plain")
                at = int(np.nanargmin(gap))
                rows[method].append(f"{gap[at]:+.1f} ({self.names[at]}); {np.sum(gap < -2)} below -2")
        return ["Worst table against plain, in points, and how many lose more than two.", "", *_table("method", rows)]

    def losses(self) -> list[str]:
        """Every cell in which the library is more than two points below the better of plain and LR CV."""
        rows: dict[str, list[str]] = {}
        for noise in NOISES:
            peers = np.fmax(self._accuracy(noise, "plain"), self._accuracy(noise, "LR CV"))
            gap = self._accuracy(noise, OURS) - peers
            for at in np.flatnonzero(gap < -2):
                rows[f"{self.names[at]}, {noise}"] = [f"{peers[at]:.1f}", f"{gap[at]:+.1f}"]
        title = (
            f"Cells in which {OURS} is more than two points below the better of plain and LR CV: {len(rows)} of "
            f"{len(self.names) * len(NOISES)}."
        )
        return [title, "", *_table("table, noise", rows, ("better of both", OURS))]

    def cost(self) -> list[str]:
        rows = {}
        for method in self.methods:
            if method not in ("plain", "oracle"):
                costs = [self.values(noise, method, lambda a: a["cost"]) for noise in NOISES]
                rows[method] = [f"{np.nanmedian(c):.1f} (at most {np.nanmax(c):.0f})" for c in costs]
        return ["Processor time of a fit in fits of plain, median over the tables.", "", *_table("method", rows)]

    def spread(self) -> list[str]:
        if self.seeds < 2:
            return []
        rows = {}
        for method in self.methods:
            rows[method] = []
            for noise in NOISES:
                sets = [[a["accuracy"] for a in self.found[name, noise, method]] for name in self.names]
                rows[method].append(f"{np.mean([np.std(s, ddof=1) for s in sets if len(s) > 1]):.2f}")
        return ["Standard deviation of the accuracy between seeds, mean over the tables.", "", *_table("method", rows)]

    def by_set(self) -> list[str]:
        """Every table: plain accuracy, and what LR CV and the library add to it."""
        rows = {}
        for i, name in enumerate(self.names):
            plain, tuned, own = ([self._accuracy(n, m)[i] for n in NOISES] for m in ("plain", "LR CV", OURS))
            rows[name] = [f"{p:.1f} {t - p:+.1f} {o - p:+.1f}" for p, t, o in zip(plain, tuned, own, strict=True)]
        title = f"Every table: accuracy of plain, what LR CV adds, what {OURS} adds."
        return [title, "", *_table("table", rows)]

    def lines(self) -> list[str]:
        return [
            f"{len(self.names)} tables, {self.seeds} seed{'s' * (self.seeds > 1)} of split, noise and model.",
            "",
            *self.mean_of("Accuracy, %", "accuracy", 1),
            *self.gains("plain"),
            *self.gains("LR CV"),
            *self.mean_of("Balanced accuracy, %", "balanced", 1),
            *self.mean_of("Log-loss on clean labels", "loss", 3),
            *self.mean_of("Calibration error of the most probable class", "calibration", 3),
            *self.mean_of("Average precision of finding the wrong labels", "precision", 3),
            *self.lists(),
            *self.rates(),
            *self.worst(),
            *self.losses(),
            *self.spread(),
            *self.cost(),
            *self.by_set(),
        ]


# --------------------------------------------------------------------------------------------- other parts


def nothing_part(options: argparse.Namespace) -> list[str]:
    """Where there is nothing to be found, and how much depends on the split into folds."""
    shapes = [(300, 5, 2), (1000, 20, 2), (600, 10, 3)]
    draws = range(10 * options.seeds)
    rows = {}
    for rows_, features, classes in shapes:
        params = {"rows": rows_, "features": features, "classes": classes}
        cells = [noisy_fits.cell("no_signal", "labels at random", **params, seed=seed) for seed in draws]
        rows[f"labels at random, {rows_} x {features}, {classes} classes"] = _claims(answers(cells, options))
    for rows_, features in ((150, 200), (400, 400), (800, 1000)):
        params = {"rows": rows_, "features": features}
        cells = [noisy_fits.cell("factors", "labels drawn from factors", **params, seed=seed) for seed in draws]
        rows[f"labels drawn from one of five factors, {rows_} x {features}"] = _claims(answers(cells, options))
    for kind, what in (("overlapping", "labels drawn by a column"), ("skewed", "labels drawn by a column's logarithm")):
        for rows_ in (400, 3000, 12_000):
            params = {"rows": rows_, "kind": kind}
            cells = [noisy_fits.cell("bent", what, **params, seed=seed) for seed in draws]
            rows[f"{what}, {rows_} x 4"] = _claims(answers(cells, options))
    cells = [
        noisy_fits.cell("drawn", f"{name}, drawn", name=name, seed=seed)
        for seed in range(options.seeds)
        for name in _at_hand(label_sets.DEVELOPMENT)
    ]
    rows["labels drawn from LR, development tables"] = _claims(answers(cells, options))
    columns = ("draws", "interval contains 0", "claimed rate, mean", "suspects, median")
    lines = ["No label is wrong, or none can be told.", "", *_table("data", rows, columns)]
    moved = {}
    for noise in ("clean", "20 %"):
        cells = [noisy_fits.cell("stability", f"stability, {noise}", noise=noise, seed=seed) for seed in range(10)]
        found = answers(cells, options)
        counts = np.array([a["suspects"] for a in found])
        predicted = np.array([list(a["predicted"]) for a in found])
        apart = np.mean([np.mean(predicted[i] != predicted[j]) for i in range(10) for j in range(i)])
        rate = [a["rate"] for a in found]
        spread = f"{counts.std() / max(counts.mean(), 1):.0%}"
        moved[noise] = [
            f"{counts.min()} to {counts.max()}",
            spread,
            f"{min(rate):.3f} to {max(rate):.3f}",
            f"{apart:.2%}",
        ]
    columns = ("suspects", "spread of suspects", "claimed rate", "predictions that differ")
    return [
        *lines,
        "One table of 2,201 rows and three coarse columns, split into folds by ten seeds.",
        "",
        *_table("labels", moved, columns),
    ]


def _claims(found: list[dict[str, Any]]) -> list[str]:
    zero = np.mean([a["interval"][0] <= 0 for a in found])
    suspects = [a["suspects"] for a in found]
    rate = np.mean([a["rate"] for a in found])
    return [str(len(found)), f"{zero:.0%}", f"{rate:.3f}", f"{np.median(suspects):.0f} (at most {max(suspects)})"]


def stability_part(options: argparse.Namespace) -> list[str]:
    """How much of a list stays under another random_state, and when 3 % of the rows are deleted."""
    rows: dict[str, list[str]] = {}
    for change in ("another random_state", "3 % of the rows deleted"):
        for level in ("listed", "likely"):
            rows[f"{change}, {level}"] = []
            for noise in STABLE:
                cells = [
                    noisy_fits.cell("kept", f"{name}, {noise}, {change}", name=name, noise=noise, change=change, seed=s)
                    for s in range(options.seeds)
                    for name in _at_hand(label_sets.DEVELOPMENT)
                ]
                found = [a[level] for a in answers(cells, options) if a is not None and a[level] is not None]
                low = np.mean(np.array(found) < LEAST_STABLE)
                rows[f"{change}, {level}"].append(
                    f"{np.mean(found):.2f}, median {np.median(found):.2f} ({low:.0%} of {len(found)} below .80)"
                )
    title = "Jaccard index of the lists of two fits: all rows listed, and likely errors if both fits claim any."
    return [title, "", *_table("change, list", rows, STABLE)]


def schedule_part(options: argparse.Namespace) -> list[str]:
    """The paper's schedule beside the paper's figures."""
    rows, reached = {}, dict.fromkeys(PENALTIES, 0)
    for rule, figures in FIGURES.items():
        for name, paper in figures.items():
            cells = []
            for noise, figure in zip(("clean", "20 %"), paper, strict=True):
                for C in PENALTIES:
                    params = {"name": f"paper: {name}", "rule": rule, "noise": noise, "C": C}
                    asked = [
                        noisy_fits.cell("schedule", f"{rule}, {name}, {noise}, C={C}", **params, seed=s)
                        for s in range(options.seeds)
                    ]
                    accuracy = np.mean([a["accuracy"] for a in answers(asked, options)])
                    reached[C] += bool(round(accuracy, 2) >= figure)
                    cells.append(f"{accuracy:.2f}")
                cells.append(f"{figure:.2f}")
            rows[f"{rule}, {name}"] = cells
    title = (
        f'`pace="paper"`, mean over {options.seeds} folds, beside the single run of the paper: {reached[1.0]} of 36 '
        f"reached with C = 1 as in the paper, {reached['auto']} with C chosen."
    )
    columns = tuple(f"{noise}, {what}" for noise in ("clean", "20 %") for what in ("C = 1", "C chosen", "paper"))
    return [title, "", *_table("rule, data", rows, columns)]


# -------------------------------------------------------------------------------------------------- command


def save(title: str, lines: list[str]) -> None:
    """Replace one section of the result file."""
    RESULT.parent.mkdir(exist_ok=True)
    text = RESULT.read_text() if RESULT.exists() else "# Linear classification under label noise\n"
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    section = f"\n## {title}\n\nAt commit {commit}.\n\n" + "\n".join(lines).rstrip("\n") + "\n"
    pattern = re.compile(rf"\n## {re.escape(title)}\n.*?(?=\n## |\Z)", re.DOTALL)
    text = pattern.sub(lambda _: section, text) if pattern.search(text) else text.rstrip("\n") + "\n" + section
    RESULT.write_text(text)


@contextmanager
def exported(revision: str) -> Iterator[Path]:
    """The sources of a revision in a temporary directory."""
    command = ["git", "archive", "--format=tar", revision, "src"]
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder).resolve() / "src"


def with_library(revision: str) -> int:
    """This command again, with the library's code of another revision."""
    words = [w for w in sys.argv[1:] if w not in ("--library", revision)]
    with exported(revision) as source:
        env = dict(os.environ, PYTHONPATH=f"{source}{os.pathsep}{ROOT / 'experiments' / 'src'}")
        return subprocess.run([sys.executable, __file__, *words, "--named", revision], env=env, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(*SETS, "nothing", "stability", "schedule"), default="development")
    parser.add_argument("--seeds", type=int, default=2, help="of split, noise and model (default 2)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cached", action="store_true", help="compute nothing: tables of what is cached so far")
    parser.add_argument("--library", metavar="REVISION", help="compute the library's rows with its code of then")
    parser.add_argument("--named", default="", help=argparse.SUPPRESS)
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.library:
        return with_library(options.library)
    if options.part == "nothing":
        lines = nothing_part(options)
    elif options.part == "stability":
        lines = stability_part(options)
    elif options.part == "schedule":
        lines = schedule_part(options)
    else:
        lines = Tables(measured(SETS[options.part], options)).lines()
    print("\n".join(lines))
    if options.save:
        titles = {
            "third": "Tables of the third look",
            "fourth": "Tables of the fourth look",
            "three": "The paper's three data sets",
            "nothing": "Nothing to be found",
            "stability": "Stability of the lists",
            "schedule": "The paper's schedule",
        }
        title = titles.get(options.part, f"{options.part.capitalize()} tables")
        save(f"{title}, library of {options.named}" if options.named else title, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
