"""The page's figures as Vega-Lite specifications: plain data, drawn by the browser.

Colours, fonts and grid lines are in the Vega config of the page, light or dark. Every figure is as wide as its
container.
"""

from __future__ import annotations

from typing import Any

from .data import Grid, History, Summary

Spec = dict[str, Any]


def charts(summary: Summary) -> dict[str, Spec]:
    """Return every figure of a page by the id of its element."""
    out: dict[str, Spec] = {}
    if summary.scatter:
        out["chart-scatter"] = scatter_chart(summary.scatter, summary.scatter_scale)
    if summary.grid is not None:
        if summary.grid.residual:
            out["chart-residual"] = grid_chart(summary.grid, "residual", "mean |residual|")
        out["chart-entry-weight"] = grid_chart(summary.grid, "weight", "mean weight")
    if summary.history is not None:
        for position, name in enumerate(summary.history.series):
            out[f"chart-history-{position}"] = history_chart(summary.history, name)
    return out


def _spec(height: int, data: list[dict[str, Any]], **rest: Any) -> Spec:
    size: Spec = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    return {**size, "data": {"values": data}, **rest}


def _quantity(field: str, title: str | None = None, **rest: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **rest}


def _line(y: Spec) -> Spec:
    return {"mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6}, "encoding": {"y": y}}


def _points(**encoding: Any) -> Spec:
    return {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": encoding}


def _tips(*fields: tuple[str, ...]) -> list[Spec]:
    """Return what a pointer shows: fields with their titles and, for some, formats."""
    return [dict(zip(("field", "title", "format"), field, strict=False)) for field in fields]


def scatter_chart(points: tuple[tuple[float, float, bool], ...], scale: str) -> Spec:
    """Return given against expected values; a "symlog" scale is a log scale if all are positive."""
    data = [{"given": given, "expected": expected, "suspect": suspect} for given, expected, suspect in points]
    expected = [p[1] for p in points]  # the line ends where the expected values do: far given ones would squeeze it
    line = {
        "data": {"values": [{"at": min(expected)}, {"at": max(expected)}]},
        "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.5},
        "encoding": {axis: {"field": "at", "type": "quantitative"} for axis in ("x", "y")},
    }
    if scale == "symlog" and all(given > 0 and other > 0 for given, other, _ in points):
        scale = "log"
    axis = {"scale": {"type": scale} | ({} if scale == "log" else {"zero": False})}
    legend = {"orient": "top", "labelExpr": "datum.value ? 'likely error' : 'other rows'"}
    colour = {
        "field": "suspect",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [False, True]},
        "legend": legend,
    }
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "opacity": 0.6, "size": 30},
        "encoding": {
            "x": _quantity("expected", "expected", **axis),
            "y": _quantity("given", "given", **axis),
            "color": colour,
            "tooltip": _tips(("given", "given", ".4~g"), ("expected", "expected", ".4~g")),
        },
    }
    return _spec(260, data, layer=[line, dots])


def grid_chart(grid: Grid, field: str, title: str) -> Spec:
    """Return a heat map of the matrix in blocks; blocks without observed entries stay empty."""
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
        "x": _quantity("column", "column", scale={"domain": [0, grid.shape[1]], "nice": False}),
        "x2": {"field": "column_end"},
        "y": _quantity("row", "row", scale={"domain": [grid.shape[0], 0], "nice": False}),
        "y2": {"field": "row_end"},
        "color": _quantity("value", title, scale=scale, legend={"orient": "top", "gradientLength": 160}),
        "tooltip": _tips(("row", "row"), ("column", "column"), ("value", title, ".3~g")),
    }
    return _spec(320, data, mark={"type": "rect"}, encoding=encoding)


def history_chart(history: History, name: str) -> Spec:
    """Return one recorded number over the epochs, with its interval and phases if there are any."""
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
    y = _quantity("value", title, scale={"zero": constant})
    tooltip = _tips(("index", "epoch"), ("value", title, ".4~g"))
    point: Spec = {"y": y}
    if history.phases:
        kinds, legend = list(dict.fromkeys(history.phases)), {"orient": "top", "title": None}
        point["color"] = {"field": "phase", "type": "nominal", "scale": {"domain": kinds}, "legend": legend}
        tooltip += _tips(("phase", "phase"))
    layers = [_line(y), _points(**point, tooltip=tooltip)]
    if lows:
        band = {"y": _quantity("low", title), "y2": {"field": "high"}}
        layers.insert(0, {"mark": {"type": "area", "opacity": 0.18}, "encoding": band})
    x = _quantity("index", "epoch", axis={"tickMinStep": 1})
    return _spec(160, data, encoding={"x": x}, layer=layers)
