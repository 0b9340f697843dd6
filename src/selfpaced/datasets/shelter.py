"""A small table that anybody can read: the animals of a made-up shelter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["make_shelter"]

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
KINDS = ("Dog", "Cat", "Rabbit")
# convention: a made-up shelter; shares of the kinds, median weights of mixed breeds (kg), median fees (dollars)
SHARES = (0.48, 0.38, 0.14)
WEIGHTS = (16.0, 4.4, 2.2)
FEES = (180.0, 95.0, 45.0)


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
    code = rng.choice(len(KINDS), n_samples, p=SHARES)
    kind = np.array(KINDS, dtype=object)[code]
    age = np.clip(rng.gamma(1.6, 2.5, n_samples), 0.2, 17).round(1)
    fee = np.array(FEES)[code] * np.exp(0.2 * rng.standard_normal(n_samples) - 0.05 * age)
    known, told = rng.random_sample(n_samples) < 0.45, rng.random_sample(n_samples) < 0.6
    breed = [rng.choice(list(BREEDS[one])) if yes else "mixed" for one, yes in zip(kind, known, strict=True)]
    note = [rng.choice(NOTES[one] if yes else ANY_NOTE) for one, yes in zip(kind, told, strict=True)]
    usual = np.array([BREEDS[KINDS[k]].get(name, WEIGHTS[k]) for k, name in zip(code, breed, strict=True)])
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
