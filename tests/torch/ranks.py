"""Distributed trainings, run by test_distributed.py: ``python ranks.py FOLDER MODE:WORLD ...``.

Importing torch takes longer than any of them, on a busy machine a minute, so it is done once: ranks are forks of this
process, made before it has computed anything, and end as forks do, without the interpreter's own long goodbye.

Modes: "equal" shards with n; "unequal" shards with step_epoch; "joined": unequal shards with n, under ``Join``;
"validating": as equal, and rank 0 alone validates after every epoch; "idle": the last rank has no batch at all; "whole"
and "resumed": as equal, but in "resumed" every rank dies half way, in the middle of an epoch, and new ones go on from
the checkpoints.
"""

import json
import multiprocessing
import os
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss

EPOCHS, BATCH = 7, 64
PATIENCE = timedelta(minutes=10)  # that ranks wait for each other, however busy the machine
FORK = multiprocessing.get_context("fork")


def main(folder, mode, world):
    for part in ["stop", "go on"] if mode == "resumed" else ["end"]:
        ranks = [FORK.Process(target=run, args=(rank, world, folder, mode, part)) for rank in range(world)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            sys.exit(f"{mode}: ranks ended with {[rank.exitcode for rank in ranks]}")


def run(rank, world, folder, mode, part):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meeting = f"file://{folder}/meeting-{mode}-{world}-{part.replace(' ', '-')}"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=world, timeout=PATIENCE)
    X, y = load_digits(return_X_y=True)
    X = torch.from_numpy(((X - X.mean(0)) / (X.std(0) + 1e-6)).astype(np.float32))
    y = torch.from_numpy(flip_symmetric(y, 0.3, random_state=0)[0])
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    criterion = SelfPacedLoss(n=None if mode in ("unequal", "idle") else len(X))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    batches = [batch for epoch in range(EPOCHS) for batch in shard(len(X), epoch, rank, world, mode)]
    checkpoint, half = folder / f"checkpoint-{rank}.pt", len(batches) // 2
    if part == "go on":
        for thing, state in zip((net, optimizer, criterion), torch.load(checkpoint, weights_only=True), strict=True):
            thing.load_state_dict(state)
    if mode in ("unequal", "joined", "idle"):
        train_unequal(net, optimizer, criterion, X, y, rank, world, mode)
    elif mode == "validating":
        train_validating(net, optimizer, criterion, X, y, rank, world)
    else:
        train(net, optimizer, criterion, X, y, {"end": batches, "stop": batches[:half], "go on": batches[half:]}[part])
    if part == "stop":
        torch.save([net.state_dict(), optimizer.state_dict(), criterion.state_dict()], checkpoint)
    weights = torch.cat([p.detach().ravel() for p in net.parameters()]).double()
    out = {"history": criterion.history, "weights": weights.sum().item(), "reason": criterion.termination}
    (folder / f"{mode}-{world}-{rank}.json").write_text(json.dumps(out))
    # Whoever lets go of the group last ends gloo's threads. The network must not: it would wait for them with the
    # interpreter's lock held, and one of them may be waiting for that lock to drop what it has done.
    del net
    dist.destroy_process_group()


def shard(rows, epoch, rank, world, mode):
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(epoch))
    if mode == "idle":
        return order.split(BATCH) if rank == 0 else []
    if mode not in ("unequal", "joined"):
        return order[: rows // world * world][rank::world].split(BATCH)
    cut = int(0.4 * rows)  # of 28 batches 11 and 17
    return (order[:cut] if rank == 0 else order[cut:]).split(BATCH)


def train(net, optimizer, criterion, X, y, batches):
    for batch in batches:
        optimizer.zero_grad()
        criterion(net(X[batch]), y[batch]).backward()
        optimizer.step()


def train_unequal(net, optimizer, criterion, X, y, rank, world, mode):
    for epoch in range(EPOCHS):
        with net.join():
            train(net, optimizer, criterion, X, y, shard(len(X), epoch, rank, world, mode))
        if criterion.n is None:
            criterion.step_epoch()


def train_validating(net, optimizer, criterion, X, y, rank, world):
    for epoch in range(EPOCHS):
        train(net, optimizer, criterion, X, y, shard(len(X), epoch, rank, world, "equal"))
        if rank == 0:
            with torch.no_grad():
                criterion(net.module(X), y)


if __name__ == "__main__":
    for task in sys.argv[2:]:
        kind, count = task.split(":")
        main(Path(sys.argv[1]), kind, int(count))
