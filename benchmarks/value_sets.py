"""Tables for `benchmarks/regression.py`: made ones, tables of statsmodels and scikit-learn, and tables of R.

`DEVELOPED` were looked at while `selfpaced.linear` and `selfpaced.value_noise` were written; `CONFIRMED` were listed
before any of them was run with the present code, and nothing was chosen by them. Some of the confirmation tables had
been looked at for an earlier version of the library. R's tables need `Rscript`; without it they are left out.
`MESSY` are tables in the folder `SELFPACED_DATA`, of which only the numeric columns are used.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

Table = tuple[np.ndarray, np.ndarray]


def one_hot(codes, levels):
    return np.eye(levels)[codes]


# ------------------------------------------------------------------------------------------- developed on these


def diamonds(rng, n=3000) -> Table:
    """Prices that go with a power of the weight."""
    carat = np.exp(rng.normal(-0.4, 0.55, n))
    cut, colour = rng.integers(0, 5, n), rng.integers(0, 7, n)
    log_price = 8 + 1.7 * np.log(carat) + 0.06 * cut - 0.08 * colour + 0.15 * rng.normal(size=n)
    return np.c_[carat, rng.normal(61, 1.4, n), cut, colour], np.exp(log_price)


def wages(rng, n=1500) -> Table:
    """Lognormal pay with a bend in experience."""
    school, years = rng.integers(8, 21, n), rng.uniform(0, 45, n)
    log_pay = 1 + 0.09 * school + 0.04 * years - 0.0006 * years**2 + 0.5 * rng.normal(size=n)
    return np.c_[school, years, rng.integers(0, 2, n)], np.exp(log_pay)


def sensor(rng, n=1000) -> Table:
    """A line whose errors grow with a feature."""
    X = np.c_[rng.uniform(0, 10, n), rng.normal(size=(n, 3))]
    return X, 3 + 2 * X[:, 0] + X[:, 1] + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=n)


def bicycles(rng, n=2500) -> Table:
    """Counts by hour, weather and season, more scattered than Poisson's."""
    hour, warm, working = rng.integers(0, 24, n), rng.normal(15, 8, n), rng.integers(0, 2, n)
    peaks = np.where(
        working, np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6), np.exp(-((hour - 14) ** 2) / 20)
    )
    mean = np.exp(2 + 2.5 * peaks + 0.04 * warm)
    return np.c_[hour, warm, working, rng.uniform(0, 1, n)], rng.poisson(mean * rng.gamma(6, 1 / 6, n)).astype(float)


def rain(rng, n=2000) -> Table:
    """Zero on most days, gamma on the others."""
    X = rng.normal(size=(n, 4))
    wet = rng.random(n) < 1 / (1 + np.exp(0.8 - 1.2 * X[:, 0] + X[:, 1]))
    return X, np.where(wet, rng.gamma(0.8, np.exp(1 + 0.5 * X[:, 0] + 0.3 * X[:, 2])), 0.0)


def taxis(rng, n=3000) -> Table:
    """Fares with a surcharge at some hours of some days."""
    miles, hour, day = rng.gamma(1.5, 2, n), rng.integers(0, 24, n), rng.integers(0, 7, n)
    extra = np.where((hour >= 16) & (hour < 20) & (day < 5), 2.5, np.where((hour >= 20) | (hour < 6), 1.0, 0.0))
    return np.c_[miles, hour, day, rng.integers(1, 7, n)], 3 + 2.6 * miles * np.exp(0.08 * rng.normal(size=n)) + extra


def column(rng, n=2000) -> Table:
    """A slow chemical process: saturation, drift, t errors."""
    X = rng.uniform(0, 1, size=(n, 6))
    y = (
        1 / (1 + np.exp(-8 * (X[:, 0] - 0.6))) * (1 + X[:, 1])
        + 0.2 * np.sin(6 * X[:, 2])
        + 0.04 * rng.standard_t(4, size=n)
    )
    return X, y


def schools(rng, n=1200) -> Table:
    """Groups with levels and spreads of their own."""
    group, x = rng.integers(0, 20, n), rng.normal(size=(n, 2))
    level, spread = rng.normal(0, 2, 20), np.exp(rng.normal(0, 0.6, 20))
    return np.c_[one_hot(group, 20), x], 50 + level[group] + 1.5 * x[:, 0] + spread[group] * rng.normal(size=n)


def food(rng) -> Table:  # noqa: ARG001
    """Engel's household food expenditure (statsmodels)."""
    import statsmodels.api as sm

    data = sm.datasets.engel.load_pandas().data.to_numpy(dtype=float)
    return data[:, :1], data[:, 1]


def doctors(rng, n=3000) -> Table:
    """Visits to the doctor in the RAND health insurance experiment (statsmodels): counts, 31 % zeros."""
    import statsmodels.api as sm

    data = sm.datasets.randhie.load_pandas().data.to_numpy(dtype=float)
    data = data[rng.permutation(len(data))[:n]]
    return data[:, 1:], data[:, 0]


def diabetes(rng) -> Table:  # noqa: ARG001
    """Progression of diabetes (scikit-learn)."""
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


# --------------------------------------------------------------------------------------------------- fresh ones


def houses(rng, n=2500) -> Table:
    """Prices by place and size, which multiply."""
    place, area, age = rng.uniform(0, 1, size=(n, 2)), rng.gamma(8, 15, n), rng.uniform(0, 100, n)
    centre = np.exp(-4 * np.sum((place - 0.4) ** 2, axis=1))
    return np.c_[place, area, age], 2000 * area**0.9 * (0.5 + centre) * np.exp(-0.003 * age + 0.2 * rng.normal(size=n))


def claims(rng, n=3000) -> Table:
    """Insurance: most people claim nothing, a few very much."""
    X = np.c_[rng.normal(size=(n, 3)), rng.integers(0, 3, n)]
    some = rng.random(n) < 1 / (1 + np.exp(1.2 - 0.8 * X[:, 0]))
    return X, np.where(some, np.exp(6 + 0.5 * X[:, 1] + 1.1 * rng.normal(size=n)), 0.0)


def heating(rng, n=2000) -> Table:
    """Energy by temperature: two regimes, unevenly noisy."""
    outside, hour = rng.normal(12, 9, n), rng.integers(0, 24, n)
    load = 20 + 1.8 * np.maximum(16 - outside, 0) + 2.5 * np.maximum(outside - 23, 0) + 4 * (np.abs(hour - 13) < 6)
    return np.c_[outside, hour, rng.normal(size=n)], load + 0.08 * load * rng.normal(size=n)


def sales(rng, n=2000) -> Table:
    """Shops: season times promotion, negative binomial."""
    week, promo, shop = rng.integers(0, 52, n), rng.integers(0, 2, n), rng.integers(0, 12, n)
    size = np.exp(rng.normal(0, 0.5, 12))
    mean = 30 * size[shop] * (1 + 0.4 * np.cos(2 * np.pi * week / 52)) * (1 + 0.8 * promo)
    return np.c_[week, promo, one_hot(shop, 12)], rng.poisson(mean * rng.gamma(4, 1 / 4, n)).astype(float)


def deliveries(rng, n=1500) -> Table:
    """Minutes until the parcel is there: never below the drive, long waits now and then."""
    km, rush, floor = rng.gamma(2, 3, n), rng.integers(0, 2, n), rng.integers(0, 8, n)
    return np.c_[km, rush, floor], 5 + 2.2 * km * (1 + 0.5 * rush) + 0.5 * floor + rng.gamma(1.2, 5, n)


def assay(rng, n=600) -> Table:
    """Dose and response, with errors in proportion."""
    dose, batch = rng.uniform(-3, 3, n), rng.integers(0, 6, n)
    level = np.exp(rng.normal(0, 0.1, 6))
    return np.c_[dose, one_hot(batch, 6)], (5 + 100 / (1 + np.exp(-2 * dose))) * level[batch] * np.exp(
        0.1 * rng.normal(size=n)
    )


def incomes(rng, n=3000) -> Table:
    """Lognormal incomes with a Pareto top."""
    X = np.c_[rng.integers(18, 70, n), rng.integers(0, 5, n), rng.normal(size=n)]
    base = np.exp(9.5 + 0.01 * X[:, 0] + 0.2 * X[:, 1] + 0.6 * rng.normal(size=n))
    return X, base * np.where(rng.random(n) < 0.03, (1 + rng.pareto(2, n)), 1.0)


def cars(rng, n=2000) -> Table:
    """Used cars: value melts with age and miles; some brands are dear."""
    age, miles, brand = rng.uniform(0, 20, n), rng.gamma(3, 30, n), rng.integers(0, 15, n)
    dear = np.exp(rng.normal(0, 0.5, 15))
    return np.c_[age, miles, one_hot(brand, 15)], 25e3 * dear[brand] * np.exp(
        -0.12 * age - 0.002 * miles + 0.25 * rng.normal(size=n)
    )


def wind(rng, n=2000) -> Table:
    """Power of a turbine: nothing, the cube of the wind, then a ceiling."""
    speed, turn = rng.weibull(2, n) * 8, rng.uniform(0, 1, n)
    power = np.clip((speed - 3) / 9, 0, 1) ** 3 * 2000
    return np.c_[speed, turn, rng.normal(size=n)], np.maximum(power * (1 + 0.07 * rng.normal(size=n)), 0.0)


def hospital(rng, n=2500) -> Table:
    """Days in hospital: wards with their own mean and tail."""
    ward, years, severe = rng.integers(0, 10, n), rng.uniform(20, 90, n), rng.integers(0, 4, n)
    mean = np.exp(0.5 + rng.normal(0, 0.5, 10)[ward] + 0.008 * years + 0.3 * severe)
    return np.c_[one_hot(ward, 10), years, severe], 1.0 + rng.poisson(mean * rng.gamma(1.5, 1 / 1.5, n))


def affairs(rng, n=3000) -> Table:
    """Fair's extramarital affairs (statsmodels): 68 % zeros, a long tail."""
    import statsmodels.api as sm

    data = sm.datasets.fair.load_pandas().data.to_numpy(dtype=float)
    data = data[rng.permutation(len(data))[:n]]
    return data[:, :-1], data[:, -1]


def mathematics(rng) -> Table:  # noqa: ARG001
    """Share of pupils above the median in 303 Californian districts (statsmodels star98)."""
    import statsmodels.api as sm

    data = sm.datasets.star98.load_pandas()
    above = data.endog.to_numpy(dtype=float)
    return data.exog.to_numpy(dtype=float)[:, :11], above[:, 0] / above.sum(axis=1)


def cancer(rng) -> Table:  # noqa: ARG001
    """Breast cancer deaths and populations of 301 counties (statsmodels)."""
    import statsmodels.api as sm

    data = sm.datasets.cancer.load_pandas().data.to_numpy(dtype=float)
    return data[:, 1:], data[:, 0]


# ------------------------------------------------------------------------------------------------ tables of R

#: package, columns of the features, the target
R_DEVELOPED = {
    "swiss": ("datasets", "Agriculture,Examination,Education,Catholic,Infant.Mortality", "Fertility"),
    "airquality": ("datasets", "Solar.R,Wind,Temp,Month", "Ozone"),
    "rock": ("datasets", "peri,shape,perm", "area"),
    "Boston": ("MASS", "crim,zn,indus,chas,nox,rm,age,dis,rad,tax,ptratio,black,lstat", "medv"),
    "cpus": ("MASS", "syct,mmin,mmax,cach,chmin,chmax", "perf"),
    "NOxEmissions": ("robustbase", "julday,LNOxEm,sqrtWS", "LNOx"),
}
R_CONFIRMED = {
    "LifeCycleSavings": ("datasets", "pop15,pop75,dpi,ddpi", "sr"),
    "quakes": ("datasets", "lat,long,depth,mag", "stations"),
    "Cars93": ("MASS", "Price,EngineSize,Horsepower,RPM,Weight", "MPG.city"),
    "birthwt": ("MASS", "age,lwt,smoke,ptl,ht,ui,ftv", "bwt"),
    "ChickWeight": ("datasets", "Time,Diet", "weight"),
    "cats": ("MASS", "Bwt", "Hwt"),
    "whiteside": ("MASS", "Temp,Insul", "Gas"),
    "education": ("robustbase", "X1,X2,X3", "Y"),
    "condroz": ("robustbase", "pH", "Ca"),
}


@cache
def r_tables() -> dict[str, Table]:
    """All tables of R in one run: factors as codes, rows without gaps."""
    lines = ["suppressMessages({library(MASS); library(robustbase)})"]
    for name, (package, features, target) in (R_DEVELOPED | R_CONFIRMED).items():
        columns = ",".join(f"'{column}'" for column in (*features.split(","), target))
        lines += [
            f"data('{name}', package = '{package}'); d <- na.omit(as.data.frame({name})[, c({columns})])",
            f"cat('#{name}\\n'); write.table(data.matrix(d), sep = ',', row.names = FALSE, col.names = FALSE)",
        ]
    if shutil.which("Rscript") is None:
        return {}
    found = subprocess.run(["Rscript", "-e", ";".join(lines)], capture_output=True, text=True, check=True).stdout
    parts = [part.split("\n", 1) for part in found.split("#")[1:]]
    numbers = {name: np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2) for name, body in parts}
    return {name: (table[:, :-1], table[:, -1]) for name, table in numbers.items()}


def of_r(name: str) -> Callable[..., Table]:
    return lambda rng: r_tables()[name]  # noqa: ARG005


# ------------------------------------------------------------------------------------------------ messy tables

#: file and target
MESSY = {
    "turbines": ("wind_turbine.csv", "turbine_rated_capacity_k_w"),
    "salary": ("australian_salary.csv", "average_taxable_income"),
    "profit": ("movie_profit.csv", "worldwide_gross"),
    "grants": ("sfi_grants.csv", "current_total_commitment"),
    "pumpkins": ("pumpkins.csv", "weight_lbs"),
}


def messy_table(name: str, most: int = 2500) -> Table:
    """Numbers, dates as days, and frequent words as indicators, of the rows that have a target."""
    import pandas as pd

    file, target = MESSY[name]
    frame = pd.read_csv(
        Path(os.environ["SELFPACED_DATA"]) / "messy" / file, encoding_errors="replace", low_memory=False
    )
    y = pd.to_numeric(frame.pop(target).astype(str).str.replace(",", ""), errors="coerce")
    kept = np.random.default_rng(0).permutation(np.flatnonzero(y.notna() & (y > 0)))[:most]
    columns = []
    for _, values in frame.iloc[kept].items():
        numbers = pd.to_numeric(values.astype(str).str.replace(",", ""), errors="coerce")
        dates = pd.to_datetime(values, errors="coerce", format="mixed") if numbers.notna().mean() < 0.5 else numbers
        if numbers.notna().mean() >= 0.5:
            columns.append(numbers.fillna(numbers.median()).to_numpy(dtype=float))
            if numbers.min() > 0:
                columns.append(np.log(columns[-1]))
        elif dates.notna().mean() >= 0.8:
            days = (dates - dates.min()).dt.days
            columns.append(days.fillna(days.median()).to_numpy(dtype=float))
        else:
            common = values.value_counts()
            columns += [(values == level).to_numpy(dtype=float) for level in common.index[common >= 30][:40]]
    X = np.column_stack(columns)
    return X[:, X.std(axis=0) > 0], y.iloc[kept].to_numpy(dtype=float)


DEVELOPED: dict[str, Callable[..., Table]] = {
    made.__name__: made
    for made in (diamonds, wages, sensor, bicycles, rain, taxis, column, schools, food, doctors, diabetes)
} | {name: of_r(name) for name in R_DEVELOPED}
CONFIRMED: dict[str, Callable[..., Table]] = {
    made.__name__: made
    for made in (
        houses,
        claims,
        heating,
        sales,
        deliveries,
        assay,
        incomes,
        cars,
        wind,
        hospital,
        affairs,
        mathematics,
        cancer,
    )
} | {name: of_r(name) for name in R_CONFIRMED}
#: Tables of counts, to which the column of one-sided errors in counts belongs.
COUNTS = ("bicycles", "doctors", "sales", "hospital", "cancer", "quakes")
