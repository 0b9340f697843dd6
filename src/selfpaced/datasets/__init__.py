"""Makers of label noise, outliers and data sets, for tests and experiments."""

from selfpaced.datasets.noise import (
    flip_class_conditional,
    flip_in_region,
    flip_near_border,
    flip_symmetric,
    outliers_leverage,
    outliers_one_sided,
)
from selfpaced.datasets.synthetic import cache_directory, make_low_rank, make_multiview_digits, make_shelter

__all__ = [
    "cache_directory",
    "flip_class_conditional",
    "flip_in_region",
    "flip_near_border",
    "flip_symmetric",
    "make_low_rank",
    "make_multiview_digits",
    "make_shelter",
    "outliers_leverage",
    "outliers_one_sided",
]
