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


def cost():
    """CPU time of a training step, of the criterion alone in each phase, and of the end of an epoch."""
    inputs, labels = torch.randn(BATCH, 196), torch.randint(10, (BATCH,))
    logits = torch.randn(BATCH, 10, requires_grad=True)
    criteria = {"cross entropy": nn.CrossEntropyLoss(), "look": SelfPacedLoss(), "paced": SelfPacedLoss(trusted=0.6)}
    for criterion in list(criteria.values())[1:]:  # the second epoch is the first that weighs rows
        criterion(logits, labels)
        criterion.step_epoch()

    def alone(criterion):
        return lambda: criterion(logits, labels).backward()

    def whole(criterion):
        net = cnn(10, 0)
        optimizer = torch.optim.Adam(net.parameters(), RATE, fused=True)

        def step():
            optimizer.zero_grad()
            criterion(net(inputs), labels).backward()
            optimizer.step()

        return step

    calls = [alone(criterion) for criterion in criteria.values()]
    plain, *ours = fastest([*calls, whole(criteria["cross entropy"])], 20, 40)
    look, paced, step = ours
    end = fastest([epoch_end()], 1, 10)[0]
    shares = [100 * (spent - plain) / step for spent in (look, paced)]
    state = criteria["paced"].state_dict()["_extra_state"]["counts"][1].nbytes
    return (
        f"A step of the small CNN at batch {BATCH} with cross entropy: {1e3 * step:.2f} ms of CPU time. The criterion, "
        f"forward and backward: cross entropy {1e6 * plain:.0f} µs, selfpaced {1e6 * look:.0f} µs while it looks and "
        f"{1e6 * paced:.0f} µs while it is paced, which adds "
        f"{shares[0]:.1f} and {shares[1]:.1f} % to the step; the end of an epoch takes {1e3 * end:.1f} ms. Least of 40 "
        f"blocks of 20 calls, taken in turn. Counts on the device: {state / 1024:.0f} kB.\n"
    )


def epoch_end():
    """The end of an epoch while the criterion looks, where it costs most."""
    criterion, order = SelfPacedLoss(), torch.Generator().manual_seed(0)
    for _ in range(6):
        criterion(5 * torch.randn(2000, 10, generator=order), torch.randint(10, (2000,), generator=order))
        criterion.step_epoch()
    logits, labels = 5 * torch.randn(2000, 10, generator=order), torch.randint(10, (2000,), generator=order)

    def end():
        criterion._verdict.closed = False
        criterion(logits, labels)
        criterion.step_epoch()

    return end


def fastest(functions, calls, blocks):
    """The least mean CPU time of each function in a block of calls; blocks in turn, so that load meets all alike."""
    best = [math.inf] * len(functions)
    for _ in range(blocks + 1):
        for place, function in enumerate(functions):
            began = time.process_time()
            for _ in range(calls):
                function()
            best[place] = min(best[place], (time.process_time() - began) / calls)
    return best


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
