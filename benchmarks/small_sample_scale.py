"""The bias of the truncated sigma in small samples: simulated means against the formula that corrects it.

    python benchmarks/small_sample_scale.py [--quick] [--save]

Normal errors of sigma 1, normal features, three fits: least squares, the S-estimate (the sharpest fit that is ever
measured, it makes half of the residuals small) and the start that the linear model leads upward from there. `raw` is
the sigma before the correction of `selfpaced.residuals.sigma.small_sample`, `used` what the library works with in the
end: raw / formula, but never above the M-scale.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from selfpaced.linear.ascent import robust_start
from selfpaced.linear.squares import build
from selfpaced.linear.start import s_estimate, sensitivity_start
from selfpaced.residuals import residual_scale
from selfpaced.residuals.sigma import sigma_of_fit, small_sample

RESULT = Path(__file__).parent / "results" / "small_sample_scale.md"
ROWS = (20, 50, 100, 200, 400, 1000)
SHARES = (0.0, 0.05, 0.1, 0.2)  # features per row; 0 is one feature
MOST_FEATURES = 80  # the search for a start takes seconds beyond
FITS = ("least squares", "S-estimate", "led upward")


def simulate(n: int, features: int, repeats: int, seed: int) -> np.ndarray:
    """Raw and used sigma of every repetition and fit: shape (repeats, 3, 2)."""
    rng = np.random.default_rng(seed)
    found = np.empty((repeats, len(FITS), 2))
    for row in found:
        squares = build(rng.normal(size=(n, features)), rng.normal(size=n))
        sharp = s_estimate(squares, sensitivity_start(squares)[0])[0]
        led = robust_start(squares, np.random.RandomState(0))[0]
        for cell, b in zip(row, (squares.solve(), sharp, led), strict=True):
            size = np.abs(squares.residuals(b))
            cell[:] = sigma_of_fit(size, None, squares.dof), residual_scale(size, dof=squares.dof).sigma
    return found


def report(quick: bool) -> str:
    lines = ["| rows | coefficients | formula | " + " | ".join(f"{fit}: raw | used" for fit in FITS) + " |"]
    lines.append("|" + "---|" * (3 + 2 * len(FITS)))
    off = dict.fromkeys(FITS, (0.0, 0.0))
    for n in ROWS[:3] if quick else ROWS:
        for features in dict.fromkeys(max(1, round(share * n)) for share in SHARES):
            if features > MOST_FEATURES:
                continue
            repeats = 10 if quick else 60 if n < 300 else 20
            found = simulate(n, features, repeats, seed=n + features)
            mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
            formula = small_sample(n, features + 1)
            cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean.ravel(), error.ravel(), strict=True)]
            lines.append(f"| {n} | {features + 1} | {formula:.2f} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
            for fit, (raw, used) in zip(FITS, mean, strict=True):
                off[fit] = max(off[fit][0], abs(formula / raw - 1)), max(off[fit][1], abs(used - 1))
    lines.append("")
    for fit, (formula_off, used_off) in off.items():
        lines.append(
            f"- {fit}: the formula is off the simulated mean by up to {formula_off:.0%}, the sigma in use is off the "
            f"truth by up to {used_off:.0%}."
        )
    return "\n".join(lines)


WORDS = """
The formula is no fit of the mean: it lies below it, little for many rows and few coefficients, far otherwise.
What it corrects too much the M-scale catches, which is then the sigma in use: the last lines say how far that is from
the truth.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions, small samples")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    text = report(options.quick)
    print(text[text.index("\n\n") :])
    if options.save:
        head = (
            "# The truncated sigma in small samples\n\nPrinted by `python benchmarks/small_sample_scale.py --save`.\n"
        )
        RESULT.write_text(f"{head}{WORDS}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
