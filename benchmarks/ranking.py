"""How well wrong labels are ranked first: alternatives to what the reference models of a wrapped classifier do by
default.

    python benchmarks/ranking.py [--sets DEVELOPMENT|BURNT] [--base NAME] [--seeds N] [--save]

Average precision of finding the changed training labels, same rows, labels and votes for all. The development half of
the KEEL tables is what was chosen on; the other half confirms it. At most 500 rows.

"as estimated": labels are doubted by the transition that the channel has found, where a class may have a rate of 0.
"at least r": no rate between two classes is below r of one rate for all (of 5 %, if that is lower). In use: 0.2.
"half-way to one rate", "one rate": the transition is moved there. "votes": by the stacked votes alone, without any
channel. The model itself: its probability of the given label, outside of halves or out of its bags.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import more_datasets
import numpy as np
from meta import BASES
from noisy_fits import NOISES, noisy
from references import Bench, saved, split
from sklearn.metrics import average_precision_score

from selfpaced.label_noise import symmetric

RESULT = Path(__file__).parent / "results" / "ranking.md"
NOISY = NOISES[1:]
LEAST = 0.05
PARTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)


def normal(rows):
    return rows / rows.sum(axis=1, keepdims=True)


def transitions(said):
    """Every way to doubt labels, by its name."""
    found, k = said.channel.transition, said.clean.shape[1]
    even = symmetric(max(said.rate, LEAST), k)
    ways = {f"at least {part}" if part else "as estimated": normal(np.maximum(found, part * even)) for part in PARTS}
    return {**ways, "half-way to one rate": (found + even) / 2, "one rate": even}


def precisions(base, name, noise, seed):
    """Average precision of every way; None where noise has taken a class away."""
    X, y, _, _ = split(name, seed)
    given, wrong = noisy(X, y, noise, 400 + seed)
    if np.unique(given).size <= y.max():
        return None
    bench = Bench(base, X, given)
    said, cases = bench.said, bench.cases
    own = (np.arange(len(cases.codes)), cases.codes)
    doubts = {}
    for label, transition in transitions(said).items():
        doubts[label] = 1 - normal(np.maximum(said.clean * transition[:, cases.codes].T, 1e-300))[own]
    votes = sum(said.references.get(j.name, 0) * np.log(np.maximum(j.votes(cases.hard), 1e-3)) for j in bench.readers)
    doubts["votes"] = 1 - normal(np.exp(votes))[own]
    doubts["the model itself"] = 1 - bench.own.votes(cases.hard)[own]
    return {label: average_precision_score(wrong, doubt[cases.of_row]) for label, doubt in doubts.items()}


def table(base, sets, seeds):
    yield "| ranked by | " + " | ".join(NOISY) + " |"
    yield "|---" * (1 + len(NOISY)) + "|"
    by_noise = []
    for noise in NOISY:
        found = [precisions(base, name, noise, seed) for name in getattr(more_datasets, sets) for seed in range(seeds)]
        by_noise.append([one for one in found if one is not None])
    for label in by_noise[0][0]:
        means = [np.mean([one[label] for one in found]) for found in by_noise]
        yield f"| {label} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", choices=("DEVELOPMENT", "BURNT"), default="DEVELOPMENT")
    parser.add_argument("--base", choices=BASES, default="forest")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    text = "\n".join(table(args.base, args.sets, args.seeds))
    print(text)
    if args.save:
        head = "# How well wrong labels are ranked first\n\n" + __doc__.split("\n\n", 2)[2]
        saved(RESULT, head, f"{args.base}, {args.sets.lower()} tables, {args.seeds} seed(s)", text)


if __name__ == "__main__":
    main()
