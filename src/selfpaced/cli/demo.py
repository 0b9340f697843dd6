"""``selfpaced demo``: plain against self-paced where the wrong labels are known."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from selfpaced.path import end_in_words

from .console import plain_data
from .models import add_model_arguments, share
from .output import folder_name

if TYPE_CHECKING:
    from .console import Console
    from .training import Training

USAGE = "selfpaced demo [--noise SHARE] [--out OUT] [options]"
DESCRIPTION = """\
See it work: breast cancer diagnoses (569 x 30), one in five of them flipped, and two models that do not know which.

Accuracy is that of 10-fold cross-validation, learnt from the wrong labels and measured on the right ones.
Writes demo.png, report.html, suspects.csv and metrics.json into OUT.
"""
EPILOG = """\
examples:
  selfpaced demo
  selfpaced demo --noise 0.4 --seed 3
"""
FILES = ["demo.png", "report.html", "suspects.csv", "metrics.json"]
# what is used here, and the extras that bring it
PACKAGES = {"pandas": "cli", "rich": "cli", "matplotlib": "plot", "jinja2": "report", "vl_convert": "report"}
FOLDS = 10  # the paper: 10-fold cross validation


@dataclass(frozen=True)
class Found:
    """How well a model finds the wrong labels: its ranking, and its yes or no."""

    score: np.ndarray
    flagged: np.ndarray

    def against(self, wrong: np.ndarray) -> dict[str, float]:
        """Precision, recall and average precision."""
        from sklearn.metrics import average_precision_score, precision_score, recall_score

        return {
            "precision": float(precision_score(wrong, self.flagged, zero_division=0.0)),
            "recall": float(recall_score(wrong, self.flagged)),
            "average_precision": float(average_precision_score(wrong, self.score)),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    add_model_arguments(parser, seed="of the flipped labels (default 0)")
    group = parser.add_argument_group("results")
    group.add_argument("--noise", type=share, default=0.2, metavar="SHARE", help="of labels to flip (default 0.2)")
    group.add_argument("--out", type=folder_name, default=Path("demo"), metavar="OUT", help="folder (default: demo)")
    group.add_argument("--force", action="store_true", help="replace files of these names that are not selfpaced's")


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit on flipped labels, compare with the truth, draw."""
    check_extras()
    from .data import TARGET, built_in
    from .fit import write_report
    from .output import staged
    from .training import STEPS, train
    from .writing import write_frame

    frame, wrong = built_in(args.seed, args.noise)
    if args.model == "auto":
        args.model = "logistic"  # what the demo is about
    vars(args).update(data=None, target=TARGET, task="auto", exclude=[], categorical=[], merge_labels=[], frame=frame)
    with staged(args.out, FILES, console, force=args.force) as stage:
        with console.progress(STEPS + 2):
            result = train(args, console)
            with console.step(f"{FOLDS}-fold cross-validation"):
                truth = _truth(result, wrong)
                accuracy = _accuracy(result, truth)
            with console.step("drawing"):
                finders = {"plain": _by_loss(result), "self-paced": _by_suspicion(result)}
                measured = {name: {**accuracy[name], **found.against(wrong)} for name, found in finders.items()}
                write_frame(result.suspects, stage / "suspects.csv")
                written = _figure(result, wrong, finders, stage / "demo.png", console)
                written += ["report.html"] * write_report(result, stage / "report.html", console)
        facts = {"selfpaced": _version(), "noise": args.noise, "seed": args.seed, "models": measured}
        facts |= {
            "noise_rate": result.model.noise_rate_,
            "termination": result.model.termination_,
        }
        text = json.dumps(plain_data(facts), indent=2, allow_nan=False)
        (stage / "metrics.json").write_text(text + "\n", encoding="utf-8")
    written += ["suspects.csv", "metrics.json"]
    _tell(result, measured, int(wrong.sum()), console)
    console.tell(f"\nWritten: {', '.join(str(args.out / name) for name in written)}")
    console.say("Next: selfpaced fit YOUR.csv --target COLUMN")
    console.result({**facts, "files": [str(args.out / name) for name in written]})
    return 0


def check_extras() -> None:
    """Name everything that is missing at once, not one package after the other; page and picture are not needed."""
    missing = {name: extra for name, extra in PACKAGES.items() if not _there(name)}
    if "cli" in missing.values():
        extras = ",".join(dict.fromkeys(missing.values()))
        raise ImportError(f'the demo needs {", ".join(missing)}: pip install "selfpaced[{extras}]"')


def _there(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def _truth(result: Training, wrong: np.ndarray) -> np.ndarray:
    classes = np.unique(result.target.values)
    other = np.where(result.target.values == classes[0], classes[1], classes[0])
    return np.where(wrong, other, result.target.values)


def _accuracy(result: Training, truth: np.ndarray) -> dict[str, dict[str, float]]:
    """Cross-validated accuracy on the right labels of models that saw the wrong ones."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    given, frame = result.target.values, result.table.frame
    hits: dict[str, list[float]] = {"plain": [], "self-paced": []}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(frame, given):
        pipeline = clone(result.pipeline).fit(frame.iloc[train], given[train])
        features = pipeline[:-1].transform(frame.iloc[test])
        for name, model in (("plain", pipeline[-1].plain_), ("self-paced", pipeline[-1])):
            hits[name].append(float(np.mean(model.predict(features) == truth[test])))
    return {
        name: {"accuracy": float(np.mean(h)), "spread": float(np.std(h, ddof=1) / np.sqrt(len(h)))}
        for name, h in hits.items()
    }


def _by_loss(result: Training) -> Found:
    """The plain model's doubts: how improbable it finds the given label."""
    plain, given = result.model.plain_, result.target.values
    chances = plain.predict_proba(result.features)
    own = chances[np.arange(len(given)), np.searchsorted(plain.classes_, given)]
    return Found(1.0 - own, plain.predict(result.features) != given)


def _by_suspicion(result: Training) -> Found:
    from selfpaced import suspects

    table = suspects(result.model, result.features, result.target.values, all_rows=True)
    score = np.empty(len(table))
    # Ties in probability (many are nearly 1) keep the order of the table.
    score[table["row"].to_numpy()] = np.arange(len(table), 0, -1)
    flagged = np.zeros(len(table), dtype=bool)
    flagged[result.likely["row"].to_numpy()] = True
    return Found(score, flagged)


def _figure(result: Training, wrong: np.ndarray, finders: dict[str, Found], path: Path, console: Console) -> list[str]:
    """Weights of right and wrong rows, and the search for the wrong ones."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        console.warn('no figure: it needs matplotlib: pip install "selfpaced[plot]"')
        return []
    from sklearn.metrics import precision_recall_curve

    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    weight, bins = result.model.assessment_.weight, np.linspace(0, 1, 21)
    left.hist([weight[~wrong], weight[wrong]], bins=bins, stacked=True, color=["#4c78a8", "#e45756"])
    left.legend(["right labels", "flipped labels"], frameon=False, loc="upper center")
    left.set(xlabel="weight", ylabel="rows", title="The weights find the flipped labels")
    for (name, found), colour in zip(finders.items(), ("#9aa5b1", "#e45756"), strict=True):
        precision, recall, _ = precision_recall_curve(wrong, found.score)
        area = found.against(wrong)["average_precision"]
        right.plot(recall, precision, color=colour, lw=2, label=f"{name} (average precision {area:.2f})")
    right.set(xlabel="share of flipped labels found", ylabel="share of finds that are right", ylim=(0, 1.03))
    right.set_title("Finding them, most suspicious first")
    right.legend(frameon=False, loc="lower left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    return [path.name]


def _tell(result: Training, measured: dict[str, dict[str, float]], wrong: int, console: Console) -> None:
    from .telling import share_in_words

    rows = len(result.target.values)
    model = "logistic regression" if result.model_name == "logistic" else result.model_name.replace("-", " ")
    console.tell(
        f"\nBreast cancer diagnoses, {rows} rows; {wrong} labels were flipped, and nobody told the models ({model}).\n"
    )
    table = [["", "accuracy", "flips found", "flagged right", "average precision"]]
    for name, row in measured.items():
        accuracy = f"{row['accuracy']:.1%} +- {row['spread']:.1%}"
        cells = [f"{row['recall']:.0%}", f"{row['precision']:.0%}", f"{row['average_precision']:.3f}"]
        table.append([name, accuracy, *cells])
    console.table(table)
    console.say()
    share = share_in_words(result.model.noise_rate_, result.model.noise_rate_interval_)
    console.tell(f"Estimated share of wrong labels: {share}. The truth is {wrong / rows:.1%}.")
    console.tell(end_in_words(result.model.termination_, result.model.path_))


def _version() -> str:
    from selfpaced import __version__

    return __version__
