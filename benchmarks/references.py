"""Alternatives to what the reference models of a wrapped classifier do by default, on tables for development alone.

    python benchmarks/references.py --part local|pull|join|claims [--base NAME ...] [--sets NAME] [--runs FILE] [--save]

The development half of the KEEL tables is what settings are chosen on; the other half (`--sets BURNT`) confirms them.
At most 500 rows to learn from, at most 2,000 others to test on. All alternatives get the same rows, labels and votes.

local: noise near the border of classes. "plain below 5 %": the plain model wherever the reference models put the
rate below 5 %.
"neighbours in leaves": one assess more, the labels of the ten rows that share most leaves of a forest. "local rates":
the rate of each row is that of its neighbours in leaves. "soft at r": where the rate is below 5 %, a fit to soft labels
as if it were r, if the reference models foretell given labels of unseen rows better than the wrapped model by 2
standard errors
("whoever is ahead": in any case). In use: soft at 5 %.

pull: how far totals of classes go from those of the posterior to the given ones. In use: half-way, as far as noise does
not differ between classes. "less at high rates": times 1 - 2 rate, always or from a rate of 25 % on. "all the way".
"undone": to the given totals sent back through the channel. "a class has half of its given share": at least.

join: whether the wrapped model is one of the reference models. In use: where it foretells given labels better than
they do
together by 2 standard errors ("clearly better").

claims: how often the interval of the rate leaves out 0, on made tables (overlap.py) without a wrong label and with one
in five. "pooled": by the votes taken together. "each assess": unless noise is plain, every assess must see it by
itself,
which is in use. It was chosen on seeds 0 to 5.

Classes lost: cells in which a class loses more than 8 points of recall against the plain model.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import more_datasets
import numpy as np
import overlap
from meta import BASES, base_of
from noisy_fits import noisy
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss, recall_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from selfpaced import SelfPacedClassifier
from selfpaced.folds import row_keys
from selfpaced.wrappers.posterior import posterior_of
from selfpaced.wrappers.routing import weight_route
from selfpaced.wrappers.soft_labels import SoftFit
from selfpaced.wrappers.soft_path import LEAST, SoftProblem

RESULT = Path(__file__).parent / "results" / "references.md"
NOISES = ("clean", "20 %", "40 %", "35/5 %", "border 20 %")
TRAINED, TESTED = 500, 2000
DEALS, LEAF, NEIGHBOURS = 25, 5, 10


# --------------------------------------------------------------------------------------------- references and votes


@dataclass(eq=False)
class Remembered:
    """An assess who votes on given labels once, however often it is asked."""

    assess: Any
    known: Any = None
    turns: Any = None

    @property
    def name(self):
        return self.assess.name

    def votes(self, soft):
        if not np.array_equal(soft, np.round(soft)):
            return self.assess.votes(soft)
        if self.known is None:
            self.known = self.assess.votes(soft)
        return self.known

    def in_turn(self, soft):
        """As the assessment has them, each fitted once."""
        self.turns = self.turns or list(self.assess.in_turn(soft))
        return iter(self.turns)


@dataclass(eq=False)
class LeafNeighbours:
    """Labels of the rows that share most leaves of trees that have not seen the row itself."""

    table: np.ndarray
    name: str = "neighbours in leaves"

    def nearness(self, soft):
        """How many leaves each row shares with each of those that the tree was fitted to."""
        rng, near = np.random.default_rng(7), np.zeros((len(soft), len(soft)))
        for _ in range(DEALS):
            left = rng.permutation(len(soft)) < len(soft) // 2
            for side in (left, ~left):
                seed = int(rng.integers(2**31))
                tree = DecisionTreeRegressor(min_samples_leaf=LEAF, max_features="sqrt", random_state=seed)
                leaf = tree.fit(self.table[side], soft[side]).apply(self.table)
                near[np.ix_(~side, side)] += leaf[~side][:, None] == leaf[side][None, :]
        return near

    def votes(self, soft):
        near = self.nearness(soft)
        few = np.argsort(-near, axis=1, kind="stable")[:, :NEIGHBOURS]
        weight = np.take_along_axis(near, few, axis=1) + 1e-9
        return (soft[few] * weight[:, :, None]).sum(axis=1) / weight.sum(axis=1)[:, None]


class Bench:
    """A table with given labels, and what the reference models say of it."""

    def __init__(self, base, X, given):
        model, k = base_of(base), int(given.max()) + 1
        fitted = SoftFit(model, weight_route(model), np.arange(k), given, row_keys(X))
        self.problem = SoftProblem(X, fitted, SimpleNamespace(stage=lambda _: nullcontext()))
        self.given, self.cases, self.plain = given, self.problem.cases(), self.problem.plain()
        readers, own = self.problem.references(self.cases, self.plain)
        self.readers, self.own = [Remembered(assess) for assess in readers], Remembered(own)
        self.neighbours = LeafNeighbours(np.ascontiguousarray(readers[0].table, dtype=np.float32))

    @cached_property
    def said(self):
        return self.posterior()

    def posterior(self, *more):
        return posterior_of(self.cases, [*self.readers, *more], self.own)

    def soft(self, said, rate=None):
        """Soft labels of all rows, by the rate of the reference models or another."""
        logits = np.log(np.maximum(said.clean, 1e-300))
        soft = said.soft(said.rate if rate is None else rate).posterior(logits, self.cases.codes)
        return soft[self.cases.of_row]

    def fit(self, soft):
        return self.problem.fitted.fit(self.problem.X, soft).model


# ------------------------------------------------------------------- alternatives: soft labels, or None for plain


def plain_below(bench):
    return None if bench.said.rate < LEAST else bench.soft(bench.said)


def leaves(bench):
    said = bench.posterior(bench.neighbours)
    return None if said.rate < LEAST else bench.soft(said)


def local_rates(bench):
    soft = plain_below(bench)
    if soft is None:
        return None
    wrong = 1 - soft[np.arange(len(soft)), bench.given]
    near = bench.neighbours.nearness(bench.cases.hard)[np.ix_(bench.cases.of_row, bench.cases.of_row)]
    rate = ((near @ wrong + LEAF * wrong.mean()) / (near.sum(axis=1) + LEAF))[:, None]
    given = np.eye(soft.shape[1])[bench.given]
    out = bench.said.clean[bench.cases.of_row] * np.where(given == 1, 1 - rate, rate / (soft.shape[1] - 1))
    return out / out.sum(axis=1, keepdims=True)


def soft_at(rate: float, always: bool = False) -> Callable[[Bench], Any]:
    def made(bench):
        if bench.said.rate >= LEAST:
            return bench.soft(bench.said)
        return bench.soft(bench.said, rate) if always or bench.said.ahead else None

    return made


def with_totals(rule: Callable[..., Any]) -> Callable[[Bench], Any]:
    def made(bench):
        with mock.patch("selfpaced.wrappers.posterior._totals", rule):
            said = bench.posterior()
        return None if said.rate < LEAST else bench.soft(said)

    return made


def pulled(share: float, less_from: float = 1.0) -> Callable[[Bench], Any]:
    """Totals so far on the way to the given ones; from a rate on times 1 - 2 rate."""

    def rule(soft, hard, weight, channel):
        rate = channel.noise_rate
        pull = share * (1 - channel.model_weights[-1]) * (max(1 - 2 * rate, 0) if rate >= less_from else 1)
        return np.average((1 - pull) * soft + pull * hard, axis=0, weights=weight)

    return with_totals(rule)


def undone(soft, hard, weight, channel):
    posterior, given = (np.average(rows, axis=0, weights=weight) for rows in (soft, hard))
    back = np.clip(np.linalg.lstsq(channel.transition.T, given, rcond=None)[0], given / 4, None)
    pull = 0.5 * (1 - channel.model_weights[-1])
    return (1 - pull) * posterior + pull * back / back.sum()


def at_least(share: float) -> Callable[[Bench], Any]:
    """Half-way, but no class below so much of its given share."""

    def rule(soft, hard, weight, channel):
        pull = 0.5 * (1 - channel.model_weights[-1])
        totals = np.average((1 - pull) * soft + pull * hard, axis=0, weights=weight)
        totals = np.maximum(totals, share * np.average(hard, axis=0, weights=weight))
        return totals / totals.sum()

    return with_totals(rule)


def joined(who: Callable[[Bench], tuple[list[Any], Any]]) -> Callable[[Bench], Any]:
    def made(bench):
        said = posterior_of(bench.cases, *who(bench))
        return None if said.rate < LEAST else bench.soft(said)

    return made


PARTS = {
    "local": {
        "plain below 5 %": plain_below,
        "neighbours in leaves": leaves,
        "local rates": local_rates,
        "soft at 5 %": soft_at(0.05),
        "soft at 10 %": soft_at(0.1),
        "soft at 20 %": soft_at(0.2),
        "soft at 5 %, whoever is ahead": soft_at(0.05, always=True),
    },
    "pull": {
        "half-way": pulled(0.5),
        "no pull": pulled(0.0),
        "less at high rates": pulled(0.5, 0.0),
        "less at rates from 25 % on": pulled(0.5, 0.25),
        "all the way": pulled(1.0),
        "undone": with_totals(undone),
        "a class has half of its given share": at_least(0.5),
    },
    "join": {
        "clearly better": joined(lambda bench: (bench.readers, bench.own)),
        "never": joined(lambda bench: (bench.readers, None)),
        "always": joined(lambda bench: ([*bench.readers, bench.own], None)),
    },
}


# ------------------------------------------------------------------------------------------------------ cells


def split(name, seed):
    """Rows to learn from and to test on."""
    X, y = more_datasets.load(name)
    trained = min(TRAINED, 2 * len(y) // 3)
    sizes = {"train_size": trained, "test_size": min(TESTED, len(y) - trained)}
    a, b = train_test_split(np.arange(len(y)), **sizes, stratify=y, random_state=300 + seed)
    return X[a], y[a], X[b], y[b]


def figures(model, X, y):
    classes = np.arange(int(y.max()) + 1)
    proba = np.zeros((len(y), classes.size))
    proba[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    recall = recall_score(y, proba.argmax(axis=1), labels=classes, average=None, zero_division=0)
    return {
        "accuracy": 100 * float(np.mean(proba.argmax(axis=1) == y)),
        "log-loss": float(log_loss(y, np.clip(proba, 1e-6, 1), labels=classes)),
        "recall": (100 * recall).tolist(),
    }


def cleanlab(base, X, given):
    from cleanlab.classification import CleanLearning

    return CleanLearning(base_of(base), seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(X, given).clf


def one(part, base, name, noise, seed):
    """What every alternative makes of the same votes; None where noise has taken a class away."""
    X, y, X_test, y_test = split(name, seed)
    given, _ = noisy(X, y, noise, 400 + seed)
    if np.unique(given).size <= y.max():
        return None
    bench, known = Bench(base, X, given), {}
    plain = figures(bench.plain.model, X_test, y_test)
    out = {"plain": plain, "cleanlab": figures(cleanlab(base, X, given), X_test, y_test)}
    for label, alternative in PARTS[part].items():
        soft = alternative(bench)
        key = None if soft is None else soft.tobytes()
        if key not in known:
            known[key] = plain if soft is None else figures(bench.fit(soft), X_test, y_test)
        out[label] = known[key]
    return out


# ----------------------------------------------------------------------------------------------------- tables


def means(runs):
    yield "| base | noise | | accuracy over plain | worst table | balanced | log-loss | classes lost |"
    yield "|---" * 8 + "|"
    for base in BASES:
        for noise in NOISES:
            some = [run["out"] for run in runs if run["base"] == base and run["noise"] == noise and run["out"]]
            for label in some[0] if some else ():
                gain = np.array([out[label]["accuracy"] - out["plain"]["accuracy"] for out in some])
                recall = [np.array(out[label]["recall"]) for out in some]
                lost = sum((r - out["plain"]["recall"]).min() < -8 for r, out in zip(recall, some, strict=True))
                error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
                row = [base, noise, label, f"{gain.mean():+.2f} ± {error:.2f}", f"{gain.min():+.1f}"]
                row += [f"{np.mean([r.mean() for r in recall]):.1f}"]
                row += [f"{np.mean([out[label]['log-loss'] for out in some]):.3f}", f"{lost} of {len(some)}"]
                yield "| " + " | ".join(row) + " |"


def claims(sizes, seeds):
    yield "| data | rows | wrong | claimed, pooled | each assess | interval holds the truth, pooled | each assess |"
    yield "|---" * 7 + "|"
    for kind in overlap.KINDS:
        for n in sizes:
            for share in (0.0, 0.2):
                found = np.array([_intervals(kind, n, share, seed) for seed in seeds])
                claimed = (found[:, :, 0] > 0).mean(axis=0)
                held = ((found[:, :, 0] <= share) & (share <= found[:, :, 1])).mean(axis=0)
                cells = " | ".join(f"{value:.0%}" for value in (*claimed, *held))
                yield f"| {kind.__name__} | {n} | {share:.0%} | {cells} |"


def _intervals(kind, n, share, seed):
    X, given, _ = overlap.table(kind, n, share, seed)
    model, out = SelfPacedClassifier(RandomForestClassifier(50, random_state=0)), []
    for asked in (lambda *_: True, None):
        with mock.patch("selfpaced.wrappers.posterior._all_see", asked) if asked else nullcontext():
            out.append(model.fit(X, given).noise_rate_interval_)
    return out


def saved(result, head, title, text):
    """The table in its section of the result file; the other sections stay."""
    old = result.read_text() if result.exists() else ""
    sections = dict(part.split("\n\n", 1) for part in old.split("\n## ")[1:])
    sections[title] = text.rstrip() + "\n"
    result.write_text(head + "".join(f"\n## {name}\n\n{sections[name]}" for name in sorted(sections)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=(*PARTS, "claims"), required=True)
    parser.add_argument("--base", nargs="+", choices=BASES, default=["LightGBM"])
    parser.add_argument("--sets", choices=("DEVELOPMENT", "BURNT"), default="DEVELOPMENT")
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 600], help="of made tables")
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 1], help="the first, and the one after the last")
    parser.add_argument("--runs", type=Path, help="append every run to this file, and begin with those it holds")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(*args.seeds)
    if args.part == "claims":
        title, lines = f"claims, seeds {seeds[0]} to {seeds[-1]}", claims(args.rows, seeds)
    else:
        title, lines = f"{args.part}, {args.sets.lower()} tables", means(_runs(args, seeds))
    text = "\n".join(lines)
    print(text)
    if args.save:
        head = "# Alternatives to the reference models of a wrapped classifier\n\n" + __doc__.split("\n\n", 2)[2]
        saved(RESULT, head, title, text)


def _runs(args, seeds):
    lines = args.runs.read_text().splitlines() if args.runs and args.runs.exists() else []
    runs = [json.loads(line) for line in lines]
    done = {(run["base"], run["noise"], run["data"], run["seed"]) for run in runs}
    for base in args.base:
        for seed in seeds:
            for name in getattr(more_datasets, args.sets):
                for noise in args.noise:
                    if (base, noise, name, seed) in done:
                        continue
                    out = one(args.part, base, name, noise, seed)
                    runs.append({"base": base, "noise": noise, "data": name, "seed": seed, "out": out})
                    if args.runs:
                        with args.runs.open("a") as file:
                            file.write(json.dumps(runs[-1]) + "\n")
    return runs


if __name__ == "__main__":
    main()
