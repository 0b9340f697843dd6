"""Which handwritten digits are hardest to cluster, and in which view are they unusual?

Clusters the UCI digits from six views at once (or, without the data directory, scikit-learn's 8 x 8 digits from
four), then draws the samples of least and of most weight, each with its weight in every view, and the mean weight
of every digit in every view.

    SELFPACED_DATA=... python examples/clustering_hardest_digits.py [picture.png]
"""

from __future__ import annotations

import os
import sys
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.datasets import make_multiview_digits

LONG = {
    "fou": "Fourier",
    "fac": "profiles",
    "kar": "Karhunen-Loeve",
    "pix": "pixels",
    "zer": "Zernike",
    "mor": "morphology",
}


def load() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Views, true digits and images to look at."""
    if os.environ.get("SELFPACED_DATA"):
        from selfpaced_experiments.data import load_mfeat

        data = load_mfeat()
        return data.views, data.target, data.views["pix"].reshape(-1, 16, 15)
    data = make_multiview_digits()
    return data.views, data.target, data.views["pixels"].reshape(-1, 8, 8)


def name_clusters(target: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The digit that every sample's cluster mostly holds, under the best one-to-one naming."""
    digits, clusters = linear_sum_assignment(contingency_matrix(target, labels), maximize=True)
    digit_of = np.empty(len(clusters), int)
    digit_of[clusters] = digits
    return digit_of[labels]


def draw_sample(
    image_axis: Any, bar_axis: Any, image: np.ndarray, weights: np.ndarray, title: str, wrong: bool
) -> None:
    image_axis.imshow(image, cmap="gray_r")
    image_axis.set_title(title, fontsize=8, color="crimson" if wrong else "black", pad=2)
    image_axis.axis("off")
    bar_axis.bar(range(len(weights)), weights, color=[f"C{v}" for v in range(len(weights))], width=0.9)
    bar_axis.set(ylim=(0, 1), xticks=[], yticks=[])
    for side in ("top", "right", "left"):
        bar_axis.spines[side].set_visible(False)


def draw(model: SelfPacedMultiViewKMeans, target: np.ndarray, images: np.ndarray, path: str) -> None:
    found = name_clusters(target, model.labels_)
    order = np.argsort(model.sample_weight_.mean(axis=1))
    names = [LONG.get(name, name) for name in model.view_names_]
    easiest = [order[target[order] == digit][-1] for digit in range(10)]
    figure = plt.figure(figsize=(10, 9))
    figure.text(0.5, 0.965, "Least weight: the hardest digits (red: true digit → cluster it fell into)", ha="center")
    figure.text(0.5, 0.637, "Most weight: the easiest of every digit", ha="center")
    for samples, top in [(order[:10], 0.95), (order[10:20], 0.80), (easiest, 0.625)]:
        grid = figure.add_gridspec(2, 10, height_ratios=[3, 1], hspace=0.12, top=top - 0.02, bottom=top - 0.13)
        for column, sample in enumerate(samples):
            wrong = found[sample] != target[sample]
            title = f"{target[sample]} → {found[sample]}" if wrong else f"{target[sample]}"
            axes = figure.add_subplot(grid[0, column]), figure.add_subplot(grid[1, column])
            draw_sample(*axes, images[sample], model.sample_weight_[sample], title, wrong)
    handles = [plt.Rectangle((0, 0), 1, 1, color=f"C{v}") for v in range(len(names))]
    figure.legend(
        handles, names, loc="center", bbox_to_anchor=(0.5, 0.465), ncols=len(names), fontsize=9, frameon=False
    )
    table = np.stack([model.sample_weight_[target == digit].mean(axis=0) for digit in range(10)])
    axis = figure.add_subplot(figure.add_gridspec(1, 1, top=0.42, bottom=0.07, left=0.16)[0])
    axis.imshow(table.T, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (digit, view), value in np.ndenumerate(table):
        axis.text(digit, view, f"{value:.2f}", ha="center", va="center", fontsize=8, color="w" if value < 0.6 else "k")
    axis.set(xticks=range(10), yticks=range(len(names)), yticklabels=names, xlabel="digit")
    axis.set_title("Mean weight of every digit in every view", fontsize=10)
    figure.savefig(path, dpi=70)


def main() -> None:
    views, target, images = load()
    model = SelfPacedMultiViewKMeans(n_clusters=10, random_state=0).fit(views)
    print(model.termination_)
    print(f"adjusted Rand index {adjusted_rand_score(target, model.labels_):.3f}")
    wrong = name_clusters(target, model.labels_) != target
    order = np.argsort(model.sample_weight_.mean(axis=1))
    print(f"in a wrong cluster: {wrong.mean():.1%} of all, {wrong[order[:100]].mean():.0%} of the 100 of least weight")
    print("mean weight per view:", dict(zip(model.view_names_, model.view_weight_.round(2).tolist(), strict=True)))
    draw(model, target, images, sys.argv[1] if len(sys.argv) > 1 else "clustering_hardest_digits.png")


if __name__ == "__main__":
    main()
