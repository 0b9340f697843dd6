"""Classic small data sets with known outliers, as printed in their sources."""

from __future__ import annotations

import numpy as np

# Hawkins, Bradu and Kass (1984), Location of several outliers in multiple-regression data using elemental sets,
# Technometrics 26, 197-208: artificial; rows 1-10 are bad leverage points, rows 11-14 good ones.
_HBK_X1 = """
10.1 9.5 10.7 9.9 10.3 10.8 10.5 9.9 9.7 9.3 11 12 12 11 3.4 3.1 0 2.3 0.8 3.1 2.6 0.4 2 1.3 1 0.9 3.3 1.8 1.2 1.2
3.1 0.5 1.5 0.4 3.1 1.1 0.1 1.5 2.1 0.5 3.4 0.3 0.1 1.8 1.9 1.8 3 3.1 3.1 2.1 2.3 3.3 0.3 1.1 0.5 1.8 1.8 2.4 1.6
0.3 0.4 0.9 1.1 2.8 2 0.2 1.6 0.1 2 1 2.2 0.6 0.3 0 0.3
"""
_HBK_X2 = """
19.6 20.5 20.2 21.5 21.1 20.4 20.9 19.6 20.7 19.7 24 23 26 34 2.9 2.2 1.6 1.6 2.9 3.4 2.2 3.2 2.3 2.3 0 3.3 2.5 0.8
0.9 0.7 1.4 2.4 3.1 0 2.4 2.2 3 1.2 0 2 1.6 1 3.3 0.5 0.1 0.5 0.1 1.6 2.5 2.8 1.5 0.6 0.4 3 2.4 3.2 0.7 3.4 2.1 1.5
3.4 0.1 2.7 3 0.7 1.8 2 0 0.6 2.2 2.5 2 1.7 2.2 0.4
"""
_HBK_X3 = """
28.3 28.9 31 31.7 31.1 29.2 29.1 28.8 31 30.3 35 37 34 34 2.1 0.3 0.2 2 1.6 2.2 1.9 1.9 0.8 0.5 0.4 2.5 2.9 2 0.8
3.4 1 0.3 1.5 0.7 3 2.7 2.6 0.2 1.2 1.2 2.9 2.7 0.9 3.2 0.6 3 0.8 3 1.9 2.9 0.4 1.2 3.3 0.3 0.9 0.9 0.7 1.5 3 3.3 3
0.3 0.2 2.9 2.7 0.8 1.2 1.1 0.3 2.9 2.3 1.5 2.2 1.6 2.6
"""
_HBK_Y = """
9.7 10.1 10.3 9.5 10 10 10.8 10.3 9.6 9.9 -0.2 -0.4 0.7 0.1 -0.4 0.6 -0.2 0 0.1 0.4 0.9 0.3 -0.8 0.7 -0.3 -0.8 -0.7
0.3 0.3 -0.3 0 -0.4 -0.6 -0.7 0.3 -1 -0.6 0.9 -0.7 -0.5 -0.1 -0.7 0.6 -0.7 -0.5 -0.4 -0.9 0.1 0.9 -0.4 0.7 -0.5 0.7
0.7 0 0.1 0.7 -0.1 -0.3 -0.9 -0.3 0.6 -0.3 -0.5 0.6 -0.9 -0.7 0.6 0.2 0.7 0.2 -0.2 0.4 -0.9 0.2
"""

# Rousseeuw and Leroy (1987), Robust Regression and Outlier Detection, Wiley, p. 27, table 3: the star cluster
# CYG OB1; rows 11, 20, 30 and 34 are giant stars.
_LOG_TEMPERATURE = """
4.37 4.56 4.26 4.56 4.30 4.46 3.84 4.57 4.26 4.37 3.49 4.43 4.48 4.01 4.29 4.42 4.23 4.42 4.23 3.49 4.29 4.29 4.42
4.49 4.38 4.42 4.29 4.38 4.22 3.48 4.38 4.56 4.45 3.49 4.23 4.62 4.53 4.45 4.53 4.43 4.38 4.45 4.50 4.45 4.55 4.45
4.42
"""
_LOG_LIGHT = """
5.23 5.74 4.93 5.74 5.19 5.46 4.65 5.27 5.57 5.12 5.73 5.45 5.42 4.05 4.26 4.58 3.94 4.18 4.18 5.89 4.38 4.22 4.42
4.85 5.02 4.66 4.66 4.90 4.39 6.05 4.42 5.10 5.22 6.29 4.34 5.62 5.10 5.22 5.18 5.57 4.62 5.06 5.34 5.34 5.54 4.98
4.50
"""


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def hbk() -> tuple[np.ndarray, np.ndarray]:
    """75 rows, 3 features; outliers are the first ten."""
    return np.column_stack([_numbers(text) for text in (_HBK_X1, _HBK_X2, _HBK_X3)]), _numbers(_HBK_Y)


def stars() -> tuple[np.ndarray, np.ndarray]:
    """47 rows: log temperature, log light; outliers are rows 11, 20, 30, 34 (from 1)."""
    return _numbers(_LOG_TEMPERATURE)[:, None], _numbers(_LOG_LIGHT)
