"""Data sets of the experiments, and makers of label noise and outliers.

A file is looked for in an explicit ``data_dir``, in the directory named by the environment variable
``SELFPACED_DATA``, in the cache (``SELFPACED_CACHE``), and then downloaded; its checksum is verified and a
corrupt file is refused by name.
"""

from selfpaced.datasets.fetch import CorruptDataError, DataNotFoundError, cache_directory
from selfpaced.datasets.loaders import load_breast, load_mfeat, load_spambase, load_svmguide1
from selfpaced.datasets.noise import (
    flip_class_conditional,
    flip_in_region,
    flip_instance_dependent,
    flip_near_border,
    flip_symmetric,
    outliers_leverage,
    outliers_one_sided,
    outliers_symmetric,
)
from selfpaced.datasets.shelter import make_shelter
from selfpaced.datasets.synthetic import make_low_rank, make_multiview_digits

__all__ = [
    "CorruptDataError",
    "DataNotFoundError",
    "cache_directory",
    "flip_class_conditional",
    "flip_in_region",
    "flip_instance_dependent",
    "flip_near_border",
    "flip_symmetric",
    "load_breast",
    "load_mfeat",
    "load_spambase",
    "load_svmguide1",
    "make_low_rank",
    "make_multiview_digits",
    "make_shelter",
    "outliers_leverage",
    "outliers_one_sided",
    "outliers_symmetric",
]
