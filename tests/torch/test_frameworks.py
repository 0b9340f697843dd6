"""The examples for skorch, Lightning and Hugging Face, run as they are."""

import runpy
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn

from selfpaced.torch import SelfPacedLoss

EXAMPLES = Path(__file__).parents[2] / "examples"
# these packages warn about their own dependencies and about settings that an example does not need
pytestmark = pytest.mark.filterwarnings("ignore")


def example(name):
    return runpy.run_path(str(EXAMPLES / f"torch_{name}.py"))


def test_skorch():
    pytest.importorskip("skorch", reason="skorch is not installed")
    scores, net, X_test = example("skorch")["main"](25)
    assert net.criterion_.phase == "paced"
    assert scores["self-paced"] > scores["cross entropy"] + 0.03
    np.testing.assert_allclose(net.predict_proba(X_test).sum(1), 1.0, rtol=1e-5)


def test_skorch_regression_is_left_as_it_is():
    skorch = pytest.importorskip("skorch", reason="skorch is not installed")
    X = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
    options = {"criterion": SelfPacedLoss, "criterion__criterion": nn.MSELoss(reduction="none"), "criterion__n": 200}
    net = skorch.NeuralNetRegressor(nn.Linear(1, 1), lr=0.1, max_epochs=60, train_split=None, verbose=0, **options)
    net.fit(X, 3 * X)
    assert net.predict(X).max() > 2.0  # a softmax of one column would be 1 everywhere


def test_lightning():
    pytest.importorskip("lightning", reason="lightning is not installed")
    score, module, logged = example("lightning")["main"](25)
    assert module.criterion.phase == "paced"
    assert score > 0.85
    assert "criterion._extra_state" in module.state_dict()
    assert float(logged["pace/rate"]) == pytest.approx(module.criterion.rate)
    assert module.criterion.weights().shape == (1257,)


@pytest.fixture
def make_trainer():
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    return example("hugging_face")["make_trainer"]


def test_hugging_face(make_trainer):
    score, criterion = example("hugging_face")["main"](25)
    assert criterion.phase == "paced"
    assert score > 0.85


def gradient_norms(trainer):
    """The norm of the gradient before every step of the optimizer."""
    norms = []
    step = trainer.create_optimizer().step

    def watched(*args, **kwargs):
        parts = [p.grad.norm() ** 2 for p in trainer.model.parameters() if p.grad is not None]
        norms.append(float(torch.stack(parts).sum().sqrt()))
        return step(*args, **kwargs)

    trainer.optimizer.step = watched
    trainer.train()
    return norms


def test_hugging_face_accumulates_the_gradient_of_the_whole_batch(make_trainer, tmp_path):
    whole = make_trainer(tmp_path, 1, per_device_train_batch_size=128, max_grad_norm=0, max_steps=1)
    parts = make_trainer(
        tmp_path, 1, per_device_train_batch_size=32, gradient_accumulation_steps=4, max_grad_norm=0, max_steps=1
    )
    assert gradient_norms(parts) == pytest.approx(gradient_norms(whole), rel=1e-4)


def test_hugging_face_evaluates_without_counting_and_continues_from_a_checkpoint(make_trainer, tmp_path):
    plain = make_trainer(tmp_path / "plain", 8)
    plain.train()
    saved = {"eval_strategy": "epoch", "save_strategy": "epoch"}
    stopped = make_trainer(tmp_path / "saved", 8, **saved)
    stopped.train()
    assert repr(stopped.model.criterion.history) == repr(plain.model.criterion.history)
    checkpoint = sorted((tmp_path / "saved").glob("checkpoint-*"), key=lambda path: int(path.name[11:]))[3]
    resumed = make_trainer(tmp_path / "resumed", 8, **saved)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert repr(resumed.model.criterion.history) == repr(plain.model.criterion.history)
