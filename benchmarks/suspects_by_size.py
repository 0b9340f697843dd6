"""How many suspects a table has, whatever its size and the deal of the sample: against the truth.

    python benchmarks/suspects_by_size.py [--save]

The rows of `benchmarks/engines.py`, a fifth of whose labels are flipped, and whose clean probabilities are known. Of
more than 20,000 rows a sample of 10,000 decides, and the noise channel is made of their scores by fits that have not
seen them. The full fit may have coefficients several times as large: at a pace the latent loss hardly fixes their
size. "as the fold" is what comes of using its channel nevertheless, "suspects" is what comes of the channel in the
units of the full fit.
"""

import argparse
from pathlib import Path

import numpy as np
from engines import chunks

from selfpaced import SelfPacedLogisticRegression
from selfpaced.linear.selection import FoldVerdict

RESULT = Path(__file__).parent / "results" / "suspects_by_size.md"
SIZES, SEEDS = (50_000, 200_000, 500_000), range(4)


def known(X, y, d=20):
    """Probability of being wrong by what the labels were drawn with."""
    rng = np.random.default_rng(0)
    np.linalg.qr(rng.standard_normal((d, d)))  # as `chunks` draws
    clean = 1 / (1 + np.exp(-X @ rng.standard_normal(d) * 4 / 3))
    given = np.where(y == 1, clean, 1 - clean)
    return 0.2 * (1 - given) / (0.2 * (1 - given) + 0.8 * given)


def count(X, y, seed, as_large):
    kept = FoldVerdict.as_large
    FoldVerdict.as_large = kept if as_large else lambda verdict, _: verdict
    try:
        model = SelfPacedLogisticRegression(random_state=seed).fit(X, y)
    finally:
        FoldVerdict.as_large = kept
    return model, int((model.judgement_.wrong >= 0.5).sum())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    save = parser.parse_args().save
    lines = [
        "| rows | random_state | pace | rate | suspects | as the fold | the truth |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in SIZES:
        X, y = next(iter(chunks(n)))
        truth = int((known(X, y) >= 0.5).sum())
        for seed in SEEDS:
            model, found = count(X, y, seed, True)
            before = count(X, y, seed, False)[1]
            pace = "plain" if np.isinf(model.lam_) else f"{model.lam_:.3g}"
            lines.append(f"| {n:,} | {seed} | {pace} | {model.noise_rate_:.3f} | {found:,} | {before:,} | {truth:,} |")
            print(lines[-1], flush=True)
    if save:
        head = f"# {__doc__.splitlines()[0]}\n\n`python benchmarks/suspects_by_size.py --save`\n\n"
        RESULT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
