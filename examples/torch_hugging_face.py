"""SelfPacedLoss in the Trainer of Hugging Face: a function of outputs and labels.

    python examples/torch_hugging_face.py

The model here is a small network on digits, so that nothing has to be downloaded; for a text classifier the function
is the same.
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


def main(epochs=30):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(scale(X).astype(np.float32), y, test_size=0.3, random_state=0, stratify=y)
    given, _ = flip_symmetric(y, 0.4, random_state=0)
    rows = [{"pixels": row, "labels": int(label)} for row, label in zip(X, given, strict=True)]
    criterion = SelfPacedLoss(n=len(rows))

    def compute_loss(outputs, labels, num_items_in_batch=None):  # noqa: ARG001
        return criterion(outputs["logits"], labels)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=128,
            learning_rate=4e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        )
        torch.manual_seed(0)
        model = Digits()
        Trainer(model, arguments, train_dataset=rows, compute_loss_func=compute_loss).train()
    with torch.no_grad():
        right = model.net(torch.from_numpy(X_test)).argmax(1).numpy() == y_test
    return right.mean(), criterion


if __name__ == "__main__":
    score, criterion = main()
    print(f"{score:.3f}", criterion.termination)
