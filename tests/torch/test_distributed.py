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
if not hasattr(os, "fork"):
    pytest.skip("ranks are forks, which this system does not have", allow_module_level=True)

SCRIPT = Path(__file__).with_name("ranks.py")
TASKS = ["equal:2", "equal:3", "unequal:2", "joined:2", "validating:2", "idle:2", "whole:2", "resumed:2"]
LIMIT = 900  # seconds: ranks that wait for each other would wait for ever


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What every rank wrote at its end, by mode and number of ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, SCRIPT, folder, *TASKS]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr

    def results(mode, world):
        return [json.loads((folder / f"{mode}-{world}-{rank}.json").read_text()) for rank in range(world)]

    return results


def agreed(results):
    """The history that all ranks share."""
    histories = {json.dumps(result["history"]) for result in results}
    assert len(histories) == 1
    assert len({result["weights"] for result in results}) == 1
    return results[0]["history"]


@pytest.mark.parametrize("world", [2, 3])
def test_every_rank_has_the_same_pace(world, trained):
    history = agreed(trained("equal", world))
    # n is not divisible by the batch, nor the rows by the ranks; the last epoch ends with a batch that never comes
    assert len(history) in (6, 7)
    assert history[-1]["phase"] == "paced"
    assert history[-1]["rate"] == pytest.approx(0.3, abs=0.1)


def test_unequal_shards_end_their_epochs_by_hand(trained):
    history = agreed(trained("unequal", 2))
    assert len(history) == 7
    assert history[-1]["phase"] == "paced"


def test_ranks_that_died_continue_from_their_checkpoints(trained):
    whole, resumed = trained("whole", 2), trained("resumed", 2)
    assert agreed(resumed) == agreed(whole)
    assert resumed[0]["weights"] == whole[0]["weights"]


def test_unequal_shards_under_join_end_and_agree(trained):
    """Ranks of 11 and of 17 batches: an epoch ends when both have passed half of n, which the smaller does later."""
    ranks = trained("joined", 2)
    assert len({result["weights"] for result in ranks}) == 1
    shorter, longer = sorted((json.dumps(result["history"])[:-1] for result in ranks), key=len)
    assert longer.startswith(shorter)
    assert 4 <= len(json.loads(shorter + "]")) <= 7


def test_one_rank_that_validates_alone_changes_nothing(trained):
    assert agreed(trained("validating", 2)) == agreed(trained("equal", 2))


def test_a_rank_without_a_batch(trained):
    history = agreed(trained("idle", 2))
    assert len(history) == 7
    assert history[-1]["phase"] == "paced"
