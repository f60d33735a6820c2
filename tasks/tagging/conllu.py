"""Reads CoNLL-U: ten columns with tabs between them, comments with #, blank lines between sentences.

Words are the lines with a whole number as ID, in the column FORM. Multiword ranges (3-4) and empty nodes (5.1) are left
out, and counted. "# newdoc" begins a document, "# sent_id" is the id of a sentence.

Tags are entities from MISC (NER=B-PER), UPOS or XPOS, as the setting ``tags`` says. "_" is a missing tag. A word
without the key in MISC is outside of all entities if the file writes no O, else its tag is missing.

Source: universaldependencies.org/format.html.
"""

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert.corpus.corpus_files import endings_of
from bert.errors import InputError, listed
from tasks.files.annotators import SINGLE
from tasks.files.cells import TableCell
from tasks.files.reports import Tally
from tasks.files.text_lines import read_lines
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, read_tags

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM, MISC = COLUMNS.index("form"), COLUMNS.index("misc")
KEY = "NER"  # of MISC, where tags names nothing else
_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


class _Sentence(NamedTuple):
    id: str
    document: str
    lines: list[int]
    words: list[list[str]]  # the columns of each


def is_conllu(path: str, settings: TagSettings) -> bool:
    """Whether a file is called so, or its first line that is neither blank nor a comment has ten columns and an ID."""
    if endings_of(pathlib.Path(path))[0] == ".conllu":
        return True
    for line in read_lines(path, settings.encoding):
        if line.strip() and not line.startswith("#"):
            fields = line.split("\t")
            return len(fields) == len(COLUMNS) and bool(_ID.fullmatch(fields[0]))
    return False


def read_conllu(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of a file, each with one annotator."""
    tally = Tally()
    sentences = list(_sentences(path, settings, tally))
    words = [[fields[FORM] for fields in sentence.words] for sentence in sentences]
    tags: list[list[str | None]] = [[None] * len(row) for row in words]
    if labelled != "no":
        tags = _tags(path, sentences, settings, labelled, tally)
    rows = []
    for sentence, row, cells in zip(sentences, words, tags, strict=True):
        places = [f"{path}:{line}" for line in sentence.lines]
        annotations = [(SINGLE, read_tags(cells, settings, places.__getitem__))]
        rows.append(TaggedSentence.of(tuple(row), annotations, places[0], sentence.document, sentence.id))
    return TagFile(rows, [f"{path}: {note}" for note in tally.notes()], ())


def _sentences(path: str, settings: TagSettings, tally: Tally) -> Iterator[_Sentence]:
    identity, number, documents = "", 0, 0
    lines: list[int] = []
    words: list[list[str]] = []
    for line_number, line in enumerate([*read_lines(path, settings.encoding), ""], 1):
        place = f"{path}:{line_number}"
        if not line.strip():
            if words:
                number += 1
                yield _Sentence(identity, f"document {documents}" if documents else str(number), lines, words)
            identity, lines, words = "", [], []
        elif line.startswith("#"):
            tally.add("comment lines (#) are left out", place)
            documents += bool(re.match(r"#\s*newdoc\b", line))
            match = re.match(r"#\s*sent_id\s*=\s*(.*\S)", line)
            identity = match[1] if match else identity
        else:
            fields = [field.strip(" ") for field in line.split("\t")]
            if len(fields) != len(COLUMNS):
                raise InputError(
                    f"{place}: {len(fields)} fields, where CoNLL-U has {len(COLUMNS)} with tabs between them; mend the "
                    "line, or set format to columns"
                )
            match = _ID.fullmatch(fields[0])
            if not match:
                raise TableCell(f"{place}: ID", fields[0]).error("must be like 3, 3-4 or 5.1; correct it")
            if match[1]:
                kind = "multiword ranges (3-4)" if match[1][0] == "-" else "empty nodes (5.1)"
                tally.add(f"{kind} are left out", place)
                continue
            if not fields[FORM]:
                raise InputError(f"{place}: FORM is empty; write the word, or take the line out")
            lines.append(line_number)
            words.append(fields)


def _tags(
    path: str, sentences: Sequence[_Sentence], settings: TagSettings, labelled: str, tally: Tally
) -> list[list[str | None]]:
    """A tag for each word; all None where there are none and none are needed."""
    name = settings.tags.lower()
    column = COLUMNS.index(name) if name in COLUMNS else int(name) if re.fullmatch(r"[0-9]", name) else None
    if column is not None:
        return [[None if row[column] == "_" else row[column] for row in sentence.words] for sentence in sentences]
    key = KEY if settings.tags == "-1" else settings.tags
    values = [[_misc(row).get(key) for row in sentence.words] for sentence in sentences]
    written = {tag for row in values for tag in row if tag is not None}
    if sentences and not written and labelled == "needed":
        keys = dict.fromkeys(key for sentence in sentences for row in sentence.words for key in _misc(row))
        raise InputError(
            f"{path}: no {key}= in MISC (its keys are {listed(keys, 8) or 'none'}); set tags to one of them, or to "
            "upos or xpos (with scheme plain)"
        )
    outside = "O" if written and "O" not in written else None
    for sentence, row in zip(sentences, values, strict=True):
        if None in row and outside:
            place = f"{path}:{sentence.lines[row.index(None)]}"
            tally.add(f"words without {key}= in MISC are O, which the file does not write", place, row.count(None))
    return [[outside if tag is None else None if tag == "_" else tag for tag in row] for row in values]


def _misc(row: list[str]) -> dict[str, str]:
    """Key -> value of the column MISC."""
    pairs = (part.partition("=") for part in row[MISC].split("|") if "=" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}
