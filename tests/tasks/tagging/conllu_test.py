"""Tagged sentences from CoNLL-U: what is a word, tags of its columns, and faults."""

import pytest

from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences


def line(identity, form, upos="_", xpos="_", misc="_"):
    return "\t".join([str(identity), form, "_", upos, xpos, "_", "_", "_", "_", misc])


SPANISH = "\n".join([
    "# newdoc id = d1", "# sent_id = s1", "# text = Vámonos al mar, Ana",
    line("1-2", "Vámonos"), line(1, "Vamos", "VERB", "V"), line(2, "nos", "PRON", misc="NER=O"),
    line("2.1", "todos"), line(3, "New York", "PROPN", "N", "SpaceAfter=No|NER=B-LOC"),
    line(4, "#", "SYM", misc="NER=O"),
    "", "# sent_id = s2", "# newdoc", line(1, "_", "X", misc="NER=B-PER"), "",
])  # fmt: skip


@pytest.mark.parametrize("name", ["a.conllu", "a.txt"])
def test_words_are_the_lines_with_whole_numbers(write, name):
    path = write(name, SPANISH)
    rows = read(path)
    assert sentences(rows) == ["Vamos/? nos/O New York/B-LOC #/O", "_/B-PER"]
    assert [(row.id, row.place) for row in rows.rows] == [("s1", f"{path}:5"), ("s2", f"{path}:13")]
    assert len({row.document for row in rows.rows}) == 2
    assert says(str(rows.report), "comment lines (#) are left out: 5 ... ranges (3-4) are left out: 1 ... (5.1) ... 1")
    assert says(str(rows.report), "1 words have no tag")
    assert [row.words for row in read(path, "no").rows] == [row.words for row in rows.rows]


def test_a_document_has_all_sentences_up_to_the_next_and_an_id_is_of_one_alone(write):
    words = [line(1, "a", misc="NER=B-X"), f"{line(1, 'b', misc='NER=_')}\n{line(2, 'c', misc='NER=O')}", line(1, "d")]
    path = write("a.conllu", f"# newdoc\n# sent_id = s1\n{words[0]}\n\n{words[1]}\n\n# newdoc\n{words[2]}\n")
    rows = read(path, "if there")
    assert sentences(rows) == ["a/B-X", "b/? c/O", "d"]
    first, second, third = (row.document for row in rows.rows)
    assert first == second != third
    assert [row.id for row in rows.rows] == ["s1", "", ""]


def test_a_word_without_the_key_is_outside_where_no_o_is_written(write):
    path = write("a.conllu", SPANISH.replace("NER=O", "_"))
    rows = read(path)
    assert sentences(rows)[0] == "Vamos/O nos/O New York/B-LOC #/O"
    assert says(str(rows.report), f"without NER= in MISC are O ... 3 (first {path}:5)")


def test_parts_of_speech_and_other_keys(write):
    path = write("a.conllu", SPANISH)
    assert sentences(read(path, tags="upos", scheme="plain"))[0] == "Vamos/VERB nos/PRON New York/PROPN #/SYM"
    rows = read(path, tags="xpos", scheme="plain")
    assert sentences(rows) == ["Vamos/V nos/? New York/N #/?"]
    assert says(str(rows.report), "dropped 1: no tags ... 2 words have no tag")
    assert sentences(read(path, tags="3", scheme="plain")) == sentences(read(path, tags="upos", scheme="plain"))


FAULTS = [
    (SPANISH, {"tags": "upos"}, ":5: 'VERB' is no tag ... plain"),
    (SPANISH, {"tags": "Entity"}, ": no Entity= in MISC (its keys are NER, SpaceAfter) ... upos"),
    (line(1, "a"), {}, ": no NER= in MISC (its keys are none) ... upos"),
    (f"{line(1, 'a')}\n{line(2, 'b')}\tc\n{line(3, 'c')}\n", {}, ":2: 11 fields ... 10"),
    ("1\ta\n2\tb\n", {}, ":1: 2 fields ... 10"),
    (f"{line(1, 'a')}\n{line('b', 'b')}\n", {}, ":2: ID: 'b' ... 3-4"),
    (f"{line(1, 'a')}\n{line(2, '')}\n", {}, ":2: FORM is empty"),
    ("# text = a\n\n", {"format": "conllu"}, ": no sentences"),
]


@pytest.mark.parametrize(("content", "settings", "pieces"), FAULTS)
def test_a_fault_in_conllu_has_one_line(write, content, settings, pieces):
    assert says(refused(write("a.conllu", content), **settings), pieces)
