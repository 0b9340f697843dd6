"""Figure 1 of the paper: the latent loss of every rule, and its weight.

python examples/figure_1_rules.py [out.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from selfpaced.pacing import lam_at
from selfpaced.regularizers import get, relative

RULES = ["huber", "cauchy", "l1l2", "welsch", "hard", "mixture"]


def draw():
    loss = np.linspace(0, 5, 500)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(loss, loss, color="0.6", lw=1)
    right.axhline(1, color="0.6", lw=1)
    for name in RULES:
        rule = relative(get(name))
        lam = lam_at(rule, 1.0)  # every rule gives a loss of 1 half its weight: so they can be compared
        (line,) = left.plot(loss, rule.latent(loss, lam))
        right.plot(loss, rule.weight(loss, lam), color=line.get_color(), label=name)
    left.annotate("the loss itself", (1.75, 1.85), rotation=46, color="0.5", fontsize=8, ha="center")
    left.set(title="latent loss $\\phi$", xlabel="loss", ylim=(0, 3.2), xlim=(0, 5))
    right.set(title="weight $\\sigma = d\\phi / d\\,$loss", xlabel="loss", ylim=(0, 1.05), xlim=(0, 5))
    right.legend(frameon=False, fontsize=8, ncols=2, loc="upper right", bbox_to_anchor=(1, 0.97))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    draw().savefig(sys.argv[1] if len(sys.argv) > 1 else "figure_1_rules.png", dpi=130)


if __name__ == "__main__":
    main()
