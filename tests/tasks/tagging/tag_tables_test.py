"""Tagged sentences from json lines and other tables, and faults."""

import csv
import json

import datasets
import pyarrow
import pytest
from pyarrow import feather

from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences


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
    assert says(str(rows.report), "1 sentences held unpaired surrogates")
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
    ({"tokens": ["a"], "tags": [3]}, ":1: tags: tag 1: 3 ... tag_names"),
    ({"tokens": ["a"], "tags": ["O", "O"]}, ":1: tags: 2 tags for 1 words"),
    ({"tokens": ["a"], "tags": "O"}, ":1: tags: 'O' is no list"),
    ({"tokens": ["a"], "tags": ["B_X"]}, ":1: tags: tag 1: 'B_X' is no tag"),
    ({"tokens": "a b", "tags": ["O"]}, ":1: tokens: 'a b' is no list"),
    ({"tokens": ["a", ""], "tags": ["O", "O"]}, ":1: tokens: word 2 is ''"),
    ({"tokens": ["a", 5], "tags": ["O", "O"]}, ":1: tokens: word 2 is 5"),
    ({"forms": ["a"], "tags": ["O"]}, ": no column 'tokens' ... set words"),
    ({"tokens": ["a"]}, ": no column 'tags' ... set tags"),
    ({"tokens": ["a"], "annotations": [{"tags": ["O"]}]}, ":1: annotations: annotation 1: {'tags': ['O']}"),
    ({"tokens": ["a"], "annotations": [{"annotator": None, "tags": ["O"]}]}, "annotation 1: annotator is None"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": ["O"]}] * 2}, "annotation 2: ... 'x' ... twice"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": []}]}, "annotation 1: 0 tags for 1 words"),
]


@pytest.mark.parametrize(("line", "pieces"), JSON_FAULTS)
def test_a_fault_in_json_has_one_line(write, line, pieces):
    assert says(refused(write("a.jsonl", json.dumps(line))), pieces)


NAMES = ("O", "B-PER", "I-PER")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A data set as those of the hub: numbers of parts of speech and of entities, saved in each way of `datasets`."""
    folder = tmp_path_factory.mktemp("saved")
    features = datasets.Features({
        "id": datasets.Value("string"), "tokens": datasets.List(datasets.Value("string")),
        "pos_tags": datasets.List(datasets.ClassLabel(names=["NN", "VB"])),
        "ner_tags": datasets.List(datasets.ClassLabel(names=list(NAMES))),
    })  # fmt: skip
    rows = {"id": ["7", "8"], "tokens": [["Ann", "Lee", "sat"], ["no"]], "pos_tags": [[0, 0, 1], [1]]}
    data = datasets.Dataset.from_dict(rows | {"ner_tags": [[1, 2, -100], [0]]}, features=features)
    data.save_to_disk(folder / "one")
    datasets.DatasetDict(train=data, validation=data).save_to_disk(folder / "two")
    datasets.DatasetDict(train=data).save_to_disk(folder / "single")
    data.to_parquet(folder / "a.parquet")
    feather.write_feather(data.data.table, folder / "file.arrow")
    (folder / "stream.arrow").write_bytes(next((folder / "one").glob("*.arrow")).read_bytes())
    data.to_json(folder / "numbers.jsonl")
    data.to_pandas().to_csv(folder / "numpy.csv", index=False)
    data.to_csv(folder / "lists.csv")
    data.to_pandas().to_parquet(folder / "numbers.parquet")
    return folder


@pytest.mark.parametrize("name", ["one", "two/validation", "single", "a.parquet", "file.arrow", "stream.arrow"])
def test_numbers_get_the_names_that_datasets_wrote(saved, name):
    rows = read(saved / name)
    assert sentences(rows) == ["Ann/B-PER Lee/I-PER sat/?", "no/O"]
    assert [row.id for row in rows.rows] == ["7", "8"]
    assert says(str(rows.report), "column 'ner_tags' is read as the tags ... 1 words have no tag")
    assert sentences(read(saved / name, tags="pos_tags", scheme="plain")) == ["Ann/NN Lee/NN sat/VB", "no/VB"]


def test_a_folder_of_several_splits_names_them(saved):
    assert says(refused(saved / "two"), "two: holds the splits train, validation; name one, such as ... two/train")


@pytest.mark.parametrize("name", ["numbers.jsonl", "numbers.parquet", "lists.csv", "numpy.csv"])
def test_numbers_without_names_need_a_setting(saved, name):
    assert says(refused(saved / name), "ner_tags: tag 1: 1 ... set tag_names ... O,B-PER")
    assert sentences(read(saved / name, tag_names=",".join(NAMES))) == ["Ann/B-PER Lee/I-PER sat/?", "no/O"]
    assert says(refused(saved / name, tag_names="O,B-PER"), "ner_tags: tag 2: 2 is no number of the 2 names")
    assert [row.words for row in read(saved / name, "no").rows] == [("Ann", "Lee", "sat"), ("no",)]


def test_names_of_tags_that_have_names_are_told_to_have_no_effect(write):
    path = write("a.jsonl", '{"tokens": ["Ann", "sat"], "tags": ["B-PER", "O"]}\n')
    rows = read(path, tag_names="O,B-X")
    assert sentences(rows) == ["Ann/B-PER sat/O"]
    assert says(str(rows.report), "'B-PER' is none of tag_names ... a.jsonl:1")
    assert "tag_names" not in str(read(path, tag_names="O,B-PER").report)


def test_numbers_in_a_table_of_words_and_lists_that_tell_sentences(tmp_path):
    """A sentence goes on where its cell is missing; a cell of any type tells it. NaN is no tag, 1.0 the number 1."""
    path = tmp_path / "a.arrow"
    table = {"sentence": [[1], None, [2]], "word": ["Ann", "sat", "no"], "tag": [1.0, 0.0, float("nan")]}
    feather.write_feather(pyarrow.table(table), path)
    assert says(refused(path), "a.arrow: row 1: tag: 1 ... set tag_names")
    assert [row.words for row in read(path, "no").rows] == [("Ann", "sat"), ("no",)]
    assert sentences(read(path, "if there", tag_names="O,B-PER")) == ["Ann/B-PER sat/O", "no"]


LISTS = [
    (json.dumps(["it's", "a", "..."]), json.dumps(["O", "B-X", "I-X"])),
    (str(["it's", "a", "..."]), str(["O", "B-X", "I-X"])),
    ("[\"it's\" 'a'\n '...']", "['O' 'B-X' 'I-X']"),  # as NumPy prints arrays
    ("it's a  ...", "O B-X I-X"),
]


@pytest.mark.parametrize("lists", LISTS)
def test_lists_in_csv(tmp_path, lists):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "Tokens", "Labels"), ("1", *lists)])
    rows = read(tmp_path / "a.csv")
    assert sentences(rows) == ["it's/O a/B-X .../I-X"]
    assert says(str(rows.report), "'Tokens' is read as the words ... 'Labels' is read as the tags")


def test_a_column_called_sentence_has_the_words_where_no_other_has(write):
    assert sentences(read(write("a.csv", "sentence,labels\nEU is,B-X O\n"))) == ["EU/B-X is/O"]


def test_words_beside_their_text_are_what_is_tagged(write):
    row = {"text": "EU is", "forms": ["EU", "is"], "labels": ["B-X", "O"]}
    assert sentences(read(write("c.jsonl", json.dumps(row)), words="forms")) == ["EU/B-X is/O"]
    for name in ("tokens", "words"):
        row = {"text": "EU is", name: ["EU", "is"], "labels": ["B-X", "O"]}
        assert sentences(read(write("a.jsonl", json.dumps(row)))) == ["EU/B-X is/O"]
    assert sentences(read(write("b.jsonl", json.dumps({"tokens": "['EU', 'is']", "tags": "['B-X', 'O']"})))) == [
        "EU/B-X is/O"
    ]


KAGGLE = 'Sentence #,Word,POS,Tag\nSentence: 1,Thousands,NNS,O\n,of,IN,O\n,",",",",O\n,London,NNP,B-geo\n,"""",``,O\n'
ROWS = ['Thousands/O of/O ,/O London/B-geo "/O', "Iran/B-gpe 's/I-gpe"]


def test_a_word_a_row_as_kaggle_has_it(write):
    text = KAGGLE + "Sentence: 2,Iran,NNP,B-gpe\n,'s,POS,I-gpe\n"
    path = write("a.csv", text)
    rows = read(path)
    assert sentences(rows) == ROWS
    assert [(row.place, row.id) for row in rows.rows] == [(f"{path}:2", "Sentence: 1"), (f"{path}:7", "Sentence: 2")]
    full = text.replace("\n,", "\nSentence: 1,", 4).replace("\n,", "\nSentence: 2,")
    assert [row.words for row in read(write("b.csv", full), "no").rows] == [row.words for row in rows.rows]
    assert sentences(read(write("c.tsv", "n\tword\ttag\n1\ta\tO\n1\tb\tB-X\n2\tc\tO\n"), sentence="n")) == [
        "a/O b/B-X",
        "c/O",
    ]
    lines = [{"sent_id": i // 2, "word": word, "tag": "O"} for i, word in enumerate("abcd")]
    assert sentences(read(write("d.jsonl", "\n".join(map(json.dumps, lines))))) == ["a/O b/O", "c/O d/O"]
    latin = write("e.csv", text.replace("Iran", "Café").encode("cp1252"))
    assert says(refused(latin), "e.csv, byte ... 0xE9 ... encoding ... cp1252")
    assert "Café/B-gpe" in sentences(read(latin, encoding="cp1252"))[1]


def test_blank_lines_between_sentences_below_a_header(write):
    assert sentences(read(write("a.csv", "word,tag\na,O\nb,B-X\n\nc,O\n,\nd,O\n"))) == ["a/O b/B-X", "c/O", "d/O"]
    assert says(refused(write("b.csv", "word,tag\na,O\nb,B-X\n")), "b.csv: ... set sentence to the column")


def test_odd_rows_of_words_are_counted(write):
    path = write("a.csv", "sentence,word,tag\n1,a,O\n1,,O\n2,b,O\n1,c,O\n")
    rows = read(path)
    assert sentences(rows) == ["a/O", "b/O", "c/O"]
    assert says(str(rows.report), f"earlier one ... 1 (first {path}:5)")
    assert says(str(rows.report), f"rows without a word are left out: 1 (first {path}:3)")


def test_other_csv_files_have_columns(write):
    assert sentences(read(write("a.csv", "EU,B-X\nin,O\n\na,O\n"), delimiter=",")) == ["EU/B-X in/O", "a/O"]
    assert says(refused(write("b.csv", "sentence,word,tag\n1,a,x\n")), "b.csv:2: tag: 'x' is no tag")
    assert says(refused(write("c.csv", "sentence_id,words,tag\n1,a,O\n"), words="Word"), "c.csv: no column 'Word'")
