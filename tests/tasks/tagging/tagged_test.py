"""Tagged sentences from columns, json lines and folders of workers: small files, faults, and real data."""

import collections
import gzip
import json
import re
import tarfile

import numpy as np
import pytest

from tasks.tagging.tagged import TagSettings, read_tagged, split
from tests.tasks.one_line import message_of, says

CROWD = "new ? B-X B-X\nyork ? I-X O\n\nin O ? ?\n\n"


def read(path, labelled="needed", **settings):
    return read_tagged(path, TagSettings(**settings), labelled=labelled)


def refused(path, labelled="needed", **settings):
    return message_of(lambda: read(path, labelled, **settings))


def sentences(rows):
    """Rows as "word/tag/tag ..." with a tag of each annotator."""
    return [
        " ".join("/".join([word, *(tags[i] or "?" for _, tags in row.annotations)]) for i, word in enumerate(row.words))
        for row in rows.rows
    ]


def test_columns_of_conll(write):
    text = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nsays VBZ O\n\n\n \t\nPeter NNP B-PER\n-DOCSTART-\n# # O"
    rows = read(write("a.txt", text))
    assert sentences(rows) == ["EU/B-ORG says/O", "Peter/B-PER", "#/O"]
    assert [row.document for row in rows.rows] == ["1", "1", "2"]
    assert [row.place.rpartition(":")[2] for row in rows.rows] == ["3", "8", "10"]
    assert rows.rows[0].annotations == (("2", ("B-ORG", "O")),)
    assert says(str(rows.report), "2 -DOCSTART- lines")
    assert (rows.report.read, rows.report.kept) == (3, 3)


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
    assert sentences(read(write("b.txt", "a B-NP B-X\n? O O\n"))) == ["a/B-X ?/O"]


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
    ("a O\n\nNew York\tO\n", {}, ":3: 3 fields ... 2 ... delimiter to tab"),
    ("# sent 1 is\na O\n", {}, ":2: 2 fields ... 4"),
    ("a O\n# sent 1 is\n", {}, ":2: ... comment"),
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


def test_json_lines(write):
    lines = [
        {"tokens": ["new", "\u200b", "york"], "tags": ["B-X", "O", None], "document": "d"},
        {"tokens": ["a"], "tags": None, "document": "d"},
        {"tokens": [], "tags": []},
        {"tokens": ["\ud800b"], "tags": ["?"]},
        {"tokens": ["b"], "tags": ["O"]},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, lines)))
    rows = read(path)
    assert sentences(rows) == ["new/B-X \u200b/O york/?", "b/O"]
    assert rows.rows[0].annotations[0][0] == "1"
    assert [row.document for row in rows.rows] == ["d", "5"]
    assert dict(rows.report.dropped) == {"no words": (1, f"{path}:3"), "no tags": (2, f"{path}:2")}
    assert [row.words for row in read(path, "no").rows][2:4] == [(), ("\ufffdb",)]
    listed = [{"w": line["tokens"], "t": line["tags"]} for line in lines]
    assert sentences(read(write("b.json", json.dumps(listed)), words="w", tags="t")) == sentences(rows)


def test_json_lines_with_annotators(write):
    ann = {"annotator": "ann", "tags": ["B", "I"]}
    bob = {"annotator": 7, "tags": ["O", None]}
    lines = [
        {"tokens": ["a", "b"], "annotations": [ann, bob]},
        {"tokens": ["c", "d"], "annotations": [bob]},
        {"tokens": ["e"], "annotations": []},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, lines)))
    rows = read(path)
    assert rows.rows[0].annotations == (("ann", ("B", "I")), ("7", ("O", None)))
    assert sentences(rows) == ["a/B/O b/I/?", "c/O d/?"]
    assert sentences(read(path, annotators="-7")) == ["a/B b/I"]
    both = write("b.jsonl", json.dumps(lines[0] | {"tags": ["O", "B"]}))
    assert says(refused(both), "holds both tags and annotations; set tags")
    assert sentences(read(both, tags="tags")) == ["a/O b/B"]
    assert sentences(read(both, tags="annotations")) == ["a/B/O b/I/?"]


JSON_FAULTS = [
    ({"tokens": ["a"], "tags": [3]}, ":1: tags: tag 1 is 3 ... names"),
    ({"tokens": ["a"], "tags": ["O", "O"]}, ":1: tags: 2 tags for 1 words"),
    ({"tokens": ["a"], "tags": "O"}, ":1: tags: 'O' is no list"),
    ({"tokens": ["a"], "tags": ["B_X"]}, ":1: tags: tag 1: 'B_X' is no tag"),
    ({"tokens": "a b", "tags": ["O"]}, ":1: tokens: 'a b' is no list"),
    ({"tokens": ["a", ""], "tags": ["O", "O"]}, ":1: tokens: word 2 is ''"),
    ({"tokens": ["a", 5], "tags": ["O", "O"]}, ":1: tokens: word 2 is 5"),
    ({"words": ["a"], "tags": ["O"]}, ": no column 'tokens' ... set words"),
    ({"tokens": ["a"]}, ": no column 'tags' ... set tags"),
    ({"tokens": ["a"], "annotations": [{"tags": ["O"]}]}, ":1: annotations: annotation 1: {'tags': ['O']}"),
    ({"tokens": ["a"], "annotations": [{"annotator": None, "tags": ["O"]}]}, "annotation 1: annotator is None"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": ["O"]}] * 2}, "annotation 2: ... 'x' ... twice"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": []}]}, "annotation 1: 0 tags for 1 words"),
]


@pytest.mark.parametrize(("line", "pieces"), JSON_FAULTS)
def test_a_fault_in_json_has_one_line(write, line, pieces):
    assert says(refused(write("a.jsonl", json.dumps(line))), pieces)


def workers(write, truth=True):
    """A folder of three workers: two documents, of one a worker has glued a word, of one a line has no word."""
    for name, content in {
        "crowd/ann/d1.txt": "\na B-X\nb I-X\n\nc O\n",
        "crowd/bob/d1.txt": "a O\nb O\n\nc O\n\n",
        "crowd/cid/d1.txt": "a/B O\nb O\n\nc O\n",
        "crowd/ann/d2.txt": " B-X\nd O\n",
        "crowd/bob/d2.txt": "d O\ne O\n",
        "crowd/cid/d2.txt": "de O\n",
        **({"ground_truth/d1.txt": "a B-X\nb I-X\n\nc O\n", "ground_truth/d2.txt": "d B-Y\n"} if truth else {}),
    }.items():
        path = write(name, content)
    return path[: path.rindex("/crowd/" if not truth else "/ground_truth/")]


def test_workers_with_the_truth_beside_them(write):
    top = workers(write)
    write("crowd/ann/.DS_Store", b"\0")
    write("crowd/.old/d1.txt", "a O\nb O\n\nc O\n")
    write("crowd/ann/d3.txt", "f O\n")
    for path in (top, f"{top}/crowd"):
        rows = read(path)
        assert sentences(rows) == ["a/B-X/O b/I-X/O", "c/O/O"]
        assert [name for name, _ in rows.rows[0].annotations] == ["ann", "bob"]
        assert [row.document for row in rows.rows] == ["d1", "d1"]
        said = str(rows.report)
        assert says(said, "3 rows read, 2 kept; dropped 1: no tags ... ground_truth/d2.txt:1")
        assert says(said, "2 files of 3 workers on 2 documents are used")
        assert says(said, "dropped 1 files ... no word ... crowd/ann/d2.txt:1")
        assert says(said, "dropped 3 files ... cid/d1.txt:1, 'a/B' for 'a'")
        assert says(said, "dropped 1 files ... no such document ... ann/d3.txt")
        assert sentences(read(path, annotators="bob,ground_truth"))[0] == "a/O/B-X b/O/I-X"
        assert sentences(read(path, annotators="ground_truth")) == ["a/B-X b/I-X", "c/O", "d/B-Y"]
        assert sentences(read(path, "no")) == ["a b", "c", "d"]
    assert says(refused(top, annotators="dan"), "no annotator 'dan' ... ann, bob")
    write("crowd/bob/d1.txt", "a O\nb O\n\n\nc X\n")
    assert says(refused(top), "bob/d1.txt:5: 'X' is no tag")


def test_workers_without_the_truth(write):
    """The words of most are right; where no two agree, those of the first."""
    rows = read(f"{workers(write, truth=False)}/crowd")
    assert sentences(rows) == ["a/B-X/O b/I-X/O", "c/O/O", "d/O e/O"]
    assert says(str(rows.report), "in 1 documents no words have most files")
    assert says(str(rows.report), "dropped 2 files ... most workers")


def test_folders_and_files_that_are_none_of_these(write, tmp_path):
    top = workers(write)
    assert says(refused(f"{top}/no_such"), "no_such: no such file or folder")
    assert says(refused(f"{top}/ground_truth"), "ground_truth: holds no folder for each worker")
    write("val/crowd/ann/d.txt", "a O\n")
    write("test/crowd/ann/d.txt", "a O\n")
    assert says(refused(str(tmp_path)), "holds folders of folders (crowd, test, val)")
    assert says(refused(write("a.txt", "a O\n"), format="workers"), "is no folder, but format is workers")
    assert says(refused(top, format="columns"), "is a folder, but format is columns")
    assert says(refused(write("a.tar.gz", b"")), ".tar files are not read ... unpack it first")
    assert says(refused(write("a.parquet", b"PAR1")), "parquet ... jsonl")
    assert says(refused(write("b.txt", gzip.compress(b"a O\n"))), "is packed by gzip")
    write("ground_truth/d2.txt", "d\n")
    assert says(refused(f"{top}/crowd"), "ground_truth/d2.txt:1: ... no word")


def test_labelled_is_one_of_three(write):
    assert says(refused(write("a.txt", "a O\n"), "yes"), "labelled is 'yes'")


def test_a_split_cuts_no_document_apart(write):
    text = "".join(f"-DOCSTART- O\n\na{n} O\n\n" + "b O\n\n" * (n % 4) for n in range(40))
    rows = read(write("a.txt", text))
    train, validation = split(rows, 0.25, seed=3)
    assert sorted(train.rows + validation.rows) == sorted(rows.rows)
    assert not {row.document for row in train.rows} & {row.document for row in validation.rows}
    assert abs(len(validation.rows) - 25) <= 2  # of 100
    for part in (train, validation):
        lines = [int(row.place.rpartition(":")[2]) for row in part.rows]
        assert lines == sorted(lines)
        report = part.report
        assert (report.read, report.kept, report.dropped) == (100, len(part.rows), {})
        assert sum(report.elsewhere.values()) == 100 - len(part.rows)
    assert split(rows, 0.25, seed=3)[1].rows == validation.rows
    assert split(rows, 0.25, seed=4)[1].rows != validation.rows
    for share in (0.001, 0.999):
        assert all(part.rows for part in split(rows, share, seed=0))
    assert says(message_of(split, rows, 1, 0), "share is 1; ... below 1")
    single = read(write("b.txt", "-DOCSTART- O\n\na O\n\nb O\n"))
    assert [len(part.rows) for part in split(single, 0.5, 0)] == [1, 1]  # its sentences
    one = read(write("c.txt", "-DOCSTART- O\n\na O\n"))
    assert says(message_of(split, one, 0.5, 0), "only one sentence")


def test_equal_sentences_and_equal_documents_stay_in_one_part(write):
    """Sentences that are no document's, and documents; on request as it was before."""
    lines = "".join(f"word{n} O\n{'X' if copy else 'x'} O\n\n" for copy in range(2) for n in range(30))
    documents = "".join(f"-DOCSTART- O\n\na{n} O\n\nsame O\n\n" for n in range(20)) * 2
    for name, text in (("a.txt", lines), ("b.txt", documents)):
        rows = read(write(name, text))
        train, validation = split(rows, 0.2, seed=1)
        seen = [{row.words for row in part.rows if row.words != ("same",)} for part in (train, validation)]
        seen = [{tuple(word.lower() for word in words) for words in part} for part in seen]
        assert seen[1]
        assert not seen[0] & seen[1]
        assert abs(len(validation.rows) - 0.2 * len(rows.rows)) <= 1
        assert any("stay in one part" in note for note in train.report.notes)
        apart = split(rows, 0.2, seed=1, equal_apart=True)
        names = np.unique([row.document for row in rows.rows])
        chosen = names[np.random.default_rng(1).permutation(len(names))[: len(names) // 5]]
        assert {row.document for row in apart[1].rows} == set(chosen)
    single = read(write("c.txt", "-DOCSTART- O\n\na O\n\nA O\n"))
    assert [len(part.rows) for part in split(single, 0.5, 0)] == [1, 1]  # all are equal


def test_both_schemes_of_conll_2003_are_one_data_set(shared):
    """eng.testa is the same text as valid.txt, in IOB1."""
    folder = shared / "data" / "conll2003"
    iob2, iob1 = read(folder / "valid.txt.gz"), read(folder / "eng.testa.gz")
    assert says(str(iob1.report), "the scheme is IOB1")
    assert "IOB1" not in str(iob2.report)
    assert [row[:2] for row in iob1.rows] == [row[:2] for row in iob2.rows]
    assert len(iob2.rows) == 3_250
    assert sum(len(row.words) for row in iob2.rows) == 51_362
    assert len({row.document for row in iob2.rows}) == 216
    columns = read(shared / "data" / "crowd_conll_columns" / "dev.bio.gz")
    assert [row.words for row in columns.rows] == [row.words for row in iob2.rows]


def test_the_votes_of_crowd_columns_give_the_published_majority(shared):
    folder = shared / "data" / "crowd_conll_columns" / "small"
    votes, majority, truth = (
        read(folder / name, scheme="plain") for name in ("answers.txt.gz", "mv.txt", "ground_truth.txt")
    )
    assert len(votes.rows) == 2_192
    assert {len(row.annotations) for row in votes.rows} == set(range(2, 9))
    assert len({name for row in votes.rows for name, _ in row.annotations}) == 47
    clear = total = right = 0
    for row, chosen, true in zip(votes.rows, majority.rows, truth.rows, strict=True):
        assert row.words == chosen.words == true.words
        for i, (tag, gold) in enumerate(zip(chosen.annotations[0][1], true.annotations[0][1], strict=True)):
            ranked = [*collections.Counter(tags[i] for _, tags in row.annotations).most_common(2), (None, 0)]
            total, right = total + 1, right + (tag == gold)
            if ranked[0][1] > ranked[1][1]:
                clear += 1
                assert ranked[0][0] == tag
    assert (total, clear) == (30_961, 29_980)
    assert round(right / total, 3) == 0.933  # as the data's description says


def test_the_raw_files_of_workers(shared, tmp_path):
    """806 of 1,964 files have the words of the truth; the numbers of documents and words are those published."""
    with tarfile.open(shared / "data" / "ner_mturk" / "task1.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    used = lost = 0
    for part, words in (("val", 40_360), ("test", 42_598)):
        path = str(tmp_path / "task1" / part)
        rows = read(path)
        said = str(rows.report)
        used += int(re.search(r"([\d,]+) files of 4[67] workers", said)[1])
        lost += sum(int(n) for n in re.findall(r"dropped (\d+) files of workers", said))
        truth = read(path, annotators="ground_truth")
        assert sum(len(row.words) for row in truth.rows) == words
        known = {row.place: row.words for row in truth.rows}
        assert all(known[row.place] == row.words for row in rows.rows)
        assert rows.report.kept == len(rows.rows) < rows.report.read == len(truth.rows)
    assert (used, lost) == (806, 1_964 - 806)
