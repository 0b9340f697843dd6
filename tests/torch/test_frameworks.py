"""The examples for skorch, Lightning and Hugging Face, run as they are."""

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples"
# these packages warn about their own dependencies and about settings that an example does not need
pytestmark = pytest.mark.filterwarnings("ignore")


def main_of(name):
    return runpy.run_path(str(EXAMPLES / f"torch_{name}.py"))["main"]


def test_skorch():
    pytest.importorskip("skorch", reason="skorch is not installed")
    scores, criterion = main_of("skorch")(25)
    assert criterion.phase == "paced"
    assert scores["self-paced"] > scores["cross entropy"] + 0.03


def test_lightning():
    pytest.importorskip("lightning", reason="lightning is not installed")
    score, module = main_of("lightning")(25)
    assert module.criterion.phase == "paced"
    assert score > 0.85
    assert "criterion._extra_state" in module.state_dict()


def test_hugging_face():
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    score, criterion = main_of("hugging_face")(25)
    assert criterion.phase == "paced"
    assert score > 0.85
