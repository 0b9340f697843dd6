"""The bias of sigma in small samples, by simulation: of fits that have settled, and of the sharpest ones.

    python benchmarks/small_sample_scale.py [--quick] [--save]

Normal errors of sigma 1, normal features, three fits: least squares, the S-estimate (the sharpest fit that is ever
measured, it makes half of the residuals small) and the start that the linear model leads upward from there. `sigma` is
what `selfpaced.robust.residual_scale` gives, which users see of a fit that has settled. A path that starts at an
S-estimate opens as far as `largest_sigma` allows: the truncated sigma over `sharpness`, which has to be below nearly
every `raw` one of an S-estimate, and never above the M-scale.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from selfpaced.linear.ascent import robust_start
from selfpaced.linear.squares import build
from selfpaced.linear.start import s_estimate, sensitivity_start
from selfpaced.robust import residual_scale
from selfpaced.robust.sigma import largest_sigma, sharpness, sigma_of_fit

RESULT = Path(__file__).parent / "results" / "small_sample_scale.md"
ROWS = (20, 50, 100, 200, 400, 1000)
SHARES = (0.0, 0.05, 0.1, 0.2)  # features per row; 0 is one feature
MOST_FEATURES = 80  # the search for a start takes seconds beyond
FITS = ("least squares", "S-estimate", "led upward")


def simulate(n: int, features: int, repeats: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sigma of every repetition and fit, and of the S-estimates the raw and the largest one."""
    rng = np.random.default_rng(seed)
    found, sharp = np.empty((repeats, len(FITS))), np.empty((repeats, 2))
    for row, extremes in zip(found, sharp, strict=True):
        squares = build(rng.normal(size=(n, features)), rng.normal(size=n))
        s_fit = s_estimate(squares, sensitivity_start(squares)[0])[0]
        led = robust_start(squares, np.random.RandomState(0))[0]
        sizes = [np.abs(squares.residuals(b)) for b in (squares.solve(), s_fit, led)]
        row[:] = [residual_scale(size, dof=squares.dof).sigma for size in sizes]
        extremes[:] = sigma_of_fit(sizes[1], None, squares.dof), largest_sigma(sizes[1], dof=squares.dof).sigma
    return found, sharp


def report(quick: bool) -> str:
    lines = [
        "| rows | coefficients | " + " | ".join(f"{fit}: sigma" for fit in FITS) + " | raw, 5 % | sharpness | largest |"
    ]
    lines.append("|" + "---|" * (5 + len(FITS)))
    off = dict.fromkeys(FITS, 0.0)
    for n in ROWS[:3] if quick else ROWS:
        for features in dict.fromkeys(max(1, round(share * n)) for share in SHARES):
            if features > MOST_FEATURES:
                continue
            found, sharp = simulate(n, features, 10 if quick else 60 if n < 300 else 20, seed=n + features)
            mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
            cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]
            cells += [f"{np.quantile(sharp[:, 0], 0.05):.2f}", f"{sharpness(n, features + 1):.2f}"]
            lines.append(f"| {n} | {features + 1} | " + " | ".join(cells) + f" | {sharp[:, 1].mean():.2f} |")
            print(lines[-1], flush=True)
            if n >= 100:
                off |= {fit: max(off[fit], abs(m - 1)) for fit, m in zip(FITS, mean, strict=True)}
    lines.append("")
    for fit, most in off.items():
        lines.append(f"- {fit}: with 100 rows or more sigma is off the truth by up to {most:.0%}.")
    return "\n".join(lines)


WORDS = """
`sigma` of settled fits is what users see. S-estimates of many coefficients are too sharp for it, which is why a path
that starts at one opens as far as the column `largest` says.
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
