"""Tables that lie on a Dask cluster: the same models, from arrays and data frames whose blocks stay where they are.

`table` makes of a Dask array or data frame what ``fit`` and :func:`selfpaced.suspects` take. Any client will do, also
none: passes run on whatever scheduler Dask is told to use. `CrossFitClassifier` and `CrossFitRegressor` wrap estimators
that are themselves fitted on a cluster, such as those of xgboost.dask and lightgbm.dask.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError('selfpaced.dask needs Dask: pip install "selfpaced[dask]"') from error

from .distributed.dask_crossfit import CrossFitClassifier, CrossFitRegressor
from .distributed.dask_table import DaskTable, table

__all__ = ["CrossFitClassifier", "CrossFitRegressor", "DaskTable", "table"]
