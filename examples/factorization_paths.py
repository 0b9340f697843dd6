"""Figures 3 and 2b of the paper, drawn from runs: errors along the path, and a fixed pace against the path.

Figure 3: RMSE and MAE after every stage for six rules, without rescue and polish, mean of several realizations; the
dot is where the default would have stopped, the dashed line the L1 start (PRMF), the dotted line a fit to the entries
known to be clean. Figure 2b: half-quadratic optimisation at one fixed lam, from random factors and from the L1 start,
against the path that passes the same lam.

    python examples/factorization_paths.py [figure_3.png [figure_2b.png]]
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from selfpaced import SelfPacedMF
from selfpaced.datasets import make_low_rank
from selfpaced.pacing import Fixed, Geometric, Stages, half_loss
from selfpaced.regularizers import get, relative
from selfpaced.robust import ScaleStop

RULES = ("hard", "mixture", "huber", "l1l2", "cauchy", "welsch")
REALIZATIONS, STAGES = 8, 60
LAMS = (0.3, 0.45, 0.65, 0.9, 1.25, 1.8, 2.5, 3.5, 5.0)


def errors(U: np.ndarray, V: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    off = U @ V.T - truth
    return float(np.sqrt(np.mean(off**2))), float(np.mean(np.abs(off)))


def walk(made: Any, rule: str, mu: float, seed: int, first: float | None = None) -> tuple[np.ndarray, SelfPacedMF]:
    """lam, RMSE, MAE and noise scale after every stage; from half the weight, or from a given lam."""
    rows: list[tuple[float, ...]] = []

    def record(stage: Any, solution: Any) -> None:
        fit = solution.model
        rows.append((stage.lam, *errors(fit.U, fit.V, made.truth), fit.scale))

    pacing = Geometric(mu=mu, lam=first, stop=Stages(STAGES))
    setting = {"center": None, "ridge": 0.005, "rescue": False, "polish": 0}
    model = SelfPacedMF(4, rule, pace=pacing, callback=record, random_state=seed, **setting)
    model.fit(made.data)
    return np.array(rows), model


def oracle(made: Any) -> tuple[float, float]:
    clean = np.where(made.outlier_mask, np.nan, made.data)
    model = SelfPacedMF(4, center=None, random_state=0).fit(clean)
    return errors(model.row_factors_, model.components_.T, made.truth)


def figure_3(target: str) -> None:
    data = [make_low_rank(random_state=41000 + k) for k in range(REALIZATIONS)]
    known = np.mean([oracle(made) for made in data], axis=0)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained", sharex=True)
    starts = []
    for rule in RULES:
        # one stage should mean the same for all: 5 % of lam where the scale is lam^2, 10 % where it is lam
        mu = 1.05 if get(rule).power == 2 else 1.05**2
        walks, stops = [], []
        for k, made in enumerate(data):
            rows, model = walk(made, rule, mu, 800 + k)
            starts.append(errors(model.plain_.row_factors_, model.plain_.components_.T, made.truth))
            open_to = np.array([half_loss(relative(get(rule)), lam) for lam in rows[:, 0]]) / rows[:, 3]
            stops.append(int(np.argmax(open_to >= ScaleStop().ratio)))
            walks.append(rows[:, 1:3])
        mean, stop = np.mean(walks, axis=0), int(np.median(stops))
        for axis, curve in zip(axes, mean.T, strict=True):
            (line,) = axis.plot(np.arange(1, len(curve) + 1), curve, lw=1.6, label=rule)
            axis.plot(stop + 1, curve[stop], "o", ms=5, color=line.get_color())
        print(f"{rule:8s} at its stop: RMSE {mean[stop, 0]:.4f} MAE {mean[stop, 1]:.4f}; at the end {mean[-1, 0]:.4f}")
    for axis, name, start, best in zip(axes, ("RMSE", "MAE"), np.mean(starts, axis=0), known, strict=True):
        axis.axhline(start, color="0.4", ls="--", lw=1, label="PRMF (the start)")
        axis.axhline(best, color="0.4", ls=":", lw=1, label="clean entries known")
        axis.set(xlabel="stage", ylabel=name)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.45, 0.93))
    figure.suptitle(
        f"Errors along the path (figure 3), mean of {REALIZATIONS} matrices; dots: the automatic stop", size=11
    )
    figure.savefig(target, dpi=70)


def figure_2b(target: str) -> None:
    count = max(REALIZATIONS // 2, 2)
    cold, warm, path = (np.empty((count, len(LAMS))) for _ in range(3))
    for k in range(count):
        made = make_low_rank(random_state=42000 + k)
        for table, init in ((cold, "random"), (warm, "warm")):
            for j, lam in enumerate(LAMS):
                setting = {"center": None, "ridge": 0.005, "rescue": False, "polish": 0, "max_sweeps": 100}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # cold runs that are not done after 100 sweeps
                    model = SelfPacedMF(4, "welsch", pace=Fixed(lam), init=init, random_state=900 + k, **setting)
                    model.fit(made.data)
                table[k, j] = errors(model.row_factors_, model.components_.T, made.truth)[0]
        rows, _ = walk(made, "welsch", 1.06, 900 + k, first=LAMS[0])
        path[k] = np.interp(LAMS, rows[:, 0], rows[:, 1])
    figure, axis = plt.subplots(figsize=(6.2, 4), layout="constrained")
    for table, label, style in (
        (cold, "half-quadratic, random start", "s--"),
        (warm, "half-quadratic, L1 start", "^--"),
        (path, "self-paced path through lam", "o-"),
    ):
        axis.plot(LAMS, table.mean(axis=0), style, ms=5, lw=1.5, label=label)
        print(f"{label:30s}", " ".join(f"{value:.4f}" for value in table.mean(axis=0)))
    axis.set(xscale="log", yscale="log", xlabel="lam (Welsch)", ylabel="RMSE")
    axis.set_xticks(LAMS, [str(lam) for lam in LAMS], fontsize=8)
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
    axis.set_title(f"A fixed pace against the path (figure 2b), mean of {count} matrices", fontsize=10)
    figure.savefig(target, dpi=70)


def main() -> None:
    targets = [*sys.argv[1:], *("factorization_figure_3.png", "factorization_figure_2b.png")[len(sys.argv) - 1 :]]
    figure_3(targets[0])
    figure_2b(targets[1])


if __name__ == "__main__":
    main()
