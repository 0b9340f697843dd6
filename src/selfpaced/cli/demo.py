"""``selfpaced demo``: the plain model beside the self-paced one, on a table whose errors are known."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from selfpaced.formatting import percent, rate_in_words
from selfpaced.selection import end_in_words

from .models import add_model_arguments, share
from .output import add_output

if TYPE_CHECKING:
    from .console import Console
    from .training import Training

USAGE = "selfpaced demo [--noise SHARE] [--out OUT] [options]"
DESCRIPTION = """\
Run an example: 600 animals of a made-up shelter, one in five with the wrong
kind (dog, cat, rabbit).

The models see the wrong kinds. Accuracy is measured on the right ones, by
5-fold cross-validation.
Writes report.html, suspects.csv and metrics.json into OUT.
"""
EPILOG = """\
examples:
  selfpaced demo
  selfpaced demo --noise 0.4 --seed 3
"""
FILES = ["report.html", "suspects.csv", "metrics.json"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    add_model_arguments(parser, seed="seed of the wrong labels (default 0)")
    group = add_output(parser, "demo", report=False)
    group.add_argument("--noise", type=share, default=0.2, metavar="SHARE", help="share of wrong labels (default 0.2)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Fit to wrong labels, compare with the right ones, write the page."""
    from selfpaced import __version__

    from .data import TARGET, built_in
    from .fit import write_report
    from .output import staged, write_frame, write_json
    from .training import train

    frame, wrong = built_in(args.seed, args.noise)
    if args.model == "auto":
        args.model = "logistic"
    vars(args).update(data=None, target=TARGET, task="auto", exclude=[], categorical=[], merge_labels=[], frame=frame)
    with staged(args.out, FILES, console, force=args.force) as stage:
        with console.progress():
            result = train(args, console)
            with console.step("cross-validation"):
                measured = _compared(result, wrong)
            with console.step("writing"):
                write_frame(result.suspects, stage / "suspects.csv")
                written = ["report.html"] * write_report(result, stage / "report.html", console)
        facts = {"selfpaced": __version__, "noise": args.noise, "seed": args.seed, "models": measured}
        facts |= {"noise_rate": result.model.noise_rate_, "termination": result.model.termination_}
        write_json(facts, stage / "metrics.json")
    written += ["suspects.csv", "metrics.json"]
    _tell(result, measured, wrong, console)
    console.tell(f"\nWritten: {', '.join(str(args.out / name) for name in written)}")
    console.say("Next: selfpaced fit YOUR.csv --target COLUMN")
    console.result({**facts, "files": [str(args.out / name) for name in written]})
    return 0


def _compared(result: Training, wrong: np.ndarray) -> dict[str, dict[str, Any]]:
    """Accuracy on the right labels, and how many of the wrong ones are listed."""
    levels = result.model.assessment_.levels(result.threshold)
    listed = {"likely errors": levels == 2, "both lists": levels > 0}
    found = {
        name: {"rows": int(rows.sum()), "wrong": int((rows & wrong).sum()), "of": int(wrong.sum())}
        for name, rows in listed.items()
    }
    return {"accuracy": _accuracy(result), "found": found}


def _accuracy(result: Training) -> dict[str, Any]:
    """Cross-validated accuracy on the right labels of models that were fitted to the wrong ones."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from selfpaced.datasets import make_shelter

    given, frame = result.target.values, result.table.frame
    truth = make_shelter(random_state=0)[result.target.name].to_numpy(dtype=str)
    hits: dict[str, list[float]] = {"plain": [], "self-paced": []}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(frame, given):
        pipeline = clone(result.pipeline).fit(frame.iloc[train], given[train])
        features = pipeline[:-1].transform(frame.iloc[test])
        for name, model in (("plain", pipeline[-1].plain_), ("self-paced", pipeline[-1])):
            hits[name].append(float(np.mean(model.predict(features) == truth[test])))
    return {name: float(np.mean(h)) for name, h in hits.items()}


def _tell(result: Training, measured: dict[str, Any], wrong: np.ndarray, console: Console) -> None:
    rows, model = len(wrong), result.model
    console.tell(f"\n{rows} animals of a made-up shelter; the kind of {wrong.sum()} was changed to a wrong one.\n")
    console.table(
        ["model", "accuracy on the right kinds"], [[n, percent(a, 1)] for n, a in measured["accuracy"].items()]
    )
    console.say()
    console.table(
        ["list", "rows", "of these wrong", "of all wrong ones"],
        [
            [name, str(f["rows"]), percent(f["wrong"] / max(f["rows"], 1)), percent(f["wrong"] / f["of"])]
            for name, f in measured["found"].items()
        ],
    )
    rate = rate_in_words(model.noise_rate_, model.noise_rate_interval_)
    console.tell(f"\nEstimated share of wrong labels: {rate}. The truth is {percent(float(wrong.mean()))}.")
    console.tell(end_in_words(model.termination_, model.path_))
