"""Tables from files: CSV, TSV, Parquet and their gzipped forms, with line numbers and typed columns.

:func:`read_table` reads a file strictly and remembers at which line each row began; :class:`TypedColumns` finds
out what each column holds; :func:`preprocessor` turns a messy table into features with names.

>>> import pandas as pd
>>> from selfpaced.tables import preprocessor
>>> frame = pd.DataFrame({"age": [31.0, None, 54.0, 47.0] * 9, "city": ["Rome", "Oslo", "Rome", None] * 9})
>>> preprocessor().fit_transform(frame).columns.tolist()
['age', 'age is missing', 'city=(missing)', 'city=Oslo', 'city=Rome']
"""

from .batches import TableBatches, matching_files
from .decisions import Reviewed, RowDecision, apply_decisions, read_answers, row_marks
from .errors import TableError, TableWarning
from .features import TableFeatures, preprocessor
from .notices import Aside, few_of_a_kind, label_variants, notices, unlike_copies
from .parsing import parse_numbers
from .reading import LoadedTable, read_table, text_rows
from .schema import Schema, SchemaColumn, TypedColumns, infer_schema, suggestion
from .text import Dialect, Lines

__all__ = [
    "Aside",
    "Dialect",
    "Lines",
    "LoadedTable",
    "Reviewed",
    "RowDecision",
    "Schema",
    "SchemaColumn",
    "TableBatches",
    "TableError",
    "TableFeatures",
    "TableWarning",
    "TypedColumns",
    "apply_decisions",
    "few_of_a_kind",
    "infer_schema",
    "label_variants",
    "matching_files",
    "notices",
    "parse_numbers",
    "preprocessor",
    "read_answers",
    "read_table",
    "row_marks",
    "suggestion",
    "text_rows",
    "unlike_copies",
]
