"""Several processes over gloo: one pace for all, whatever rows each has seen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

from selfpaced.torch import SelfPacedLoss

if not os.environ.get("SELFPACED_RANKS"):
    pytest.skip(
        "several processes over gloo now and then wait for each other until they time out on a busy machine: set "
        "SELFPACED_RANKS=1 to run them",
        allow_module_level=True,
    )

SCRIPT = Path(__file__).with_name("ranks.py")


def run(world, folder, mode):
    """What every rank wrote at its end."""
    (folder / f"rendezvous-{mode}").unlink(missing_ok=True)
    commands = [[sys.executable, str(SCRIPT), str(rank), str(world), str(folder), mode] for rank in range(world)]
    ranks = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    said = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, said
    return [json.loads((folder / f"{mode}-{rank}.json").read_text()) for rank in range(world)]


def agreed(results):
    """The history that all ranks share."""
    histories = {json.dumps(result["history"]) for result in results}
    assert len(histories) == 1
    assert len({result["weights"] for result in results}) == 1
    return results[0]["history"]


@pytest.mark.parametrize("world", [2, 3])
def test_every_rank_has_the_same_pace(world, tmp_path):
    history = agreed(run(world, tmp_path, "equal"))
    assert len(history) == 10  # n is not divisible by the batch, nor the rows by the ranks
    assert history[-1]["phase"] == "paced"
    assert history[-1]["rate"] == pytest.approx(0.3, abs=0.1)


def test_unequal_shards_end_their_epochs_by_hand(tmp_path):
    history = agreed(run(2, tmp_path, "unequal"))
    assert len(history) == 10
    assert history[-1]["phase"] == "paced"


def test_ranks_that_died_continue_from_their_checkpoints(tmp_path):
    whole = run(2, tmp_path, "whole")
    run(2, tmp_path, "resumed")
    resumed = run(2, tmp_path, "resumed")
    assert agreed(resumed) == agreed(whole)
    assert resumed[0]["weights"] == whole[0]["weights"]


def test_a_rank_without_a_batch_needs_n_classes(monkeypatch):
    monkeypatch.setattr("selfpaced.torch.criterion.world_size", lambda: 2)
    with pytest.raises(
        RuntimeError, match="a rank that had no batch yet cannot end an epoch: give it one, or give n_cl"
    ):
        SelfPacedLoss().step_epoch()
    criterion = SelfPacedLoss(n_classes=3)
    criterion.step_epoch()
    assert (criterion.epoch, criterion.phase) == (1, "look")
