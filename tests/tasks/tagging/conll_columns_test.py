"""Tagged sentences from columns: words and tags, one annotator or many, and faults."""

import gzip

import pytest

from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences

CROWD = "new ? B-X B-X\nyork ? I-X O\n\nin O ? ?\n\n"


def test_columns_of_conll(write):
    text = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nsays VBZ O\n\n\n \t\nPeter NNP B-PER\n-DOCSTART-\n# # O"
    rows = read(write("a.txt", text))
    assert sentences(rows) == ["EU/B-ORG says/O", "Peter/B-PER", "#/O"]
    assert [row.document for row in rows.rows] == ["1", "1", "2"]
    assert [row.place.rpartition(":")[2] for row in rows.rows] == ["3", "8", "10"]
    assert rows.rows[0].annotations == (("2", ("B-ORG", "O")),)
    assert says(str(rows.report), "2 -DOCSTART- lines")
    assert (rows.report.read, rows.report.kept) == (3, 3)


def test_comments_are_left_out_and_counted_and_a_word_stays_one(write):
    """By the number of fields; with as many, by the form "# key = value" or the lack of a tag."""
    text = (
        "# text = EU rejects # now\nEU NNP B-ORG\n# # O\n# said the editor of this file\n#rejects V O\n\n"
        "#begin document (a); part 000\n# id domain=en\n#hash N O\nb N B-X\n\n#end document\n# newdoc id=2\n# N O\n"
    )
    path = write("a.txt", text)
    rows = read(path)
    assert sentences(rows) == ["EU/B-ORG #/O #rejects/O", "#hash/O b/B-X", "#/O"]
    assert [row.document for row in rows.rows] == ["0", "1", "2"]
    assert says(str(rows.report), f"comment lines (#) are left out: 6 (first {path}:1)")
    plain = write("b.txt", "# x=1 NN\na b NN\n# # SYM\n\n# 5 CD\n")
    assert sentences(read(plain, scheme="plain")) == ["a/NN #/SYM", "#/CD"]
    assert [row.words for row in read(write("c.txt", "# text = a b\na\n#\n\n#\nb\n"), "no").rows] == [
        ("a", "#"), ("#", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["-DOCSTART-", "-DOCSTART- -X- -X- O O", "-DOCSTART- (1)", "-DOCSTART-\tO"])
@pytest.mark.parametrize("delimiter", ["", "tab"])
def test_a_document_begins_whatever_columns_its_line_has(write, line, delimiter):
    rows = read(write("a.txt", f"{line}\na\tO\n{line}\n\nb\tO\nc\tO\n"), delimiter=delimiter)
    assert sentences(rows) == ["a/O", "b/O c/O"]
    assert [row.document for row in rows.rows] == ["1", "2"]


def test_blanks_between_columns_as_in_conll_2002_and_ontonotes(write):
    assert sentences(read(write("a.txt", "Melbourne NP B-LOC \n( Fpa O\n"))) == ["Melbourne/B-LOC (/O"]
    rows = read(
        write("b.txt", "bc/cctv/00   0   0   In   IN   O\nbc/cctv/00   0   1   June   NN   B-DATE  \n"), words="3"
    )
    assert sentences(rows) == ["In/O June/B-DATE"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_and_odd_characters(write, ending, packed):
    """U+0085, U+2028 and U+00A0 stay in the word, a zero-width word is one, a BOM is none."""
    lines = ["\ufeffa\u0085b\tB-X", "\u200b \t O", "c\u2028d  I-X", "", "e\u00a0f\x0bg O"]
    content = ending.join(lines).encode()
    rows = read(write("a.conll.gz", gzip.compress(content)) if packed else write("a.conll", content))
    assert [row.words for row in rows.rows] == [("a\u0085b", "\u200b", "c\u2028d"), ("e\u00a0f\x0bg",)]
    assert [row.document for row in rows.rows] == ["1", "2"]


def test_columns_in_any_order_and_with_a_delimiter(write):
    path = write("a.tsv", "B-X\tNew York \t1\nO\tis\t2\n\t\nO\tbig\t1\n")
    assert sentences(read(path, words="1", tags="0", delimiter="tab")) == ["New York/B-X is/O", "big/O"]
    assert sentences(read(path, words="-2", tags="-3", delimiter="\t")) == ["New York/B-X is/O", "big/O"]
    assert sentences(read(write("b.txt", "a|O\n b |B\n"), delimiter="|")) == ["a/O b/B"]


def test_plain_tags_are_left_alone(write):
    path = write("a.txt", "a DT\nb I-X\nc b_x\n")
    assert sentences(read(path, scheme="plain")) == ["a/DT b/I-X c/b_x"]
    assert says(refused(path), "a.txt:1: column 1: 'DT' is no tag")


def test_iob1_becomes_iob2(write):
    path = write("a.txt", "f O\n\na I-X\nb B-X\nc I-X\nd O\n\ne I-Y\n")
    for scheme in ("auto", "iob1"):
        rows = read(path, scheme=scheme)
        assert sentences(rows) == ["f/O", "a/B-X b/B-X c/I-X d/O", "e/B-Y"]
        assert ("IOB1" in str(rows.report)) == (scheme == "auto")
    assert says(str(read(path, scheme="iob2").report), "2 tags I ... a.txt:3")


def test_crowd_columns_are_known_by_their_empty_cells(write):
    rows = read(write("a.txt", CROWD))
    assert [row.annotations for row in rows.rows] == [
        (("2", ("B-X", "I-X")), ("3", ("B-X", "O"))),
        (("1", ("O",)),),
    ]
    assert says(str(rows.report), "columns 1 to 3 ... (tags 1-)")
    assert read(write("a.txt", CROWD), tags="1-").rows == rows.rows
    assert sentences(read(write("b.txt", CROWD.replace("?", "_")), empty="_")) == sentences(rows)
    assert sentences(read(write("c.txt", "a ? O\n"), tags="1-", empty="", scheme="plain")) == ["a/?/O"]


def test_crowd_columns_that_are_chosen(write):
    path = write("a.txt", CROWD)
    assert sentences(read(path, tags="2-3")) == ["new/B-X/B-X york/I-X/O"]
    for annotators in ("3", "-1,-2"):
        rows = read(path, annotators=annotators)
        assert sentences(rows) == ["new/B-X york/O"]
        assert {name for row in rows.rows for name, _ in row.annotations} == {"3"}
        assert dict(rows.report.dropped) == {"no tags": (1, f"{path}:4")}
    column = read(path, tags="2")  # one column, so nobody to choose from
    assert read(path, tags="2", annotators="5").rows == column.rows
    assert says(str(read(path, tags="2", annotators="5").report), "annotators 5 is unused")


def test_other_columns_are_no_crowd(write):
    assert sentences(read(write("a.txt", "a NN O\n? ? O\n"))) == ["a/O ?/O"]
    rows = read(write("b.txt", "a B-NP NN B-X\n? O O O\n"))
    assert sentences(rows) == ["a/B-X ?/O"]
    assert says(str(rows.report), "columns 1, 3 have tags; the last is read")  # or gold tags beside predicted ones


def test_texts_that_are_not_cut_into_words_have_a_way_out(write):
    text = write("a.txt", "Anna sat.\nShe sat by the window.\n")
    assert says(refused(text, "no"), 'a.txt:2 ... {"text": "..."}')
    assert sentences(read(write("a.jsonl", '{"text": "Anna sat."}\n'), "no")) == ["Anna sat ."]


def test_a_csv_with_a_sentence_a_row_and_other_names(write):
    path = write("a.csv", 'text,labels\n"Anna sat","B-PER O"\n')
    assert says(refused(path), "a.csv:2 ... set words and tags")
    assert sentences(read(path, words="text", tags="labels")) == ["Anna/B-PER sat/O"]


def test_a_partly_tagged_sentence_keeps_its_words(write):
    rows = read(write("a.txt", "a ? B-X\nb O ?\nc O I-X\n"))
    assert rows.rows[0].annotations == (("1", (None, "O", "O")), ("2", ("B-X", None, "I-X")))


def test_files_without_tags(write):
    words = write("a.txt", "a\nb\n\nc\n")
    for labelled in ("no", "if there"):
        assert sentences(read(words, labelled)) == ["a b", "c"]
    assert says(refused(words), "a.txt: tags is -1, but lines have 1 column (")
    assert [row.words for row in read(write("d.txt", "\u00a0\n\u2003\n"), "no").rows] == [("\u00a0", "\u2003")]
    odd = write("b.txt", "a b_x\n\nc ?\n")
    assert sentences(read(odd, "no")) == ["a", "c"]
    rows = read(write("c.txt", "a ?\n\nb O\n"), "if there")
    assert sentences(rows) == ["a", "b/O"]
    assert says(str(rows.report), "1 sentences have no tags ... c.txt:1")


LINE_FAULTS = [
    ("a O\nb\nc O\n", {}, ":2: 1 field ... 2 ... line 1 ... 'b'"),
    ("a\nb O\nc O\n", {}, ":1: 1 field ... 2 ... line 2 ... 'a'"),
    ("a X O\nb O\n\nc O\nd O\n", {}, ":1: 3 fields ... 2 ... line 2"),
    ("a O\n\nNew York\tO\nb O\n", {}, ":3: 3 fields ... 2 ... delimiter to tab"),
    ("a O\n#b c O\nd O\n", {}, ":2: 3 fields ... 2 ... comment"),
    (
        "# global.columns = ID FORM NER\n1 a O\n2 b O\n\n1 c O\n",
        {},
        ": column 0 ... numbers of the words ... set words",
    ),
    ("a 0\nb 3\n", {}, ":1: column 1: '0' is a number ... tag_names"),
    ("a 0\nb 3\n", {"tag_names": "O,B,I"}, ":2: column 1: '3' ... 3 names"),
    ("a S\nb M\nc L\n", {}, ": tags begin with L, M, S alone ... plain"),
    ("a S-X\n", {"scheme": "iob2"}, ":1: column 1: 'S-X' is no tag of iob2"),
    ("a E-X\n\nb L-X\n", {}, ":3: a tag begins with L ... E ... a.txt:1 ... plain"),
    ("a O\nb B_PER\n", {}, ":2: column 1: 'B_PER' is no tag"),
    ("a O\nb b-per\n", {}, ":2: column 1: 'b-per' is no tag"),
    ("a ? O\nb ? x\n", {"tags": "1-"}, ":2: column 2: 'x' is no tag"),
    ("a\tO\n\tO\n", {"delimiter": "tab"}, ":2: the word (column 0) is empty"),
    ("a\tO\nb\t\n", {"delimiter": "tab"}, ":2: column 1: a tag is empty"),
    ("a O\n\nb B\n\nc B-X\n", {}, ":5: B-X ... type ... B has none"),
    ('{"tokens": ["a"], "tags": ["O"]}\n', {}, ":1: ... json ... lines"),
    ("a O\n", {"words": "2"}, ": words ... column 2 ... have 2"),
    ("a O\n", {"words": "word"}, ": words 'word' ... number"),
    ("a O\n", {"tags": "tag"}, ": tags 'tag' ... number"),
    ("a O\n", {"tags": "0"}, ": words and tags ... column 0"),
    ("a O\n", {"tags": "3"}, ": tags is 3 ... 2 columns"),
    ("a O O\n", {"tags": "2-3"}, ": tags is 2-3 ... 3 columns"),
    ("a O O\n", {"tags": "0-1"}, ": tags 0-1 ... column 0"),
    ("a ? ?\n", {}, ": none of 1 sentences ... no tags: 1"),
    ("\n -DOCSTART- O\n\n", {}, ": no sentences"),
    ("", {}, ": no sentences"),
    ("a O ?\n", {"annotators": "3"}, ": no annotator '3' ... 1, 2"),
    ("a O ?\n", {"annotators": "1,-2"}, "annotators '1,-2' ... not both"),
    (b"a O\ncaf\xe9 O\n", {}, "byte 7 (line 2): 0xE9"),
]


@pytest.mark.parametrize(("content", "settings", "pieces"), LINE_FAULTS)
def test_a_fault_in_columns_has_one_line(write, content, settings, pieces):
    assert says(refused(write("a.txt", content), **settings), pieces)
