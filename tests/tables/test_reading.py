"""Reading tables: lines, quotes, separators, encodings, and what is refused."""

import gzip
import warnings

import pytest

pd = pytest.importorskip("pandas", reason='tables need the extra "io"')
pytest.importorskip("pyarrow", reason='tables need the extra "io"')

from selfpaced.tables import TableError, TableWarning, read_table, text_rows  # noqa: E402


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "{newline}"])
def test_lines_of_a_plain_file(tmp_path, newline, ending):
    text = newline.join(["a,b", "1,x", "2,y"]) + ending.format(newline=newline)
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}
    assert table.lines.of([0, 1]).tolist() == [2, 3]


def test_lines_with_blank_lines_and_quoted_newlines(tmp_path):
    text = '\na,"b\nc"\n\n1,"x\ny\nz"\n\n\n2,w\n"3",""\n'
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.frame.columns) == ["a", "b\nc"]
    assert table.lines.of([0, 1, 2]).tolist() == [5, 10, 11]
    lines = text.split("\n")
    assert lines[10 - 1].startswith("2,")
    assert table.frame["b\nc"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separator_is_found(tmp_path, separator):
    rows = [["name", "b, or so", "c"], ["x", "1", "2"]]
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows)
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.frame.columns) == rows[0]


def test_tsv_gzip_parquet_hold_the_same(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x, y", "z"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet"):
        table = read_table(tmp_path / name)
        pd.testing.assert_frame_equal(table.frame, frame)
        lines = table.lines.of([1])
        assert (lines is None) == ("parquet" in name)
        assert lines is None or lines.tolist() == [3]


def test_missing_values_and_decimal_comma(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a;b;c\n1,5;NA;true\n?;x;\n"))
    assert table.frame["a"].tolist()[0] == 1.5
    assert table.frame.isna().to_numpy().tolist() == [[False, True, False], [True, False, True]]
    assert table.frame["c"].tolist()[0] == "true"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path, encoding):
    table = read_table(write(tmp_path / "t.csv", "naïve,b\né,1\n", encoding))
    assert table.frame.to_dict("list") == {"naïve": ["é"], "b": [1]}


def test_windows_text_is_read_with_a_warning(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\né,1\n", "cp1252")
    with pytest.warns(TableWarning, match="Windows-1252"):
        table = read_table(path)
    assert table.frame["a"].tolist() == ["é"]
    with pytest.raises(TableError, match="not written in 'utf-8'"):
        read_table(path, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a,b\n1,2\n3\n4,5\n", 3, "1 field, where the header has 2"),
        ("Report\n\n" + "a,b\n" * 20, 1, "the first line has 1 field, but 20 rows have 2: is it a title"),
        ("a,b\n1,2\n\n3,4,5\n6\n", 4, "3 fields, where the header has 2 .1 more such rows.: '3,4,5'"),
        ('a,b\n"x\ny",2\n3,4,5\n', 4, "3 fields"),
        ('a,b\n1,2\n3,"open\n5,6\n', 3, "never closed"),
        ("1,2\n3,4\n", 1, "--no-header"),
    ],
)
def test_a_broken_row_says_its_line(tmp_path, text, line, reason):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(TableError, match=reason) as caught:
        read_table(path)
    assert caught.value.line == line
    assert f"{path}:{line}: " in str(caught.value)


def test_broken_rows_can_be_left_out(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n3\n4,5\n")
    with pytest.warns(TableWarning, match="1 broken rows left out .lines 3"):
        table = read_table(path, skip_broken=True)
    assert table.frame["a"].tolist() == [1, 4]
    assert table.lines.of([0, 1]).tolist() == [2, 4]
    assert list(text_rows(table)) == [["a", "b"], ["1", "2"], ["4", "5"]]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n \n", "is empty"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", bytes(range(256)), "is not text"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read as Parquet"),
        ("t.csv.gz", b"\x1f\x8b\x08 nonsense", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "cannot be read"),
    ],
    ids=["nothing", "blanks", "header", "bytes", "parquet", "gzip", "cut gzip"],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=reason):
        read_table(tmp_path / name)


def test_absent_file_suggests_the_nearest(tmp_path):
    write(tmp_path / "customers.csv", "a\n1\n")
    with pytest.raises(TableError, match=r"did you mean '.*customers\.csv'"):
        read_table(tmp_path / "custmers.csv")


def test_column_names_are_made_unique(tmp_path):
    path = write(tmp_path / "t.csv", ",a,a,a.1\n1,2,3,4\n")
    with pytest.warns(TableWarning, match="'a' appears more than once"):
        table = read_table(path)
    assert list(table.frame.columns) == ["column_1", "a", "a.2", "a.1"]
    assert list(read_table(path, header=False).frame.columns) == [
        "column_1",
        "column_2",
        "column_3",
        "column_4",
    ]


def test_types_do_not_depend_on_where_a_value_is(tmp_path):
    # Beyond the first block of the reader, too, a text makes the column text and a fraction makes it float.
    body = "1,2,x\n" * 300_000
    table = read_table(write(tmp_path / "t.csv", "a,b,c\n" + body + "oops,2.5,y\n"))
    assert table.frame["a"].iloc[-1] == "oops"
    assert table.frame["b"].iloc[-1] == 2.5
    assert table.lines.of([300_000]).tolist() == [300_002]


@pytest.mark.parametrize("late", ["", "oops,2,x\n", "1,2.5,x\n", "1,2,é\n", '1,2,"a\nb"\n', "1\n", "1,,y\n"])
def test_a_large_file_is_read_in_pieces_to_the_same(tmp_path, monkeypatch, late):
    path = write(tmp_path / "t.csv", "a,b,c\n" + "1,2,x\n" * 4_000 + late + "3,4,y\n" * 9, "cp1252")
    monkeypatch.setattr("selfpaced.tables.text.BYTES_AT_ONCE", 1 << 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        whole = read_table(path, skip_broken=True)
        monkeypatch.setattr("selfpaced.tables.text.CACHED", 1 << 12)
        pieces = read_table(path, skip_broken=True)
    pd.testing.assert_frame_equal(pieces.frame, whole.frame)
    assert pieces.frame["c"].iloc[-1] == "y"
    rows = [0, 3_999, len(whole.frame) - 1]
    assert pieces.lines.of(rows).tolist() == whole.lines.of(rows).tolist()
