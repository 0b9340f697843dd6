"""The data sets of the paper's experiments.

A file is looked for in an explicit ``data_dir``, in the directory named by the environment variable
``SELFPACED_DATA``, in the cache (``SELFPACED_CACHE``), and then downloaded; its checksum is verified and a
corrupt file is refused by name.
"""

from .fetch import CorruptDataError, DataNotFoundError
from .loaders import load_breast, load_mfeat, load_spambase, load_svmguide1

__all__ = ["CorruptDataError", "DataNotFoundError", "load_breast", "load_mfeat", "load_spambase", "load_svmguide1"]
