"""Claims about labels that are right: a wrapped forest on made data without a wrong label, and with one in five.

    python benchmarks/overlap.py [--rows 300 600 1500] [--seeds 10] [--save]

Classes that overlap, skewed columns, two moons that run into each other, and labels without any signal. The rate is
what the reference models put the share of wrong labels at; claimed, how often its interval leaves out 0; suspects,
labels that
are called more probably wrong than right. "wheel" and "steps" are the cases that no labels can tell apart: where one
label in ten contradicts the features wherever one looks, it may be wrong as well as rare.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier

from selfpaced import SelfPacedClassifier

RESULT = Path(__file__).parent / "results" / "overlap.md"


def drawn(rng, logits):
    return (rng.random(len(logits)) < 1 / (1 + np.exp(-logits))).astype(int)


def line(rng, n):
    X = rng.standard_normal((n, 5))
    return X, drawn(rng, 1.5 * X[:, 0] - X[:, 1])


def clouds(rng, n):
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, 5)) + 1.2 * y[:, None] * np.array([1, 1, 0, 0, 0]), y


def product(rng, n):
    X = rng.standard_normal((n, 6))
    return X, drawn(rng, 1.5 * X[:, 0] * X[:, 1] + X[:, 2])


def skewed(rng, n):
    X = rng.exponential(size=(n, 5))
    return X, drawn(rng, 2 * np.log(X[:, 0]) - X[:, 1] - 1)


def moons(rng, n):
    return make_moons(n, noise=0.4, random_state=int(rng.integers(2**31)))


def three(rng, n):
    y = rng.integers(0, 3, n)
    return rng.standard_normal((n, 4)) + 1.2 * np.eye(3, 4)[y], y


def nothing(rng, n):
    return rng.standard_normal((n, 5)), rng.integers(0, 2, n)


def wheel(rng, n):
    X = rng.standard_normal((n, 4))
    return X, drawn(rng, 1.5 * ((X[:, :2] ** 2).sum(axis=1) - 1.4))


def steps(rng, n):
    X = rng.standard_normal((n, 4))
    p = np.select([X[:, 0] < -0.4, X[:, 0] < 0.4], [0.1, 0.5], 0.9)
    return X, (rng.random(n) < p).astype(int)


KINDS = (line, clouds, product, skewed, moons, three, nothing, wheel, steps)


def rows(sizes, seeds):
    for kind in KINDS:
        for n in sizes:
            for share in (0.0, 0.2):
                found = [one(kind, n, share, seed) for seed in range(seeds)]
                rate, low, high, many, right = np.array(found).T
                held = np.mean((low <= share) & (share <= high))
                figures = [f"{rate.min():.2f} to {rate.max():.2f}", f"{np.mean(low > 0):.0%}", f"{held:.0%}"]
                figures += [f"{np.median(many):.0f} ({many.min():.0f} to {many.max():.0f})"]
                figures += [f"{right.sum() / many.sum():.2f}" if share and many.any() else ""]
                yield f"| {kind.__name__} | {n} | {share:.0%} | " + " | ".join(figures) + " |"


def table(kind, n, share, seed):
    """Rows, given labels, and which of these are wrong."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    X, y = kind(rng, n)
    k, wrong = int(y.max()) + 1, rng.random(n) < share
    return X, np.where(wrong, (y + rng.integers(1, k, n)) % k, y), wrong


def one(kind, n, share, seed):
    """Rate, interval, number of suspects, and how many of these are wrong."""
    X, given, wrong = table(kind, n, share, seed)
    model = SelfPacedClassifier(RandomForestClassifier(50, random_state=0)).fit(X, given)
    suspected = model.sample_noise_ >= 0.5
    return model.noise_rate_, *model.noise_rate_interval_, suspected.sum(), (suspected & wrong).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 600, 1500])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    doc, sizes = __doc__.split("\n\n"), " ".join(map(str, args.rows))
    text = ["# Claims about labels that are right", "", doc[2].strip(), ""]
    text += [f"`python benchmarks/overlap.py --rows {sizes} --seeds {args.seeds} --save`", ""]
    text += ["| data | rows | wrong | rate | claimed | interval holds the truth | suspects, median | precision |"]
    text += ["|---" * 8 + "|", *rows(args.rows, args.seeds), ""]
    print("\n".join(text))
    if args.save:
        RESULT.write_text("\n".join(text))


if __name__ == "__main__":
    main()
