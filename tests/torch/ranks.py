"""One rank of a distributed training, run by test_distributed.py: ``python ranks.py RANK WORLD FOLDER MODE``.

Modes: "equal" shards with n, "unequal" shards with step_epoch, "whole" and "resumed": as equal, but half way every rank
stops, in the middle of an epoch, and in "resumed" goes on in a new process from its checkpoint.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss

EPOCHS, BATCH = 10, 32


def main(rank, world, folder, mode):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous-{mode}", rank=rank, world_size=world)
    X, y = load_digits(return_X_y=True)
    X = torch.from_numpy(((X - X.mean(0)) / (X.std(0) + 1e-6)).astype(np.float32))
    y = torch.from_numpy(flip_symmetric(y, 0.3, random_state=0)[0])
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    criterion = SelfPacedLoss(n=None if mode == "unequal" else len(X))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    batches = [batch for epoch in range(EPOCHS) for batch in shard(len(X), epoch, rank, world, mode)]
    checkpoint = folder / f"checkpoint-{rank}.pt"
    if checkpoint.exists():
        for thing, state in zip((net, optimizer, criterion), torch.load(checkpoint, weights_only=True), strict=True):
            thing.load_state_dict(state)
        batches = batches[len(batches) // 2 :]
    elif mode == "resumed":
        batches = batches[: len(batches) // 2]
    if mode == "unequal":
        train_unequal(net, optimizer, criterion, X, y, rank, world)
    else:
        train(net, optimizer, criterion, X, y, batches)
    if mode == "resumed" and not checkpoint.exists():
        torch.save([net.state_dict(), optimizer.state_dict(), criterion.state_dict()], checkpoint)
    weights = torch.cat([p.detach().ravel() for p in net.parameters()]).double()
    out = {"history": criterion.history, "weights": weights.sum().item(), "reason": criterion.termination}
    (folder / f"{mode}-{rank}.json").write_text(json.dumps(out))
    dist.destroy_process_group()


def shard(rows, epoch, rank, world, mode):
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(epoch))
    if mode != "unequal":
        return order[: rows // world * world][rank::world].split(BATCH)
    cut = int(0.7 * rows)
    return (order[:cut] if rank == 0 else order[cut:]).split(BATCH)


def train(net, optimizer, criterion, X, y, batches):
    for batch in batches:
        optimizer.zero_grad()
        criterion(net(X[batch]), y[batch]).backward()
        optimizer.step()


def train_unequal(net, optimizer, criterion, X, y, rank, world):
    for epoch in range(EPOCHS):
        with net.join():
            train(net, optimizer, criterion, X, y, shard(len(X), epoch, rank, world, "unequal"))
        criterion.step_epoch()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    # What the rank has to say is on disk. The interpreter's own end now and then waits forever for a thread of gloo.
    os._exit(0)
