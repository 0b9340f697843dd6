"""Synthetic and embedded data: a low-rank matrix, digits in several views, an animal shelter; where files are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

if TYPE_CHECKING:
    import pandas as pd


def cache_directory() -> Path:
    """Return the directory of kept files: ``SELFPACED_CACHE``, else the platform's cache directory.

    >>> bool(cache_directory().name)
    True
    """
    chosen = os.environ.get("SELFPACED_CACHE")
    return Path(chosen) if chosen else user_cache_path("selfpaced", appauthor=False)


def make_low_rank(
    n_rows: int = 100,
    n_columns: int = 100,
    rank: int = 4,
    *,
    missing: float = 0.4,
    outliers: float = 0.2,
    amplitude: float = 20.0,
    noise: float = 0.1,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """The paper's synthetic matrix: low rank, entries missing, some grossly wrong, the rest slightly noisy.

    ``truth = U V^T`` with standard normal factors; of all entries a share ``missing`` is removed, a share
    ``outliers`` gets uniform noise on ``[-amplitude, amplitude]`` and the rest normal noise of standard
    deviation ``noise``. The defaults are the paper's.

    Parameters
    ----------
    n_rows, n_columns, rank : int
        Shape and rank of the true matrix.
    missing, outliers : float
        Shares of all entries; together at most 1.
    amplitude : float, default=20.0
        Half width of the outliers' uniform noise.
    noise : float, default=0.1
        Standard deviation of the other observed entries.
    random_state : int, Generator or None
        Seed of the data; models take a seed of their own.

    Returns
    -------
    Bunch
        ``data`` (NaN = missing), ``truth``, ``rows``, ``columns``, ``observed`` (the observed entries, row by
        row), ``outlier`` (bool, of the observed entries), ``outlier_mask`` (bool, of all), ``U``, ``V``.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.datasets import make_low_rank
    >>> made = make_low_rank(random_state=0)
    >>> made.data.shape, made.observed.size, int(made.outlier.sum())
    ((100, 100), 6000, 2000)
    """
    if min(n_rows, n_columns, rank) < 1:
        raise ValueError(f"n_rows, n_columns and rank must be positive, got {(n_rows, n_columns, rank)!r}")
    if missing < 0 or outliers < 0 or missing + outliers > 1:
        raise ValueError(f"missing and outliers must be shares with sum <= 1, got {(missing, outliers)!r}")
    rng = np.random.default_rng(random_state)
    U, V = rng.standard_normal((n_rows, rank)), rng.standard_normal((n_columns, rank))
    truth = U @ V.T
    order = rng.permutation(truth.size)
    n_missing, n_outliers = int(missing * truth.size), int(outliers * truth.size)
    hidden, wrong, fine = np.split(order, [n_missing, n_missing + n_outliers])
    data = truth.ravel().copy()
    data[wrong] += rng.uniform(-amplitude, amplitude, wrong.size)
    data[fine] += noise * rng.standard_normal(fine.size)
    data[hidden] = np.nan
    mask = np.zeros(truth.size, dtype=bool)
    mask[wrong] = True
    entries = np.sort(order[n_missing:])
    return Bunch(
        data=data.reshape(truth.shape),
        truth=truth,
        rows=entries // n_columns,
        columns=entries % n_columns,
        observed=data[entries],
        outlier=mask[entries],
        outlier_mask=mask.reshape(truth.shape),
        U=U,
        V=V,
    )


def make_multiview_digits() -> Bunch:
    """Scikit-learn's 1797 embedded digits (8 x 8) in four views; no file and no network needed.

    The views are ``pixels`` (64 grey values), ``fourier`` (the magnitudes of the two-dimensional spectrum's
    non-redundant half, 40), ``profiles`` (row and column sums and, from each side, the distance to the first
    ink, 48) and ``moments`` (mass, centroid, central moments up to order 4, 14).

    Returns
    -------
    Bunch
        ``views`` (dict of name to array), ``target`` (the digit), ``data`` (the views side by side),
        ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from selfpaced.datasets import make_multiview_digits
    >>> {name: view.shape[1] for name, view in make_multiview_digits().views.items()}
    {'pixels': 64, 'fourier': 40, 'profiles': 48, 'moments': 14}
    """
    digits = load_digits()
    images = np.asarray(digits.images, dtype=np.float64)
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "profiles": _profiles(images),
        "moments": _moments(images),
    }
    return Bunch(
        views=views,
        target=digits.target.astype(np.int64),
        data=np.hstack(list(views.values())),
        target_names=[str(digit) for digit in range(10)],
        DESCR="Digits embedded in scikit-learn (UCI Optical Recognition), in four views.",
    )


def _profiles(images: NDArray[np.float64]) -> NDArray[np.float64]:
    ink = images > 4.0
    width = images.shape[2]
    distances = []
    for axis in (1, 2):
        for seen in (ink, np.flip(ink, axis)):
            distances.append(np.where(seen.any(axis), seen.argmax(axis), width))
    return np.hstack([images.sum(1), images.sum(2), *distances]).astype(np.float64)


def _moments(images: NDArray[np.float64]) -> NDArray[np.float64]:
    side = np.arange(images.shape[1], dtype=np.float64)
    mass = images.sum((1, 2))
    y = (images.sum(2) @ side) / mass
    x = (images.sum(1) @ side) / mass
    dy, dx = side[None, :] - y[:, None], side[None, :] - x[:, None]
    orders = [(p, q) for total in (2, 3, 4) for p in range(total + 1) for q in [total - p]]
    central = [np.einsum("nij,ni,nj->n", images, dy**p, dx**q) / mass ** (1 + (p + q) / 2) for p, q in orders]
    # Order 4 is represented by its even moments: the odd ones add little but noise on 8 x 8 images.
    keep = [moment for (p, q), moment in zip(orders, central, strict=True) if p + q < 4 or p % 2 == 0]
    compactness = (images**2).sum((1, 2)) / mass
    return np.column_stack([mass, y, x, compactness, *keep])


# fmt: off
NAMES = (
    "Bella", "Max", "Luna", "Charlie", "Milo", "Coco", "Rocky", "Daisy", "Simba", "Nala", "Oscar", "Molly", "Leo",
    "Lily", "Felix", "Ruby", "Toby", "Zoe", "Sam", "Kitty", "Biscuit", "Pepper", "Shadow", "Ginger", "Smokey",
    "Willow", "Hazel", "Bruno", "Olive", "Archie", "Poppy", "Gizmo", "Mocha", "Pixie", "Finn", "Rosie", "Jasper",
    "Clover", "Ziggy",
)
# convention: a made-up shelter; breeds with their median weight in kg
BREEDS = {
    "Dog": {"Labrador": 30, "German Shepherd": 34, "Beagle": 12, "Boxer": 29, "Poodle": 9, "Chihuahua": 2.8,
            "Dachshund": 8, "Husky": 24, "Terrier": 8, "Collie": 22},
    "Cat": {"Siamese": 4, "Persian": 4.5, "Maine Coon": 6.5, "Bengal": 5, "Ragdoll": 6, "British Shorthair": 5.2,
            "Domestic Shorthair": 4.4, "Sphynx": 4},
    "Rabbit": {"Netherland Dwarf": 1.1, "Holland Lop": 1.7, "Lionhead": 1.5, "Flemish Giant": 6, "Angora": 3.2,
               "Mini Rex": 2},
}
# fmt: on
NOTES = {
    "Dog": (
        "loves long walks and pulls on the leash",
        "barks at the postman, needs training",
        "fetches balls all day, good with children",
        "walks well on the leash, wants a garden",
    ),
    "Cat": (
        "uses the litter box, sleeps on the sofa",
        "purrs as soon as she is stroked",
        "indoor only, scratches the sofa",
        "hides under the sofa when visitors come, purrs later",
    ),
    "Rabbit": (
        "eats hay and dandelions, needs a hutch",
        "digs holes, keep the hutch closed",
        "gnaws at cables, wants fresh hay twice a day",
        "lives in a hutch with her sister",
    ),
}
ANY_NOTE = (
    "found near the station, quiet",
    "owner moved abroad",
    "shy at first, vaccinated",
    "brought in by the police, in good health",
)
# convention: a made-up shelter; share of the kind, median weight of mixed breeds (kg), median fee (dollars)
ANIMALS = {"Dog": (0.48, 16.0, 180.0), "Cat": (0.38, 4.4, 95.0), "Rabbit": (0.14, 2.2, 45.0)}


def make_shelter(n_samples: int = 600, random_state: Any = None) -> pd.DataFrame:
    """Make the table of an animal shelter: text, categories, numbers, money and dates, with the kind of the animal.

    The kind can be told from the breed if it is known, and else from weight, fee and note.

    Parameters
    ----------
    n_samples : int
        Number of animals.
    random_state : int, RandomState or None

    Returns
    -------
    pandas.DataFrame
        With the columns ``id, arrived, name, breed, age_years, weight_kg, fee, note, kind``; every kind is right.

    Examples
    --------
    >>> from selfpaced.datasets import make_shelter
    >>> make_shelter(4, random_state=0).loc[1, ["breed", "fee", "note", "kind"]].tolist()
    ['mixed', '$90', 'shy at first, vaccinated', 'Cat']
    """
    import pandas as pd

    rng = check_random_state(random_state)
    shares, weights, fees = zip(*ANIMALS.values(), strict=True)
    code = rng.choice(len(ANIMALS), n_samples, p=shares)
    kind = np.array(list(ANIMALS), dtype=object)[code]
    age = np.clip(rng.gamma(1.6, 2.5, n_samples), 0.2, 17).round(1)
    fee = np.array(fees)[code] * np.exp(0.2 * rng.standard_normal(n_samples) - 0.05 * age)
    known, told = rng.random_sample(n_samples) < 0.45, rng.random_sample(n_samples) < 0.6
    breed = [rng.choice(list(BREEDS[one])) if yes else "mixed" for one, yes in zip(kind, known, strict=True)]
    note = [rng.choice(NOTES[one] if yes else ANY_NOTE) for one, yes in zip(kind, told, strict=True)]
    usual = np.array([BREEDS[one].get(name, weights[k]) for one, k, name in zip(kind, code, breed, strict=True)])
    spread = np.where(known, 0.15, np.where(kind == "Dog", 0.5, 0.25))  # mixed dogs come in all sizes
    weight = np.minimum(usual * np.exp(spread * rng.standard_normal(n_samples)), 60)
    arrived = pd.Timestamp("2024-01-02") + pd.to_timedelta(np.sort(rng.randint(0, 600, n_samples)), unit="D")
    return pd.DataFrame(
        {
            "id": [f"A-{1001 + row}" for row in range(n_samples)],
            "arrived": arrived.strftime("%d %B %Y"),
            "name": rng.choice(NAMES, n_samples),
            "breed": breed,
            "age_years": age,
            "weight_kg": weight.round(1),
            "fee": [f"${5 * round(value / 5)}" for value in fee],
            "note": note,
            "kind": kind,
        }
    )
