"""Figures are written as PNG and SVG, the same way twice, with their numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from selfpaced_experiments import figures


def _series():
    lam = (0.1, 0.5, 2.0)
    curves = {"mean": (0.5, 0.1, 0.06), "std": (0.1, 0.02, 0.01), "low": (0.3, 0.09, 0.05), "high": (0.7, 0.2, 0.07)}
    names = ("half-quadratic, cold start", "half-quadratic, warm start", "self-paced path")
    return {"lam": {"lam": lam}, **dict.fromkeys(names, curves)}


def _tendency():
    falling = {"RMSE": (0.1, 0.08, 0.06), "MAE": (0.08, 0.06, 0.05)}
    return {
        "PRMF": {"RMSE": (0.1,), "MAE": (0.08,)},
        **dict.fromkeys(("mixture", "huber", "cauchy", "welsch"), falling),
    }


DRAWN = {
    "figure-1": lambda out: figures.draw_losses(out),
    "figure-2a": lambda out: figures.draw_toy(out),
    "figure-2b": lambda out: figures.draw_half_quadratic(out, _series()),
    "figure-3": lambda out: figures.draw_tendency(out, _tendency()),
}


@pytest.mark.parametrize("key", DRAWN)
def test_a_figure_is_two_files_and_its_numbers(key, tmp_path):
    figure = DRAWN[key](tmp_path)
    assert figure.key == key
    assert figure.caption
    assert figure.series
    png, svg = (tmp_path / name for name in figure.files)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text(encoding="utf-8").count("<svg") == 1


def test_the_same_figure_is_the_same_file(tmp_path):
    files = [figures.draw_losses(tmp_path / name).files for name in ("one", "two")]
    for name in files[0]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_along_the_toy_path_easy_enter_first_and_outliers_last(tmp_path):
    series = figures.draw_toy(tmp_path).series
    easy, hard, outlier = (np.array(series[name]["mean weight"]) for name in ("easy", "hard", "outlier"))
    assert (easy >= hard).all()
    assert (hard >= outlier).all()
    half = [int(np.argmax(weights > 0.5)) for weights in (easy, hard, outlier)]
    assert half[0] < half[1] < half[2]
