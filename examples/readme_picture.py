"""The picture of the README: a line among outliers, and a classifier under wrong labels. Default settings throughout.

python examples/readme_picture.py [out.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from selfpaced import SelfPacedLinearRegression, SelfPacedLogisticRegression

GREY, BLUE = "#8c8c8c", "#0b62c4"
RATES, SEEDS = (0.0, 0.1, 0.2, 0.3, 0.4), range(8)


def dirty_line(seed=0, n=120, share=0.35):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, n))
    y = 1 + 0.5 * x + rng.normal(0, 0.35, n)
    spoiled = rng.random(n) < share * (x > 4) * 1.6
    y[spoiled] -= rng.uniform(3, 7, spoiled.sum())
    return x[:, None], y


def accuracy(rate, seed):
    """Plain and self-paced accuracy on clean held-out labels, trained on labels flipped at this rate."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scale = StandardScaler().fit(X_train)
    flipped = np.random.default_rng([seed, 1]).random(y_train.size) < rate
    y_noisy = np.where(flipped, 1 - y_train, y_train)
    models = LogisticRegression(max_iter=1000), SelfPacedLogisticRegression(random_state=seed)
    return [m.fit(scale.transform(X_train), y_noisy).score(scale.transform(X_test), y_test) for m in models]


def draw():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained", gridspec_kw={"wspace": 0.05})
    X, y = dirty_line()
    plain, paced = LinearRegression().fit(X, y), SelfPacedLinearRegression().fit(X, y)
    dots = left.scatter(X[:, 0], y, c=paced.sample_weight_, cmap="cividis", s=18, vmin=0, vmax=1)
    ends = np.array([[0.0], [10.0]])
    left.plot(ends, plain.predict(ends), color=GREY, ls="--", label="LinearRegression")
    left.plot(ends, paced.predict(ends), color=BLUE, lw=2, label="SelfPacedLinearRegression")
    figure.colorbar(dots, ax=left, label="weight in the fit", pad=0.01)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    left.set(title="A line among outliers", xlabel="x", ylabel="y")

    scores = 100 * np.array([[accuracy(rate, seed) for seed in SEEDS] for rate in RATES])
    mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(len(SEEDS))
    for column, (label, color, style) in enumerate(
        [("LogisticRegression", GREY, "--"), ("SelfPacedLogisticRegression", BLUE, "-")]
    ):
        noise = 100 * np.array(RATES)
        right.plot(noise, mean[:, column], color=color, ls=style, lw=2, marker="o", ms=4, label=label)
        low, high = mean[:, column] - error[:, column], mean[:, column] + error[:, column]
        right.fill_between(noise, low, high, color=color, alpha=0.15, lw=0)
    right.legend(frameon=False, fontsize=8, loc="lower left")
    right.set(title="Breast cancer data, some labels wrong", xlabel="wrong labels in training, %")
    right.set_ylabel("accuracy on clean labels, %")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    for rate, row in zip(RATES, mean, strict=True):
        print(f"{rate:.0%} wrong labels: plain {row[0]:.1f} %, self-paced {row[1]:.1f} % ({len(SEEDS)} splits)")
    return figure


def main():
    draw().savefig(sys.argv[1] if len(sys.argv) > 1 else "readme.png", dpi=130)


if __name__ == "__main__":
    main()
