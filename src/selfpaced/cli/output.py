"""Results on disk: all files of a run appear together or not at all, and files of the user stay."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .console import Console, UsageError, plain_data

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import Dialect

RECORD = ".selfpaced.json"  # convention: hidden, beside the results: the hash of every file that a run has written
STAGE = ".selfpaced-"  # convention: prefix of the folders of unfinished runs, before the number of the process
DECISIONS = "decisions.csv"  # convention: the user's decisions
_CSV, _TSV, _PARQUET = (".csv", ".txt", ".data"), (".tsv", ".tab"), (".parquet", ".pq")


def check_target(out: Path, source: Path | None, *, force: bool) -> None:
    """Refuse to write over the input, or over any other file without ``--force``."""
    if source is not None and out.exists() and out.samefile(source):
        raise UsageError(f"--out is the input itself ({str(source)!r}); a table is never changed in place")
    if out.is_dir():
        raise UsageError(f"--out must be a file, got the folder {str(out)!r}")
    if out.exists() and not force:
        raise UsageError(f"{str(out)!r} exists; choose another --out, or use --force")
    if not out.parent.is_dir():
        raise UsageError(f"--out must be in an existing folder, got {str(out)!r}")


# --------------------------------------------------------------------------------------------- a folder of results


@contextmanager
def staged(folder: Path, names: list[str], console: Console, *, force: bool = False) -> Iterator[Path]:
    """Yield a hidden folder inside ``folder`` to write the files ``names`` into; they move out together at the end.

    The folder is created if needed, and removed again if the run fails. With ``force``, files that selfpaced did not
    create or that were changed since are overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out must be a folder, got the file {str(folder)!r}")
    made = [parent for parent in [folder, *folder.parents] if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _refuse_foreign(folder, names, force)
        _remove_abandoned(folder)
        with tempfile.TemporaryDirectory(prefix=f"{STAGE}{os.getpid()}-", dir=folder) as stage:
            yield Path(stage)
            with console.shield():
                _refuse_foreign(folder, names, force)
                _move(folder, Path(stage))
                made = []
    except OSError as error:
        if error.filename is None or STAGE in str(error.filename):
            error.filename = str(folder)  # the name of the hidden folder would not help
        raise
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


def _remove_abandoned(folder: Path) -> None:
    """Remove what runs that were killed have left behind."""
    for stage in folder.glob(f"{STAGE}*"):
        number = stage.name.removeprefix(STAGE).partition("-")[0]
        try:
            os.kill(int(number), 0)  # does nothing to a process that lives
        except ProcessLookupError:
            shutil.rmtree(stage, ignore_errors=True)
        except (ValueError, OverflowError, OSError):
            continue


def _refuse_foreign(folder: Path, names: list[str], force: bool) -> None:
    """Refuse to replace folders, and without ``--force`` files that selfpaced did not write as they are now."""
    for name in names:
        path = folder / name
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder, but a file of this name is needed")
        if path.exists() and not force and not _is_ours(path):
            what = f"{str(path)!r} exists and was not written by selfpaced, or was changed since"
            raise UsageError(f"{what}; choose another --out, or use --force")


def _move(folder: Path, stage: Path) -> None:
    """Move the files of a run into its folder.

    Unchanged files of an earlier run that this run did not write are removed: a page about another model would be
    misleading. Decisions stay.
    """
    from selfpaced.persistence import replacing

    made = {path.name: _digest(path) for path in sorted(stage.iterdir())}
    kept = {name: digest for name, digest in _record(folder).items() if _is_ours(folder / name)}
    for name in made:
        os.replace(stage / name, folder / name)
    for name in set(kept) - set(made) - {DECISIONS}:
        (folder / name).unlink()
    stay = {name: digest for name, digest in kept.items() if name == DECISIONS}
    with replacing(folder / RECORD) as stream:
        stream.write(json.dumps({**stay, **made}, indent=1).encode())


def _is_ours(path: Path) -> bool:
    """Return whether a file is as a run has written it."""
    return path.is_file() and _record(path.parent).get(path.name) == _digest(path)


def _record(folder: Path) -> dict[str, str]:
    """Return the hashes of files in a folder; none if the record is absent or malformed."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return {name: str(digest) for name, digest in found.items() if not set(name) & set("/\\\0")}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ------------------------------------------------------------------------------------------------------ one file


def write_json(value: Any, path: Path) -> None:
    """Write a result as JSON."""
    text = json.dumps(plain_data(value), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_page(path: Path, console: Console, model: Any, X: Any = None, y: Any = None, **content: Any) -> bool:
    """Write a page by `selfpaced.report`, unless the packages for it are not installed."""
    try:
        from selfpaced.report import report

        report(model, X, y, path, **content)
    except ImportError as error:
        console.warn(f"no report: {error}")
        return False
    return True


def format_of(path: Path) -> tuple[str, bool]:
    """Return the separator of a text file (empty for Parquet), and whether the file is gzipped.

    >>> format_of(Path("table.tsv.gz")), format_of(Path("table.parquet"))
    (('\\t', True), ('', False))
    """
    name = path.name.lower()
    suffix, packed = Path(name.removesuffix(".gz")).suffix, name.endswith(".gz")
    if suffix not in (*_CSV, *_TSV, *_PARQUET) or (packed and suffix in _PARQUET):
        raise UsageError(f"the format of {str(path)!r} is unknown: use .csv, .tsv (also with .gz) or .parquet")
    return "" if suffix in _PARQUET else "\t" if suffix in _TSV else ",", packed


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a data frame; the file appears when it is complete. Texts are made safe for spreadsheets."""
    from selfpaced.persistence import replacing
    from selfpaced.tables.text import guarded_frame

    separator, packed = format_of(path)
    with replacing(path) as stream:
        if not separator:
            frame.to_parquet(stream, index=False)
            return
        with _text(stream, packed) as text:
            _write_text(guarded_frame(frame), text, separator)


def _write_text(frame: pd.DataFrame, text: IO[str], separator: str) -> None:
    """Write a data frame by Arrow, which formats numbers ten times as fast as pandas."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    csv.writer(text, delimiter=separator, lineterminator="\n").writerow(frame.columns)
    text.flush()
    columns, special = [], False
    for place, kind in enumerate(frame.dtypes):
        column = frame.iloc[:, place]
        if kind.kind not in "iuf":
            texts = column.astype(str)
            column = texts.where(column.notna() & (texts != ""), None)
            special = special or bool(column.str.contains(f'["\r\n{separator}]', na=False).any())
        columns.append(pa.array(column, from_pandas=True))
    table = pa.Table.from_arrays(columns, [str(place) for place in range(len(columns))])  # names may repeat
    style = "needed" if special else "none"  # "needed" quotes every text
    options = arrow_csv.WriteOptions(include_header=False, delimiter=separator, quoting_style=style)
    arrow_csv.write_csv(table, text.buffer, options)  # type: ignore[attr-defined]


def write_rows(rows: Iterable[list[str]], path: Path, separator: str, dialect: Dialect) -> None:
    """Write records of text."""
    from selfpaced.persistence import replacing

    with replacing(path) as stream, _text(stream, format_of(path)[1], dialect.encoding) as text:
        csv.writer(text, delimiter=separator, lineterminator=dialect.newline).writerows(rows)


@contextmanager
def _text(stream: IO[bytes], packed: bool, encoding: str = "utf-8") -> Iterator[IO[str]]:
    target = gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) if packed else stream
    text = io.TextIOWrapper(target, encoding=encoding, newline="")
    try:
        yield text
        text.flush()
    finally:
        text.detach()
        if packed:
            target.close()
