"""Parquet files of odd content, and damaged ones: what nobody reads disturbs nothing, damage is told in one line."""

import json
import random
import resource
import sys

import datasets
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from bert.corpus import arrow_files, ranges
from bert.errors import InputError
from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says

TEXT, LABEL = ["a", "b"], ["x", "y"]
BAD_TEXT = pyarrow.array([b"caf\xe9", b"ok"], pyarrow.binary()).view(pyarrow.string())


@pytest.fixture
def parquet(tmp_path):
    """parquet({column: values}, features) -> path of a new file; features: as `datasets` writes them."""

    def write(columns, features=None, **settings):
        table = pyarrow.table(columns)
        if features is not None:
            info = json.dumps({"info": {"features": features}})
            table = table.replace_schema_metadata({b"huggingface": info.encode()})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet", **settings)
        return str(tmp_path / "a.parquet")

    return write


@pytest.mark.parametrize(
    "odd",
    [
        pyarrow.array([10**7, 0], pyarrow.date32()),
        pyarrow.array([10**18, 0], pyarrow.timestamp("us")),
        pyarrow.array([10**18, 0], pyarrow.duration("s")),
        pyarrow.array([[10**13], None], pyarrow.list_(pyarrow.timestamp("s"))),
        BAD_TEXT,
    ],
    ids=str,
)
def test_values_that_python_lacks_disturb_no_other_column(parquet, odd):
    table = read_table(parquet({"text": TEXT, "label": LABEL, "odd": odd}))
    made = make_examples(table, ColumnSettings("text", "label"), "class", ("x", "y"))
    assert (made.texts, made.targets.tolist()) == ([("a",), ("b",)], [[1, 0], [0, 1]])
    assert any("odd" in note for note in table.notes)


def test_texts_and_labels_that_are_not_utf8_are_told_by_their_row(parquet):
    for column in ("text", "label"):
        table = read_table(parquet({"text": TEXT, "label": LABEL} | {column: BAD_TEXT}))
        message = message_of(make_examples, table, ColumnSettings("text", "label"), "class", ("x", "ok"))
        assert says(message, f"a.parquet: row 1: {column}: b'caf\\xe9'")


@pytest.mark.parametrize("names", [["no", "yes"], "no", {"no": 0}, None])
@pytest.mark.parametrize("values", [LABEL, [True, False], [0.0, 1.0]])
def test_names_of_classes_are_for_whole_numbers(parquet, names, values):
    table = read_table(parquet({"text": TEXT, "label": values}, {"label": {"_type": "ClassLabel", "names": names}}))
    assert ([row["label"] for row in table.rows], table.names) == (values, {})
    for features in ([1], {"label": 3}, None):
        assert read_table(parquet({"text": TEXT, "label": values}, features)).names == {}


LABELS = {"_type": "ClassLabel", "names": ["no", "yes"]}


@pytest.mark.parametrize(
    "feature", [{"feature": LABELS, "_type": "List"}, {"feature": LABELS, "_type": "Sequence", "length": -1}, [LABELS]]
)
def test_lists_of_numbers_get_names_too(parquet, feature):
    """As several versions of `datasets` describe them; -1 and -100 are no label."""
    table = read_table(
        parquet({"text": TEXT, "label": [[1, 0], []], "tags": [[-100, 1], [-1]]}, {"label": feature, "tags": feature})
    )
    assert [row["label"] for row in table.rows] == [["yes", "no"], []]
    assert [row["tags"] for row in table.rows] == [[None, "yes"], [None]]
    assert table.names == {"label": ("no", "yes"), "tags": ("no", "yes")}
    wrong = parquet({"text": TEXT, "label": [[1], [0, 2]]}, {"label": feature})
    assert says(message_of(read_table, wrong), "a.parquet: row 2: label: 2 is no number of its 2 names (no, yes)")


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_files_are_read_or_refused(tmp_path, kind):
    path, rng = tmp_path / "a.arrow", random.Random(0)
    table = pyarrow.table({"text": [f"word {i}" for i in range(40)], "label": [[i % 2] for i in range(40)]})
    new = pyarrow.ipc.new_file if kind == "file" else pyarrow.ipc.new_stream
    with pyarrow.OSFile(str(path), "w") as file, new(file, table.schema) as writer:
        writer.write_table(table)
    assert [row["label"] for row in read_table(str(path)).rows[:2]] == [[0], [1]]
    whole, refused = path.read_bytes(), 0
    for _ in range(60):
        path.write_bytes(damage(whole, rng))
        refused += is_refused(lambda: read_table(str(path)))
    assert refused > 30


def test_a_file_of_one_row_over_and_over_is_refused(parquet, monkeypatch):
    monkeypatch.setattr(arrow_files, "MOST_ROWS", 100_000)
    assert says(message_of(read_table, parquet({"text": ["a"] * 500_000})), "a.parquet: 500,000 rows in")
    assert len(read_table(parquet({"text": ["a"] * 100_000})).rows) == 100_000


def damage(data: bytes, rng: random.Random) -> bytes:
    """One to sixteen bytes changed, half of the times among the last, where a file says what it holds; or a cut."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        i = rng.randrange(len(changed)) if rng.random() < 0.5 else len(changed) - 1 - rng.randrange(len(data) // 2)
        changed[i] = rng.choice([rng.randrange(256), changed[i] ^ (1 << rng.randrange(8)), 0, 255])
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.1 else changed)


def is_refused(read) -> bool:
    """Whether a call raises InputError, of a single line; nothing else may be raised."""
    try:
        read()
    except InputError as error:
        return "\n" not in str(error) or pytest.fail(str(error))
    return False


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["parquet", "saved"])
def test_damaged_files_are_read_or_refused(tmp_path, kind, count):
    """Also as a corpus; in bounded memory, without an end of the process."""
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=LABEL)})
    content = {"text": [f"word {i} and more" for i in range(40)], "label": [i % 2 for i in range(40)]}
    data = datasets.Dataset.from_dict(content, features=features)
    data.save_to_disk(tmp_path / "saved")
    data.to_parquet(tmp_path / "a.parquet")
    path = tmp_path / {"parquet": "a.parquet", "saved": "saved"}[kind]
    files = [path] if kind == "parquet" else sorted(path.iterdir())
    assert len(read_table(str(path)).rows) == 40
    rng, refused = random.Random(0), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        file = rng.choice(files)
        whole = file.read_bytes()
        file.write_bytes(damage(whole, rng))
        for read in (
            lambda: read_table(str(path)),
            lambda: list(arrow_files.column_values(path, kind, "text", ranges.whole(1))),
        ):
            refused += is_refused(read)
        file.write_bytes(whole)
    assert refused > count / 2
    unit = 1 if sys.platform == "darwin" else 1 << 10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 1 << 30
