"""Cases by subject and number."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from .draws import Draw
from .outcomes import Finding
from .subjects import SUBJECTS


def run(subject: str, number: int) -> None:
    """One case; raises where it comes out as it must not."""
    SUBJECTS[subject](Draw(zlib.crc32(subject.encode()), number))


def findings(subject: str, numbers: Iterable[int]) -> Iterator[Finding]:
    """The cases that come out as they must not."""
    for number in numbers:
        try:
            run(subject, number)
        except Exception as error:
            yield Finding(subject, number, error)
