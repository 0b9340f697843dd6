"""Every estimator gives the results it gave before: fits of fixed seeds against the figures in ``pins.json``.

A change that is not meant to change results leaves this test alone. One that is moves its pins, with a reason:

    python tests/test_pins.py --write "SelfPacedMF: auto" --reason "the noise scale is weighted too"

writes that case again; several may be named, a name that ends in ":" is all cases of an estimator, and no name is
every case that differs. ``--diff`` instead of ``--write`` only shows what differs; ``--move`` pins all of them on
another machine.

Figures are compared to 1e-10 where rounding is that of the machine that wrote the pins: the same BLAS kernels, vector
instructions and versions of the libraries. Elsewhere sums are taken in another order and iterations carry that on, so
that the bound is 1e-4, or that of the case. ``SELFPACED_PINS=strict`` or ``loose`` decides by hand.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

_spec = importlib.util.spec_from_file_location("pins", Path(__file__).with_name("pins.py"))
assert _spec is not None
assert _spec.loader is not None
pins = sys.modules["pins"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pins)

STORE = Path(__file__).with_name("pins.json")
SHORT = 12  # arrays up to this size are kept whole
SHOWN = 3  # entries that are kept of longer ones
LOOSE = 1e-4  # tolerance from which on rounding may also show in the last digit of a number in a sentence
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


# ----------------------------------------------------------------------------------------------- figures


def digest(value: Any) -> Any:
    """A figure as JSON: text as it is, short arrays whole, long ones by their sums and a few entries."""
    if isinstance(value, str):
        return value
    array = np.asarray(value.tocsr().data if hasattr(value, "tocsr") else value)
    if array.dtype.kind not in "fiub":
        names, codes = np.unique(array.ravel().astype(str), return_inverse=True)
        return {"names": names.tolist(), "codes": digest(codes)} if array.size > SHORT else array.astype(str).tolist()
    numbers = array.astype(float).ravel()
    if numbers.size <= SHORT:
        return numbers.tolist()
    known = numbers[~np.isnan(numbers)]
    entries = known[np.linspace(0, known.size - 1, SHOWN).astype(int)] if known.size else known
    wave = np.cos(np.arange(known.size))  # tells the order of the entries
    return {
        "sizes": [numbers.size, known.size],
        "squares": float(known @ known),
        "sums": [float(known.sum()), float(known @ wave)],
        "entries": entries.tolist(),
    }


def differences(found: Any, pinned: Any, tolerance: float, name: str, scale: float = 0.0) -> Iterator[str]:
    """A line for every number or text that is not met; a list's scale is its largest number unless given."""
    if isinstance(found, list) and isinstance(pinned, list) and len(found) == len(pinned):
        scale = scale or max((abs(b) for b in pinned if isinstance(b, float) and math.isfinite(b)), default=0.0)
        for i, (a, b) in enumerate(zip(found, pinned, strict=True)):
            yield from _difference(a, b, tolerance, scale, f"{name}[{i}]")
    elif isinstance(found, dict) and isinstance(pinned, dict) and found.keys() == pinned.keys():
        for key, value in pinned.items():
            # terms of a sum may cancel: its own size is no measure of their errors
            whole = 100 * math.sqrt(pinned["sizes"][1] * pinned["squares"]) if key == "sums" else 0.0
            yield from differences(found[key], value, tolerance, f"{name} {key}", whole)
    else:
        yield from _difference(found, pinned, tolerance, 0.0, name)


def _difference(a: Any, b: Any, tolerance: float, scale: float, name: str) -> Iterator[str]:
    """Numbers may differ by ``tolerance`` of themselves, and a hundredth of it of the scale of their array."""
    if a == b or (a != a and b != b):
        return
    if isinstance(a, float) and isinstance(b, float):
        if abs(a - b) <= tolerance * (abs(b) + scale / 100):
            return
        yield f"{name}: {a!r}, pinned {b!r} ({abs(a - b) / (abs(b) or 1.0):.1e} of it)"
    elif not (tolerance >= LOOSE and isinstance(a, str) and isinstance(b, str) and same_text(a, b)):
        yield f"{name}: {a!r}, pinned {b!r}"


def same_text(a: str, b: str) -> bool:
    """Whether sentences have the same words, and numbers that differ by one in the last digit shown at most."""
    (words, numbers), (others, pinned) = ((NUMBER.split(text), NUMBER.findall(text)) for text in (a, b))
    if words != others:
        return False
    return all(
        abs(Decimal(x) - Decimal(y)) <= Decimal((0, (1,), _last_digit(y))) for x, y in zip(numbers, pinned, strict=True)
    )


def _last_digit(number: str) -> int:
    """The power of ten of the last digit of a number."""
    return int(Decimal(number).as_tuple().exponent)


def test_rounded_numbers_in_a_sentence() -> None:
    assert same_text("lam = 0.04812, 19 sweeps.", "lam = 0.04813, 19 sweeps.")
    assert not same_text("lam = 0.04812, 19 sweeps.", "lam = 0.04814, 19 sweeps.")
    assert not same_text("lam = 0.04812, 19 sweeps.", "lam = 0.04812, 19 stages.")


def compare(found: dict[str, Any], pinned: dict[str, Any], tolerance: float) -> list[str]:
    """A line for every figure that is not met, is gone, or is new."""
    lines = [f"{name}: gone" for name in pinned if name not in found]
    lines += [f"{name}: not pinned yet" for name in found if name not in pinned]
    for name in found.keys() & pinned.keys():
        lines += differences(found[name], pinned[name], tolerance, name)
    return sorted(lines)


def measured(name: str) -> dict[str, Any]:
    return {figure: digest(value) for figure, value in pins.measure(pins.CASES[name]).items()}


# -------------------------------------------------------------------------------------------------- test


def machine() -> dict[str, Any]:
    """What decides how sums are rounded."""
    found: dict[str, Any] = {"blas": sorted({str(one.get("architecture")) for one in threadpool_info()} - {"None"})}
    found["simd"] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload]
    for library in ("numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = None
    return found


def stored() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {"machine": machine(), "cases": {}}


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    return stored()


@pytest.mark.parametrize("name", pins.CASES)
def test_results_stay(name: str, pinned: dict[str, Any]) -> None:
    case, same = pins.CASES[name], machine() == pinned["machine"]
    mode = os.environ.get("SELFPACED_PINS", "strict" if same else "loose")
    lines = compare(
        measured(name),
        pinned["cases"][name]["figures"],
        {"strict": case.tolerance, "loose": case.loose}[mode],
    )
    written = "" if same else f" (pins by {pinned['machine']}, here {machine()})"
    assert not lines, "\n".join([f"{name}: {len(lines)} figures moved, {mode} comparison{written}", *lines])


def test_every_case_is_pinned_and_every_pin_has_a_case(pinned: dict[str, Any]) -> None:
    assert sorted(pinned["cases"]) == sorted(pins.CASES)


@pytest.mark.parametrize("place", [0, 7, 99])
def test_a_small_change_is_seen(place: int) -> None:
    values = np.random.default_rng(0).standard_normal(100)
    changed = values.copy()
    changed[place] += 1e-6
    assert compare({"x": digest(changed)}, {"x": digest(values)}, 1e-10)
    assert not compare({"x": digest(values * (1 + 1e-12))}, {"x": digest(values)}, 1e-10)
    assert compare({"x": "Stopped."}, {"x": "Stopped early."}, 1e-10) == ["x: 'Stopped.', pinned 'Stopped early.'"]
    assert compare({"x": digest([1.0, math.nan])}, {"x": digest([1.0, 2.0])}, 1e-6)
    assert compare({}, {"x": 1.0}, 1e-10) == ["x: gone"]


# ----------------------------------------------------------------------------------------------- writing


def save(store: dict[str, Any]) -> None:
    """One line per figure, so that a moved pin is a short difference."""
    text = partial(json.dumps, separators=(",", ":"))
    cases = []
    for name in (name for name in pins.CASES if name in store["cases"]):
        case = store["cases"][name]
        figures = ",\n".join(f"{text(key)}: {text(value)}" for key, value in case["figures"].items())
        cases.append(f'{text(name)}: {{"reason": {text(case["reason"])}, "figures": {{\n{figures}}}}}')
    lines = ",\n".join(cases)
    STORE.write_text(f'{{"machine": {text(store["machine"])},\n"cases": {{\n{lines}}}}}\n')


def chosen(names: list[str]) -> list[str]:
    unknown = [name for name in names if not any(_matches(case, name) for case in pins.CASES)]
    if unknown:
        sys.exit(f"no case is called {unknown[0]!r}; the cases are\n  " + "\n  ".join(pins.CASES))
    return [case for case in pins.CASES if not names or any(_matches(case, name) for name in names)]


def _matches(case: str, name: str) -> bool:
    return case == name or (name.endswith(":") and case.startswith(name))


def move(store: dict[str, Any]) -> None:
    """Pin every case on this machine, with the reasons it had."""
    for name in pins.CASES:
        found, old = measured(name), store["cases"][name]
        if lines := compare(found, old["figures"], pins.CASES[name].loose):
            sys.exit("\n  ".join([f"{name}: more than rounding differs; nothing was written", *lines]))
        store["cases"][name] = {**old, "figures": found}
    save({**store, "machine": machine()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", nargs="*", metavar="CASE", help="pin these cases again")
    what.add_argument("--diff", nargs="*", metavar="CASE", help="show what differs")
    what.add_argument(
        "--move", action="store_true", help="pin all cases on this machine, if rounding is all that differs"
    )
    parser.add_argument("--reason", default="", help="why the figures moved; kept beside them")
    given = parser.parse_args()
    store = stored()
    if given.move:
        move(store)
        return
    if given.write is not None and store["machine"] != machine():
        sys.exit(f"pins are moved on a machine like the one that wrote them: {store['machine']}, got {machine()}")
    for name in chosen(given.diff if given.write is None else given.write):
        found, old = measured(name), store["cases"].get(name)
        lines = ["new"] if old is None else compare(found, old["figures"], pins.CASES[name].tolerance)
        if lines:
            print("\n  ".join([name, *lines]))
        if lines and given.write is not None:
            if old is not None and not given.reason:
                sys.exit("give the --reason why these figures moved; nothing was written")
            store["cases"][name] = {"reason": given.reason, "figures": found}
    if given.write is not None:
        save(store)


if __name__ == "__main__":
    main()
