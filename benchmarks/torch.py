"""Networks under label noise: SelfPacedLoss against cross entropy and what else a user could put in its place.

    python benchmarks/torch.py [--part noise|clean|cnn|cost|all] [--seeds 5] [--save]

noise: a perceptron of two hidden layers of 128, 40 epochs, Adam, the last epoch counts. Digits, mfeat (pixels),
mnist_5k (14 x 14), and made tables whose classes overlap or are imbalanced. Labels of the training part: as they are,
20 and 40 % flipped evenly, 30 % to the next class, 20 % depending on the row. One default everywhere. Only "small loss"
is told the true rate. For information: ELR, alone and with the pace, which is given row numbers; and cross entropy on
the rows whose label was not flipped, "clean rows only", which is what could be reached.
clean: tables of several separations, widths, sizes and imbalances, no label flipped, 20 seeds each: what it costs.
"again" is cross entropy itself, from other initial weights and in another order: what is chance.
cnn: two convolutions with batch normalisation on mnist_5k, 30 epochs. cost: CPU time of a step of it at batch 128.

Seeds from 100 on were not looked at while the criterion was made; constants were chosen on seeds 0 to 5. Every run is
appended to ``run/torch.jsonl``, and a second call begins with those it holds. Needs mlxtend, and mfeat.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != HERE]  # this file is called torch itself
import torch

sys.path.insert(0, str(HERE))
import numpy as np
from torch import nn
from torch_parts import BATCH, NOISE, PEERS, RATE, Made, cnn, run_cnn, run_networks

from selfpaced.torch import SelfPacedLoss

RESULT = HERE / "results" / "torch.md"
FIRST_SEED = 100
IMBALANCED = (0.7, 0.2, 0.07, 0.03)
PICTURES = ("digits", "mfeat", "mnist_5k")
TABLES = {
    "ten overlapping classes": Made(10, 0.8),
    "ten classes apart": Made(10, 2.0),
    "four imbalanced classes": Made(4, 1.2, shares=IMBALANCED),
}
AGAIN = "cross entropy again"
FOR_INFORMATION = ("ELR, row ids", "selfpaced and ELR, row ids", "clean rows only")
FEW = ("cross entropy", "GCE", "small loss, true rate", "selfpaced")  # peers on the tables
CLEAN = {
    "10 classes, separation 0.5": Made(10, 0.5),
    "10 classes, separation 0.8": Made(10, 0.8),
    "10 classes, separation 0.8, width 64": Made(10, 0.8, width=64),
    "10 classes, separation 1.2": Made(10, 1.2),
    "5 classes, separation 0.8, 1,000 rows": Made(5, 0.8, rows=1000),
    "3 classes, separation 0.5": Made(3, 0.5),
    "2 classes, separation 0.5": Made(2, 0.5),
    "4 classes 70/20/7/3, separation 0.6": Made(4, 0.6, shares=IMBALANCED),
    "4 classes 70/20/7/3, separation 1.2": Made(4, 1.2, shares=IMBALANCED),
    "2 classes 95/5, separation 0.5": Made(2, 0.5, shares=(0.95, 0.05)),
    "10 classes, separation 0.8, width 512": Made(10, 0.8, width=512),
    "10 classes, separation 0.8, 8,000 rows": Made(10, 0.8, rows=8000),
}
TARGETS = {
    "digits": (97, 95.5, 94.5, 95, 95.5),
    "mfeat": (97, 96, 96, 97, 96.5),
    "mnist_5k": (94.5, 92.5, 92, 91.5, 92.5),
}


def tasks(part, seeds):
    """What a part runs, one entry for networks trained side by side: (part, data, peer, seeds, kinds of noise)."""
    some = range(FIRST_SEED, FIRST_SEED + seeds)
    if part == "noise":
        names = [(name, peer) for name in PICTURES for peer in PEERS if peer != AGAIN]
        names += [(name, peer) for name in TABLES for peer in FEW]
        return [(part, name, peer, tuple(some), tuple(NOISE)) for name, peer in names]
    two = ("cross entropy", "selfpaced")
    if part == "clean":
        some = tuple(range(FIRST_SEED, FIRST_SEED + 20))
        return [(part, name, peer, some, ("0 %",)) for name in CLEAN for peer in (*two, AGAIN)]
    return [(part, "mnist_5k", peer, (seed,), (noise,)) for seed in some[:3] for noise in NOISE for peer in two]


def run(part, name, peer, seeds, noises):
    data = CLEAN[name] if part == "clean" else TABLES.get(name, name)
    if part == "cnn":
        return [run_cnn(data, seeds[0], noises[0], peer)]
    return run_networks(data, seeds, noises, peer, getattr(data, "width", 128))


def gather(parts, seeds, file):
    """(part, data, noise, peer, seed) -> scores: those of the file first, new ones are appended to it."""
    file.parent.mkdir(exist_ok=True)
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    runs = {tuple(record["run"]): record["out"] for record in known}
    wanted = [task for part in parts for task in tasks(part, seeds)]
    for number, (part, name, peer, some, noises) in enumerate(wanted):
        keys = [(part, name, noise, peer, seed) for seed in some for noise in noises]
        if all(key in runs for key in keys):
            continue
        new = dict(zip(keys, run(part, name, peer, some, noises), strict=True))
        with file.open("a") as out:
            out.writelines(json.dumps({"run": key, "out": value}) + "\n" for key, value in new.items())
        runs |= new
        print(
            f"{number + 1}/{len(wanted)}",
            part,
            name,
            peer,
            [round(v["accuracy"], 1) for v in new.values()],
            file=sys.stderr,
        )
    return runs


# ------------------------------------------------------------------------------------------------- tables


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def cells(runs, part, key="accuracy"):
    """(data, peer, noise) -> values over seeds."""
    found = defaultdict(list)
    for (of, name, noise, peer, _), out in runs.items():
        if of == part:
            found[name, peer, noise].append(out[key])
    return found


def noise_tables(runs):
    accuracy, worst, ap = (cells(runs, "noise", key) for key in ("accuracy", "worst", "ap"))
    names = list(dict.fromkeys(name for name, _, _ in accuracy))
    for name in names:
        rows = []
        for peer in PEERS:
            values = [accuracy[name, peer, noise] for noise in NOISE]
            if not all(values):
                continue
            shown = [f"{np.mean(v):.1f} ± {np.std(v, ddof=1) / math.sqrt(len(v)):.1f}" for v in values]
            low = " / ".join(f"{np.mean(worst[name, peer, noise]):.0f}" for noise in NOISE)
            found = " / ".join(f"{np.mean(ap[name, peer, noise]):.2f}" for noise in list(NOISE)[1:])
            rows.append([peer, *shown, low, found])
        if name in TARGETS:
            rows.append(["*to reach*", *(f"*{value}*" for value in TARGETS[name]), "", ""])
        count = len(accuracy[name, "selfpaced", "0 %"])
        yield f"**{name}**, {count} seeds\n"
        yield table(["", *NOISE, "worst recall", "AP of flipped rows"], rows)
        yield behind(accuracy, name)


def behind(accuracy, name):
    """Where a peer that a user could have instead is ahead."""
    said = []
    for noise in NOISE:
        ours = np.mean(accuracy[name, "selfpaced", noise])
        for peer in PEERS:
            theirs = accuracy[name, peer, noise]
            if theirs and peer not in ("selfpaced", *FOR_INFORMATION) and np.mean(theirs) > ours:
                said.append(f"{peer} at {noise} by {np.mean(theirs) - ours:.1f}")
    return f"Ahead of selfpaced: {', '.join(said) if said else 'none'}.\n"


def clean_table(runs):
    accuracy, phase = cells(runs, "clean"), defaultdict(list)
    for (of, name, _, peer, _), out in runs.items():
        if of == "clean" and peer == "selfpaced":
            phase[name].append(out["phase"])
    rows = []
    for name in CLEAN:
        plain, ours, again = (np.array(accuracy[name, peer, "0 %"]) for peer in ("cross entropy", "selfpaced", AGAIN))
        if len(plain) != len(ours) or not len(ours):  # not run yet
            continue
        gap, chance = ours - plain, again - plain if len(again) == len(plain) else np.array([])
        row = [name, f"{plain.mean():.1f}", f"{ours.mean():.1f}", f"{gap.mean():+.2f}", f"{gap.min():+.1f}"]
        row += [f"{chance.mean():+.2f}", f"{chance.min():+.1f}"] if len(chance) else ["", ""]
        rows.append([*row, f"{phase[name].count('paced')} of {len(phase[name])}"])
    head = ["20 seeds each", "cross entropy", "selfpaced", "mean", "worst seed", "again: mean", "worst seed", "paced"]
    return table(head, rows)


def cnn_table(runs):
    accuracy = cells(runs, "cnn")
    rows = [
        [peer, *(" / ".join(f"{v:.1f}" for v in accuracy["mnist_5k", peer, noise]) for noise in NOISE)]
        for peer in ("cross entropy", "selfpaced")
    ]
    return table(["seed by seed", *NOISE], rows)


def cost(repeats=4, steps=27):
    """CPU time of a training step, the two criteria in turn; epochs end as they do in training (every 27 steps)."""
    inputs, labels = torch.randn(steps * BATCH, 196), torch.randint(10, (steps * BATCH,))
    spent = defaultdict(list)
    criteria = {"cross entropy": nn.CrossEntropyLoss(), "selfpaced": SelfPacedLoss(n=steps * BATCH)}
    nets = {name: cnn(10, 0) for name in criteria}
    for _ in range(repeats + 2):
        for name, criterion in criteria.items():
            optimizer = torch.optim.Adam(nets[name].parameters(), RATE, fused=True)
            began = time.process_time()
            for part in torch.arange(len(inputs)).split(BATCH):
                optimizer.zero_grad()
                criterion(nets[name](inputs[part]), labels[part]).backward()
                optimizer.step()
            spent[name].append((time.process_time() - began) / steps)
    plain, ours = (min(spent[name][2:]) for name in criteria)
    alone = criterion_cost()
    state = criteria["selfpaced"].state_dict()["_extra_state"]["counts"][1].nbytes
    return (
        f"A step of the small CNN at batch {BATCH}: {1e3 * plain:.2f} ms with cross entropy, {1e3 * ours:.2f} ms with "
        f"selfpaced ({100 * (ours / plain - 1):+.1f} %), least of {repeats} epochs each, CPU time. The criterion "
        f"alone, forward and backward: {1e6 * alone[1]:.0f} µs for {1e6 * alone[0]:.0f} µs, which is "
        f"{100 * (alone[1] - alone[0]) / plain:.1f} % of the step. Counts on the device: {state / 1024:.0f} kB.\n"
    )


def criterion_cost(calls=300):
    logits, labels = torch.randn(BATCH, 10, requires_grad=True), torch.randint(10, (BATCH,))
    spent = []
    for criterion in (nn.CrossEntropyLoss(), SelfPacedLoss(n=27 * BATCH)):
        times = []
        for _ in range(3):
            began = time.process_time()
            for _ in range(calls):
                criterion(logits, labels).backward()
            times.append((time.process_time() - began) / calls)
        spent.append(min(times))
    return spent


def report(parts, runs, options):
    about = __doc__.split("\n\n")[2:]
    text = [
        "# Networks under label noise\n",
        *(part.strip() + "\n" for part in about),
        f"`python benchmarks/torch.py {options}`\n",
    ]
    if "noise" in parts:
        text += ["## Noise\n", "Test accuracy in %, mean over seeds ± one standard error.\n", *noise_tables(runs)]
    if "clean" in parts:
        text += ["## Clean tables: what it costs\n", clean_table(runs)]
    if "cnn" in parts:
        text += ["## Small CNN with batch normalisation, mnist_5k\n", cnn_table(runs)]
    if "cost" in parts:
        text += ["## Cost\n", cost()]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["noise", "clean", "cnn", "cost", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=Path, default=Path("run/torch.jsonl"))
    parser.add_argument("--show", action="store_true", help="run nothing: tables of what the file of runs holds")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    parts = ["noise", "clean", "cnn", "cost"] if args.part == "all" else [args.part]
    runs = gather([] if args.show else [part for part in parts if part != "cost"], args.seeds, args.runs)
    text = report(parts, runs, f"--part {args.part} --seeds {args.seeds}")
    print(text)
    if args.save:
        RESULT.write_text(text)


if __name__ == "__main__":
    main()
