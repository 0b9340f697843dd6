"""SelfPacedLoss in the Trainer of Hugging Face: accumulation, evaluation and checkpoints as with its own loss.

    python examples/torch_hugging_face.py

The model here is a small network on digits, so that nothing has to be downloaded; for a text classifier the lines are
the same. The criterion is an attribute of the model: it is in the Trainer's checkpoints, and in eval mode with it.
"""

import tempfile

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss


class Digits(nn.Module):
    """A model of the kind the Trainer takes: keyword arguments in, a dict with logits out."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, pixels, labels=None):  # noqa: ARG002
        return {"logits": self.net(pixels)}


def make_trainer(folder, epochs, **options):
    """The Trainer, and the test part."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(scale(X).astype(np.float32), y, test_size=0.3, random_state=0, stratify=y)
    given, _ = flip_symmetric(y, 0.4, random_state=0)
    rows = [{"pixels": row, "labels": int(label)} for row, label in zip(X, given, strict=True)]
    test = [{"pixels": row, "labels": int(label)} for row, label in zip(X_test, y_test, strict=True)]
    torch.manual_seed(0)
    model = Digits()
    model.criterion = SelfPacedLoss(n=len(rows), reduction="sum")

    def compute_loss(outputs, labels, num_items_in_batch=None):
        # The Trainer counts the rows of all accumulated batches, and does not divide the loss again.
        rows = len(labels) if num_items_in_batch is None else num_items_in_batch
        return model.criterion(outputs["logits"], labels) / rows

    arguments = {
        "num_train_epochs": epochs,
        "per_device_train_batch_size": 128,
        "learning_rate": 4e-3,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 0,
        **options,
    }
    return Trainer(
        model,
        TrainingArguments(str(folder), **arguments),
        train_dataset=rows,
        eval_dataset=test,
        compute_loss_func=compute_loss,
    )


def main(epochs=30):
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder, epochs)
        trainer.train()
        predicted = trainer.predict(trainer.eval_dataset)
    right = predicted.predictions.argmax(1) == predicted.label_ids
    return right.mean(), trainer.model.criterion


if __name__ == "__main__":
    score, criterion = main()
    print(f"{score:.3f}", criterion.termination)
