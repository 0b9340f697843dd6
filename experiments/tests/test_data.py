"""The published sets, where their files are at hand."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced_experiments import data

WIDTHS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}


def _load(name, **kwargs):
    try:
        return getattr(data, name)(download=False, **kwargs)
    except data.DataNotFoundError as error:
        pytest.skip(f"data not at hand: {error}")


def test_breast_is_embedded():
    X, y = data.load_breast(return_X_y=True)
    assert X.shape == (569, 30)
    assert np.bincount(y).tolist() == [212, 357]


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [("load_spambase", (4601, 57), [2788, 1813]), ("load_svmguide1", (7089, 4), [3089, 4000])],
)
def test_published_sets_have_the_paper_s_sizes(name, shape, counts):
    bunch = _load(name)
    assert bunch.data.shape == shape
    assert np.bincount(bunch.target).tolist() == counts
    assert len(bunch.feature_names) == shape[1]
    assert bunch.data.flags.c_contiguous
    X, y = _load(name, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_mfeat_views():
    bunch = _load("load_mfeat")
    widths = {name: view.shape for name, view in bunch.views.items()}
    assert {name: shape[0] for name, shape in widths.items()} == dict.fromkeys(widths, 2000)
    assert {name: shape[1] for name, shape in widths.items()} == WIDTHS
    assert bunch.data.shape == (2000, 649)
    assert np.bincount(bunch.target).tolist() == [200] * 10
    assert list(_load("load_mfeat", views=("zer", "mor")).views) == ["zer", "mor"]


def test_mfeat_refuses_an_unknown_view():
    with pytest.raises(ValueError, match="views must be some of"):
        data.load_mfeat(views=("fou", "nope"))
