"""Robust matrix factorization: outliers and missing entries, at the speed of alternating least squares.

>>> import numpy as np
>>> from selfpaced.factorization import SelfPacedMF
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
>>> X[rng.random(X.shape) < 0.3] = np.nan
>>> X[3, 5] = 100.0
>>> model = SelfPacedMF(rank=2, random_state=0).fit(X)
>>> int(model.outliers_["row"][0]), int(model.outliers_["column"][0])
(3, 5)
"""

from .estimator import PRMF, SelfPacedMF

__all__ = ["PRMF", "SelfPacedMF"]
