"""The paper's figures, drawn from runs: every curve is also kept as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfpaced.pacing import Fixed, Geometric, Stages
from selfpaced.regularizers import get
from selfpaced.solver import Solution, Stage, alternate
from selfpaced_experiments.results import Figure

__all__ = ["COLOURS", "canvas", "draw_half_quadratic", "draw_losses", "draw_tendency", "draw_toy", "store"]

Series = dict[str, dict[str, tuple[float, ...]]]

#: One colour for each rule in every figure, chosen to be told apart by colour-blind readers (Okabe and Ito).
COLOURS = {
    "hard": "#000000",
    "mixture": "#E69F00",
    "huber": "#56B4E9",
    "l1l2": "#CC79A7",
    "cauchy": "#009E73",
    "welsch": "#D55E00",
    "plain": "#999999",
}
NAMES = {"l1l2": "L1-L2", "huber": "Huber", "cauchy": "Cauchy", "welsch": "Welsch", "mixture": "mixture"}


@contextmanager
def canvas(width: float, height: float, columns: int, **layout: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes in the house style, without touching matplotlib's global state."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "selfpaced[plot]"') from error
    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "svg.hashsalt": "selfpaced",
        "svg.fonttype": "none",
    }
    with matplotlib.rc_context(style):
        figure = Canvas(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, columns, **layout)
        yield figure, axes


def store(figure: Any, directory: Path, key: str) -> tuple[str, ...]:
    """Write PNG and SVG; the SVG carries no date, so that the same figure is the same file."""
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / f"{key}.png", dpi=120, metadata={"Software": None})
    figure.savefig(directory / f"{key}.svg", metadata={"Date": None, "Creator": None})
    return f"{key}.png", f"{key}.svg"


def _log_ticks(axes: Any, ticks: tuple[float, ...]) -> None:
    """Plain numbers on a logarithmic x axis."""
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in np.ravel(values))


def draw_losses(directory: Path) -> Figure:
    """Figure 1: what the latent loss does to the loss, and the weight that comes with it."""
    loss = np.linspace(0.0, 4.0, 201)
    lams = (0.3, 0.6, 1.0, 2.0)
    rule = get("cauchy")
    series: Series = {"x": {"loss": _floats(loss[::10])}}
    with canvas(8.6, 3.4, 2) as (figure, (left, right)):
        left.plot(loss, loss, color="black", lw=1.2, label="loss itself")
        right.axhline(1.0, color="black", lw=1.2, label="plain fit")
        for lam, shade in zip(lams, ("#b7e0d3", "#6fc3a8", "#2f9e7a", "#00573e"), strict=True):
            phi, weight = rule.latent(loss, lam), rule.weight(loss, lam)
            left.plot(loss, phi, color=shade, label=f"λ = {lam:g}")
            right.plot(loss, weight, color=shade, label=f"λ = {lam:g}")
            series[f"lam={lam:g}"] = {"latent": _floats(phi[::10]), "weight": _floats(weight[::10])}
        left.set(xlabel="loss", ylabel="latent loss", title="Cauchy: latent loss", ylim=(0, 3.0))
        right.set(xlabel="loss", ylabel="weight", title="its slope: the weight", ylim=(0, 1.08))
        left.legend(loc="upper left")
        right.legend(loc="upper right", bbox_to_anchor=(1.0, 0.93))
        files = store(figure, directory, "figure-1")
    return Figure(
        key="figure-1",
        title="Figure 1: latent loss and weight",
        caption=(
            "The Cauchy rule. Small losses pass almost unchanged (the black line is the loss itself), large ones are "
            "flattened; the slope of that curve is the weight a sample gets. A larger pace λ bends later, so harder "
            "samples count. At any λ the alternation minimises the left curve."
        ),
        files=files,
        series=series,
    )


class _Line:
    """A straight line through noisy points by weighted least squares."""

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        self.X, self.y = np.column_stack([np.ones_like(x), x]), y

    def fit(self, weights: Any, previous: Any) -> NDArray[np.float64]:  # noqa: ARG002
        v = np.ones(len(self.y)) if weights is None else weights
        gram = self.X.T @ (v[:, None] * self.X) + 1e-9 * np.eye(2)
        return np.linalg.solve(gram, self.X.T @ (v * self.y))

    def losses(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        return (self.y - self.X @ model) ** 2

    def penalty(self, model: Any) -> float:  # noqa: ARG002
        return 0.0


def _toy() -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, slice]]:
    """Easy points close to a line, hard ones far along it with more noise, outliers off it."""
    rng = np.random.default_rng(3)
    easy_x, hard_x, far_x = rng.uniform(0, 2, 30), rng.uniform(2.5, 5, 18), rng.uniform(1.5, 4.5, 8)
    x = np.concatenate([easy_x, hard_x, far_x])
    noise = np.concatenate([0.15 * rng.standard_normal(30), 0.45 * rng.standard_normal(18), rng.uniform(3.0, 4.5, 8)])
    parts = {"easy": slice(0, 30), "hard": slice(30, 48), "outlier": slice(48, 56)}
    return x, 0.5 + 0.8 * x + noise, parts


def draw_toy(directory: Path) -> Figure:
    """Figure 2a: a fixed small pace throws hard samples away, a growing one lets them in before the outliers."""
    x, y, parts = _toy()
    problem = _Line(x, y)
    start = _Line(x[parts["easy"]], y[parts["easy"]]).fit(None, None) + np.array([0.0, -0.35])
    trace: list[tuple[float, dict[str, float]]] = []

    def record(stage: Stage, solution: Solution[Any]) -> None:
        relative = get("welsch").relative_weight(solution.losses, stage.lam)
        trace.append((stage.lam, {name: float(relative[where].mean()) for name, where in parts.items()}))

    fixed = alternate(problem, "welsch", Fixed(0.15), initial=start, inner=200)
    pace = Geometric(mu=1.08, lam=0.15, stop=Stages(50))
    alternate(problem, "welsch", pace, initial=start, callback=record)
    good = alternate(problem, "welsch", Geometric(mu=1.08, lam=0.15, stop=Stages(27)), initial=start)
    series: Series = {"lam": {"lam": _floats([lam for lam, _ in trace])}}
    series |= {name: {"mean weight": _floats([means[name] for _, means in trace])} for name in parts}
    with canvas(9.2, 3.6, 2) as (figure, (left, right)):
        _toy_data(left, x, y, parts, {"plain": problem.fit(None, None), "fixed": fixed.model, "path": good.model})
        for name, (marker, colour) in _TOY.items():
            right.plot(
                series["lam"]["lam"],
                series[name]["mean weight"],
                color=colour,
                marker=marker,
                markevery=6,
                label=name,
            )
        right.axvline(good.lam, color="black", lw=0.8, ls=":")
        right.annotate("the line on the left", (good.lam, 0.5), xytext=(4, 0), textcoords="offset points", fontsize=8)
        right.set(xscale="log", xlabel="pace λ", ylabel="mean weight", title="who takes part, along the path")
        _log_ticks(right, (0.2, 0.5, 1.0, 2.0, 5.0))
        right.legend(loc="upper left")
        files = store(figure, directory, "figure-2a")
    return Figure(
        key="figure-2a",
        title="Figure 2a: easy samples, hard samples, outliers",
        caption=(
            "A line fitted with Welsch weights from the same rough start. At a fixed small λ (half-quadratic "
            "optimisation) only points near the start ever count. Along the path the easy points enter first, the "
            "hard ones next, the outliers last: where the path stops decides whether they enter at all."
        ),
        files=files,
        series=series,
    )


_TOY = {"easy": ("^", "#009E73"), "hard": ("D", "#0072B2"), "outlier": ("*", "#D55E00")}


def _toy_data(axes: Any, x: Any, y: Any, parts: Mapping[str, slice], lines: Mapping[str, Any]) -> None:
    for name, (marker, colour) in _TOY.items():
        axes.scatter(x[parts[name]], y[parts[name]], marker=marker, s=26, color=colour, label=name, lw=0)
    ends = np.array([0.0, 5.0])
    styles = {
        "plain": ("plain fit", "#999999", "--"),
        "fixed": ("fixed λ = 0.15", "#CC79A7", "-."),
        "path": ("path, stopped at the dotted line", "black", "-"),
    }
    for key, (label, colour, style) in styles.items():
        axes.plot(ends, lines[key][0] + lines[key][1] * ends, color=colour, ls=style, lw=1.4, label=label)
    axes.set(xlabel="x", ylabel="y", title="a line with hard points and outliers", ylim=(-0.8, 10.2))
    axes.legend(loc="upper left", ncols=2, fontsize=7.5)


def draw_half_quadratic(directory: Path, series: Series, note: str = "") -> Figure:
    """Figure 2b: fixed-lam half-quadratic optimisation, cold and warm, against the path, over lam."""
    lam = np.array(series["lam"]["lam"])
    looks = {
        "half-quadratic, cold start": ("#CC79A7", "s"),
        "half-quadratic, warm start": ("#0072B2", "o"),
        "self-paced path": ("#D55E00", "^"),
    }
    with canvas(6.4, 3.8, 1) as (figure, axes):
        for name, (colour, marker) in looks.items():
            curve = series[name]
            axes.plot(lam, curve["mean"], color=colour, marker=marker, ms=4, label=name)
            axes.fill_between(lam, curve["low"], curve["high"], color=colour, alpha=0.12, lw=0)
        axes.axhline(0.0596, color="black", lw=0.8, ls=":", label="paper's SPL-IR-welsch, 0.0596")
        axes.set(xscale="log", yscale="log", xlabel="pace λ", ylabel="RMSE", title="Welsch, fixed λ against the path")
        _log_ticks(axes, (0.2, 0.5, 1.0, 2.0, 5.0))
        axes.legend(loc="upper right", bbox_to_anchor=(0.93, 0.9))
        files = store(figure, directory, "figure-2b")
    return Figure(
        key="figure-2b",
        title="Figure 2b: half-quadratic optimisation against the path",
        caption=(
            "Welsch weights on the synthetic matrix. Started cold, a fixed λ fails wherever it is small; started "
            "from the same warm factors as the path it does as well near a good λ. The bands reach from the best to "
            f"the worst realization. {note}"
        ).strip(),
        files=files,
        series=series,
    )


def draw_tendency(directory: Path, series: Series, note: str = "") -> Figure:
    """Figure 3: RMSE and MAE along the path, for each rule, with PRMF as a level."""
    with canvas(9.2, 3.6, 2, sharex=True) as (figure, axes):
        for panel, metric in zip(axes, ("RMSE", "MAE"), strict=True):
            for name in ("mixture", "huber", "l1l2", "cauchy", "welsch"):
                if name in series:
                    values = series[name][metric]
                    stages = np.arange(1, len(values) + 1)
                    panel.plot(stages, values, color=COLOURS[name], label=NAMES[name], lw=1.4)
            panel.axhline(series["PRMF"][metric][0], color="#999999", ls="--", label="PRMF")
            panel.set(xlabel="stage of the path", ylabel=metric, title=f"{metric} along the path", ylim=(0, None))
        axes[1].legend(loc="lower right", ncols=2)
        files = store(figure, directory, "figure-3")
    return Figure(
        key="figure-3",
        title="Figure 3: tendency curves",
        caption=(
            "Error against the true matrix after each stage; the dashed level is PRMF alone. The gain comes early, and "
            "a path that is not stopped gives it back as the outliers enter. "
            f"{note}"
        ).strip(),
        files=files,
        series=series,
    )
