"""The page's figures as Vega-Lite specifications: plain data, drawn by the browser.

Colours, fonts and grid lines are in the Vega config of the page, light or dark. Every figure is as wide as its
container.
"""

from __future__ import annotations

from typing import Any

from ..formatting import number, percent
from ..path import BINS
from .data import Grid, Histogram, History, PathStep, Summary, ViewWeights

Spec = dict[str, Any]
# display: ticks of weights
_WEIGHT_AXIS = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f"}


def charts(summary: Summary) -> dict[str, Spec]:
    """Every figure of a page by the id of its element."""
    out: dict[str, Spec] = {}
    path, noun = summary.path, summary.noun
    if any(step.score is not None for step in path):
        out["chart-score"] = score_chart(path, summary.score_name)
    if summary.scatter:
        out["chart-scatter"] = scatter_chart(summary.scatter)
    if summary.weights is not None:
        out["chart-weights"] = weights_chart(summary.weights, noun)
    if summary.views:
        out["chart-view-means"] = view_means(summary.views)
        out["chart-view-weights"] = view_weights(summary.views)
    if summary.grid is not None:
        if summary.grid.residual:
            out["chart-residual"] = grid_chart(summary.grid, "residual", "mean |residual|")
        out["chart-entry-weight"] = grid_chart(summary.grid, "weight", "mean weight")
    if summary.history is not None:
        for position, name in enumerate(summary.history.series):
            out[f"chart-history-{position}"] = history_chart(summary.history, name)
    return out


def _spec(height: int, data: list[dict[str, Any]], **rest: Any) -> Spec:
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": data},
        **rest,
    }


def lam_text(step: PathStep) -> str:
    """The pace as an axis label."""
    return "plain" if step.plain else step.label if step.lam is None else number(step.lam)


def trust_text(step: PathStep) -> str:
    """A candidate in words: how much of the data it trusts."""
    return (
        "plain"
        if step.plain
        else lam_text(step)
        if step.mean_weight is None
        else f"trusts {percent(step.mean_weight, 0)}"
    )


def score_chart(path: tuple[PathStep, ...], title: str) -> Spec:
    """The score of every candidate along the path, with its standard error."""
    data = []
    for step in path:
        row = {"stage": step.stage, "name": step.words, "rule": step.label, "value": step.score, "chosen": step.chosen}
        if step.score is not None and step.spread is not None:
            row |= {"low": step.score - step.spread, "high": step.score + step.spread}
        data.append(row)
    y = {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": False}}
    tooltip = [
        {"field": "name", "title": "candidate"},
        {"field": "rule", "title": "rule, pace"},
        {"field": "value", "title": title, "format": ".4~g"},
    ]
    has_spread = any("low" in row for row in data)
    ends = {"y": {"field": "low", "type": "quantitative", "title": title}, "y2": {"field": "high"}}
    size = {"condition": {"test": "datum.chosen", "value": 160}, "value": 45}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6}, "encoding": {"y": y}},
        *([{"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": ends}] if has_spread else []),
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {"y": y, "size": size, "tooltip": tooltip},
        },
    ]
    x = {
        "field": "stage",
        "type": "ordinal",
        "title": "how much of the data a candidate trusts",
        "axis": {"labelExpr": "labels[datum.value]", "labelOverlap": True, "labelSeparation": 8, "labelAngle": 0},
    }
    labels = [{"name": "labels", "value": [trust_text(step) for step in path]}]
    return _spec(200, data, params=labels, encoding={"x": x}, layer=layers)


def _bins(shares: tuple[float, ...] | tuple[int, ...]) -> list[tuple[float, float, float]]:
    width = 1 / max(len(shares), 1)
    return [(round(k * width, 4), round((k + 1) * width, 4), share) for k, share in enumerate(shares)]


def _weight_x(title: str = "weight relative to the largest") -> Spec:
    return {
        "field": "from",
        "type": "quantitative",
        "bin": {"binned": True, "step": 1 / BINS},
        "title": title,
        "axis": _WEIGHT_AXIS,
        "scale": {"domain": [0, 1]},
    }


def weights_chart(histogram: Histogram, noun: str) -> Spec:
    """The final weights, stacked by given label if there are few labels."""
    data = [
        {"from": low, "to": high, "count": count, "given": name}
        for name, counts in zip(histogram.series, histogram.counts, strict=True)
        for low, high, count in _bins(counts)
    ]
    encoding: Spec = {
        "x": _weight_x(),
        "x2": {"field": "to"},
        "y": {"field": "count", "type": "quantitative", "stack": True, "title": noun},
        "tooltip": [
            {"field": "from", "title": "weight from"},
            {"field": "to", "title": "to"},
            {"field": "count", "title": noun, "format": ","},
        ],
    }
    if len(histogram.series) > 1:
        encoding["color"] = {"field": "given", "type": "nominal", "title": "given label", "legend": {"orient": "top"}}
        encoding["tooltip"] = [{"field": "given", "title": "given label"}, *encoding["tooltip"]]
    return _spec(220, data, mark={"type": "bar"}, encoding=encoding)


def scatter_chart(points: tuple[tuple[float, float, bool], ...]) -> Spec:
    """Given against expected values."""
    data = [{"given": given, "expected": expected, "suspect": suspect} for given, expected, suspect in points]
    expected = [p[1] for p in points]  # the line ends where the expected values do: far given ones would squeeze it
    line = {
        "data": {"values": [{"at": min(expected)}, {"at": max(expected)}]},
        "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.5},
    }
    line["encoding"] = {axis: {"field": "at", "type": "quantitative"} for axis in ("x", "y")}
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "opacity": 0.6, "size": 30},
        "encoding": {
            "x": {"field": "expected", "type": "quantitative", "title": "expected", "scale": {"zero": False}},
            "y": {"field": "given", "type": "quantitative", "title": "given", "scale": {"zero": False}},
            "color": {
                "field": "suspect",
                "type": "nominal",
                "title": None,
                "scale": {"domain": [False, True]},
                "legend": {"orient": "top", "labelExpr": "datum.value ? 'likely error' : 'other rows'"},
            },
            "tooltip": [{"field": "given", "format": ".4~g"}, {"field": "expected", "format": ".4~g"}],
        },
    }
    return _spec(260, data, layer=[line, dots])


def view_means(views: tuple[ViewWeights, ...]) -> Spec:
    """The mean weight of every view."""
    data = [{"view": view.name, "weight": view.mean_weight} for view in views]
    x = {
        "field": "weight",
        "type": "quantitative",
        "title": "mean weight",
        "scale": {"domain": [0, 1]},
        "axis": _WEIGHT_AXIS,
    }
    y = {"field": "view", "type": "nominal", "title": None, "sort": None}
    tooltip = [{"field": "view"}, {"field": "weight", "format": ".3f"}]
    return _spec(26 * len(views), data, mark={"type": "bar"}, encoding={"x": x, "y": y, "tooltip": tooltip})


def view_weights(views: tuple[ViewWeights, ...]) -> Spec:
    """The distribution of weights in every view, as a heat map."""
    data = [
        {"view": view.name, "from": low, "to": high, "share": share}
        for view in views
        for low, high, share in _bins(view.histogram)
    ]
    encoding = {
        "x": _weight_x("weight of a sample in the view"),
        "x2": {"field": "to"},
        "y": {"field": "view", "type": "nominal", "title": None, "sort": None},
        "color": {
            "field": "share",
            "type": "quantitative",
            "title": "share",
            "scale": {"type": "sqrt"},
            "legend": {"orient": "top", "format": "%", "gradientLength": 160},
        },
        "tooltip": [{"field": "view"}, {"field": "from", "title": "weight from"}, {"field": "share", "format": ".2%"}],
    }
    return _spec(26 * len(views), data, mark={"type": "rect"}, encoding=encoding)


def grid_chart(grid: Grid, field: str, title: str) -> Spec:
    """A heat map of the matrix in blocks; blocks without observed entries stay empty."""
    values = getattr(grid, field)
    row_ends = (*grid.row_starts[1:], grid.shape[0])
    column_ends = (*grid.column_starts[1:], grid.shape[1])
    data = [
        {"row": row, "row_end": row_ends[i], "column": column, "column_end": column_ends[j], "value": values[i][j]}
        for i, row in enumerate(grid.row_starts)
        for j, column in enumerate(grid.column_starts)
        if values[i][j] is not None
    ]
    scale: Spec = {"domain": [0, 1]} if field == "weight" else {"zero": True}
    encoding = {
        "x": {
            "field": "column",
            "type": "quantitative",
            "title": "column",
            "scale": {"domain": [0, grid.shape[1]], "nice": False},
        },
        "x2": {"field": "column_end"},
        "y": {
            "field": "row",
            "type": "quantitative",
            "title": "row",
            "scale": {"domain": [grid.shape[0], 0], "nice": False},
        },
        "y2": {"field": "row_end"},
        "color": {
            "field": "value",
            "type": "quantitative",
            "title": title,
            "scale": scale,
            "legend": {"orient": "top", "gradientLength": 160},
        },
        "tooltip": [{"field": "row"}, {"field": "column"}, {"field": "value", "title": title, "format": ".3~g"}],
    }
    return _spec(320, data, mark={"type": "rect"}, encoding=encoding)


def history_chart(history: History, name: str) -> Spec:
    """One recorded number over the epochs or stages, with its interval and phases if there are any."""
    lows, highs = history.bands.get(name, ((), ()))
    data = []
    for position, (index, value) in enumerate(zip(history.index, history.series[name], strict=True)):
        row: dict[str, Any] = {"index": index, "value": value}
        if history.phases:
            row["phase"] = history.phases[position]
        if lows and highs:
            row |= {"low": lows[position], "high": highs[position]}
        data += [row] if value is not None else []
    title = name.replace("_", " ")
    constant = len({row["value"] for row in data}) == 1  # an axis needs two ends
    y = {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": constant}}
    tooltip = [{"field": "index", "title": history.unit}, {"field": "value", "title": title, "format": ".4~g"}]
    point: Spec = {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": {"y": y}}
    if history.phases:
        kinds = list(dict.fromkeys(history.phases))
        legend = {"orient": "top", "title": None}
        colour = {"field": "phase", "type": "nominal", "scale": {"domain": kinds}, "legend": legend}
        point["encoding"] |= {"color": colour}
        tooltip.append({"field": "phase", "title": "phase"})
    point["encoding"] |= {"tooltip": tooltip}
    ends = {"y": {"field": "low", "type": "quantitative", "title": title}, "y2": {"field": "high"}}
    layers: list[Spec] = [
        *([{"mark": {"type": "area", "opacity": 0.18}, "encoding": ends}] if lows else []),
        {"mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6}, "encoding": {"y": y}},
        point,
    ]
    x = {"field": "index", "type": "quantitative", "title": history.unit, "axis": {"tickMinStep": 1}}
    return _spec(160, data, encoding={"x": x}, layer=layers)
