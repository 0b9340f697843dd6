"""Draw how wrong labels are told from overlapping classes: the agreement of labels with a network, by its confidence.

python examples/torch_agreement_curve.py docs/images/torch_agreement_curve.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import scale
from torch import nn

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss
from selfpaced.torch.noise_rate import fit_agreement


def looked_at(X, y, epochs):
    """The criterion after some epochs of training."""
    torch.manual_seed(0)
    inputs, labels = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion, optimizer = SelfPacedLoss(n=len(X)), torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            criterion(net(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return criterion


def draw(ax, criterion, title):
    odds, (contradict, agree) = criterion.evidence
    rows = contradict + agree
    seen = rows >= 10
    curve = fit_agreement(np.stack([contradict, agree]), 10)
    ax.scatter(odds[seen], agree[seen] / rows[seen], s=rows[seen] / 3, color="tab:blue", alpha=0.5)
    ax.plot(odds[seen], curve.curve(odds[seen]), color="black")
    ax.axhline(1 - curve.rate, color="tab:red", linestyle=":")
    ax.set(title=title, xlabel="log-odds of the predicted class", ylim=(0, 1.02))
    ax.text(
        0.98,
        0.04,
        f"rate {curve.rate:.0%} ({curve.lower:.0%} to {curve.upper:.0%})",
        ha="right",
        transform=ax.transAxes,
    )


def main():
    options = {"n_informative": 20, "n_classes": 10, "n_clusters_per_class": 2, "flip_y": 0, "random_state": 0}
    overlap = make_classification(8000, 40, class_sep=0.8, **options)
    X, y = load_digits(return_X_y=True)
    noisy, _ = flip_symmetric(y, 0.3, random_state=0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    draw(axes[0], looked_at(*overlap, epochs=10), "classes overlap, every label right")
    draw(axes[1], looked_at(X, noisy, epochs=10), "digits, 30 % of the labels wrong")
    axes[0].set_ylabel("labels that agree")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "torch_agreement_curve.png", dpi=100)


if __name__ == "__main__":
    main()
