"""SelfPacedLoss in PyTorch Lightning: one line of the module; its state is in the checkpoint, its epochs are logged.

python examples/torch_lightning.py
"""

import lightning
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss, WithIndex


class Digits(lightning.LightningModule):
    def __init__(self, rows):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.criterion = SelfPacedLoss(n=rows, on_epoch=self.log_pace)  # was: nn.CrossEntropyLoss()

    def log_pace(self, record):
        self.log_dict({f"pace/{name}": record[name] for name in ("agreement", "rate", "trusted")})

    def training_step(self, batch, _):
        inputs, labels, ids = batch
        return self.criterion(self.net(inputs), labels, ids)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 2e-3)


def main(epochs=30):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(scale(X).astype(np.float32), y, test_size=0.3, random_state=0, stratify=y)
    given, _ = flip_symmetric(y, 0.4, random_state=0)
    torch.manual_seed(0)
    rows = WithIndex(TensorDataset(torch.from_numpy(X), torch.from_numpy(given)))
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    module = Digits(len(rows))
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", devices=1, **quiet)
    trainer.fit(module, DataLoader(rows, batch_size=128, shuffle=True))
    with torch.no_grad():
        right = module.net(torch.from_numpy(X_test)).argmax(1).numpy() == y_test
    return right.mean(), module, trainer.logged_metrics


if __name__ == "__main__":
    score, module, _ = main()
    print(f"{score:.3f}", module.criterion.termination)
