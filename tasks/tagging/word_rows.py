"""Tagged sentences from a table with a word a row: columns with the word, its tag, and the sentence.

The sentence stands in each of its rows, or in the first only. Without such a column, blank lines and rows with neither
word nor tag stand between sentences.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bert import surrogates
from bert.errors import InputError
from tasks.files.annotators import SINGLE
from tasks.files.cells import TableCell
from tasks.files.records import Table, cell_of, check_column, value_of
from tasks.files.reports import Tally
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, read_tags


class Columns(NamedTuple):
    """Names of columns; sentence: "" where there is none."""

    words: str
    tags: str
    sentence: str


def read(table: Table, columns: Columns, settings: TagSettings, labelled: str, notes: Sequence[str]) -> TagFile:
    """The sentences, each with one annotator; ``notes``: those so far."""
    tally = Tally()
    rows = []
    for number, indices in enumerate(_sentences(table, columns, tally), 1):
        first = table.rows[indices[0]]
        places = [table.places[i] for i in indices]
        words = tuple(_word(cell_of(table.rows[i], table.places[i], columns.words)) for i in indices)
        cells = [] if labelled == "no" else [_tag(value_of(table.rows[i], columns.tags)) for i in indices]
        tags = read_tags(cells, settings, [f"{place}: {columns.tags}" for place in places].__getitem__)
        document, label = value_of(first, "document"), value_of(first, columns.sentence)
        document = str(number) if document in (None, "") else str(document)
        rows.append(
            TaggedSentence.of(words, [(SINGLE, tags)], places[0], document, "" if _is_empty(label) else str(label))
        )
    return TagFile(rows, [*notes, *(f"{table.path}: {note}" for note in tally.notes())], ())


def _sentences(table: Table, columns: Columns, tally: Tally) -> list[list[int]]:
    """The rows of each sentence, without those that have no word."""
    if columns.sentence:
        check_column(table, columns.sentence, "sentence")
    sentences: list[list[int]] = [[]]
    known: set[str | None] = set()
    label, line = None, 0
    for i, (row, place) in enumerate(zip(table.rows, table.places, strict=True)):
        word, here, before = value_of(row, columns.words), value_of(row, columns.sentence), line
        if columns.sentence:
            here = label if _is_empty(here) else str(here)
            begins = here != label
            if begins and here in known:
                tally.add(f"sentences whose {columns.sentence} was that of an earlier one, and are read apart", place)
            label = here
            known.add(label)
        else:
            line = int(place.rpartition(":")[2])
            begins = line > before + 1 or (_is_empty(word) and _is_empty(value_of(row, columns.tags)))
        if begins and sentences[-1]:
            sentences.append([])
        if not _is_empty(word):
            sentences[-1].append(i)
        elif columns.sentence or not begins:
            tally.add("rows without a word are left out", place)
    if not columns.sentence and len(sentences) == 1:
        raise InputError(
            f"{table.path}: a word a row, but nothing tells the sentences apart; set sentence to the column that does, "
            "or put blank lines between them"
        )
    return [sentence for sentence in sentences if sentence]


def _word(cell: TableCell) -> str:
    if not isinstance(cell.value, str):
        raise cell.error("is no text; set words to the column with the words")
    return surrogates.join(cell.value)


def _tag(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value != value
