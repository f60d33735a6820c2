import gzip

import pytest

from tasks.classification import glue
from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings, find_labels
from tests.tasks.one_line import message_of, says

# Rows and labels as GLUE's authors and the README beside the data count them: task, split -> rows per label, in order.
COUNTS = {
    ("cola", "train"): (2528, 6023),
    ("cola", "validation"): (322, 721),
    ("cola", "test"): 1063,
    ("sst2", "train"): (29780, 37569),
    ("sst2", "validation"): (428, 444),
    ("sst2", "test"): 1821,
    ("mrpc", "train"): 3576,
    ("mrpc", "validation"): 500,
    ("mrpc", "test"): (578, 1147),
    ("stsb", "train"): 5749,
    ("stsb", "validation"): 1500,
    ("stsb", "test"): 1379,
    ("rte", "train"): (1249, 1241),
    ("rte", "validation"): (146, 131),
    ("wnli", "train"): (323, 312),
    ("wnli", "validation"): (40, 31),
    ("wnli", "test"): 146,
    ("qnli", "validation"): (2702, 2761),
}


def examples_of(task, folder, split):
    table = glue.read(task, str(folder), split)
    known = glue.TASKS[task]
    columns = ColumnSettings(text=known.text, label="label", kind=known.kind)
    labelled = "needed" if "label" in table.columns else "no"
    return make_examples(table, columns, known.kind, known.labels, labelled=labelled)


@pytest.mark.parametrize(("task", "split"), COUNTS)
def test_real_files_have_the_rows_that_they_should(shared, task, split):
    """Every row is read and kept, has text, and its label if the split has any."""
    made = examples_of(task, shared / "data/glue", split)
    count = COUNTS[task, split]
    if isinstance(count, tuple):
        assert tuple(made.targets.sum(0)) == count
        count = sum(count)
    assert made.report.read == made.report.kept == count
    assert len(made.texts[0]) == len(glue.TASKS[task].text)
    assert (made.targets is None) == ((task, split) in [("cola", "test"), ("sst2", "test"), ("wnli", "test")])
    assert len({row["index"] for row in made.rows}) == count
    if task == "stsb":
        assert 0 <= made.targets.min() < made.targets.max() <= 5


def test_the_labels_of_real_files_are_those_of_the_task(shared):
    for task in ("cola", "sst2", "mrpc", "rte", "wnli"):
        table = glue.read(task, str(shared / "data/glue"), "train")
        kind, labels = find_labels(table, ColumnSettings(glue.TASKS[task].text, "label"))
        assert (kind, set(labels)) == ("class", set(glue.TASKS[task].labels))
    table = glue.read("stsb", str(shared / "data/glue"), "train")
    assert find_labels(table, ColumnSettings(("sentence1", "sentence2"), "label")) == ("number", ())


def test_colas_authors_files_follow_each_other(shared, write, tmp_path):
    """Without GLUE's dev.tsv, in-domain and out-of-domain sentences are the validation part."""
    table = glue.read("cola", str(shared / "data/glue/CoLA/cola_public/.."), "validation")
    assert len(table.rows) == 1043
    for name in ("in_domain_dev.tsv", "out_of_domain_dev.tsv"):
        raw = (shared / "data/glue/CoLA/cola_public/raw" / name).read_bytes()
        write(f"cola_public/raw/{name}", raw)
    table = glue.read("cola", str(tmp_path), "validation")
    assert len(table.rows) == 527 + 516
    assert table.rows[527]["index"] == "527"
    assert table.places[527].endswith("out_of_domain_dev.tsv:1")
    assert any("in_domain_dev.tsv (527) and out_of_domain_dev.tsv (516)" in note for note in table.notes)


def rows_of(task, folder, split):
    return glue.read(task, str(folder), split).rows


def test_forms_that_glue_distributes(write, tmp_path):
    """Headers as in GLUE's archives; of many columns the right ones are taken, with quotes as text."""
    write(
        "MNLI/train.tsv", 'index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n7\tfic\t"a\tb\tneutral\tentailment\n'
    )
    write("MNLI/dev_matched.tsv", "index\tsentence1\tsentence2\tlabel1\tgold_label\n0\ta\tb\tneutral\t-\n")
    write("MNLI/dev_mismatched.tsv.gz", gzip.compress(b"index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n"))
    write("MNLI/test_matched.tsv", "index\tsentence1\tsentence2\n5\ta\tb\n")
    pair = {"sentence1": "a", "sentence2": "b"}
    assert rows_of("mnli", tmp_path, "train") == [
        {"sentence1": '"a', "sentence2": "b", "label": "entailment", "index": "7"}
    ]
    assert rows_of("mnli", tmp_path / "MNLI", "validation_matched") == [{**pair, "label": None, "index": "0"}]
    assert rows_of("mnli", tmp_path, "validation_mismatched") == [{**pair, "label": "neutral", "index": "0"}]
    assert rows_of("mnli", tmp_path, "test") == [{**pair, "index": "5"}]
    write("QQP/train.tsv", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n9\t1\t2\ta\tb\t1\n8\t1\t2\tcut\n")
    table = glue.read("qqp", str(tmp_path), "train")
    assert table.rows == [{**pair, "label": "duplicate", "index": "9"}]
    assert any("1 lines with a wrong number of fields dropped, the first is line 3" in note for note in table.notes)
    write("MRPC/test.tsv", "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n3\t1\t2\ta\tb\n")
    assert rows_of("mrpc", tmp_path, "test") == [{**pair, "index": "3"}]
    write("STS-B/dev.tsv", "index\tgenre\tsentence1\tsentence2\tscore\n3\tnews\ta\tb\t4.600\n")
    assert rows_of("stsb", tmp_path, "validation") == [{**pair, "label": "4.600", "index": "3"}]
    write("QNLI/test.tsv", "index\tquestion\tsentence\n3\ta\tb\n")
    assert rows_of("qnli", tmp_path, "test") == [{**pair, "index": "3"}]
    write("AX/diagnostic-full.tsv", "Logic\tDomain\tPremise\tHypothesis\tLabel\n\tnews\ta\tb\tneutral\n")
    assert rows_of("ax", tmp_path, "test") == [{**pair, "label": "neutral", "index": "0"}]


def test_a_part_of_wnli_that_repeats_another_is_left_out(write, tmp_path):
    write("train.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n1\tc\td\t0\n")
    write("val.tsv", "1\tc\td\t0\n")
    table = glue.read("wnli", str(tmp_path), "train")
    assert [row["index"] for row in table.rows] == ["0", "1"]
    assert any("left out" in note for note in table.notes)
    write("val.tsv", "2\te\tf\t0\n")
    assert [row["index"] for row in rows_of("wnli", tmp_path, "train")] == ["0", "1", "2"]


def test_submissions_write_labels_as_the_server_reads_them():
    assert list(glue.submission("sst2", {"0": "positive", "1": "negative"})) == ["index\tprediction", "0\t1", "1\t0"]
    assert list(glue.submission("rte", [("4", "not_entailment")])) == ["index\tprediction", "4\tnot_entailment"]
    assert list(glue.submission("stsb", {"0": 3.14159, "1": -0.2, "2": 5.5}))[1:] == [
        "0\t3.142",
        "1\t0.000",
        "2\t5.000",
    ]
    for task in glue.TASKS.values():
        assert "test" in task.submissions
        assert set(task.written) == set(task.labels)


def test_what_is_missing_or_of_another_form_is_told(write, tmp_path):
    folder = str(tmp_path)
    write("RTE/dev.txt", "x")
    assert says(message_of(glue.read, "colla", folder, "train"), "no GLUE task 'colla'; they are cola, sst2")
    assert says(message_of(glue.read, "rte", folder, "trian"), "rte has no split 'trian'; it has train, validation")
    missing = "no validation of rte: looked for dev.tsv (or .gz), there and in RTE/; found RTE/dev.txt"
    assert says(message_of(glue.read, "rte", folder, "validation"), missing)
    assert says(message_of(glue.read, "rte", f"{folder}/absent", "train"), "absent: no such folder")
    write("RTE/train.tsv", "premise\thypothesis\tlabel\na\tb\tentailment\n")
    other = "train.tsv:1: not a file of RTE: columns sentence1, sentence2 are wanted, the first line has 3: 'premise'"
    assert says(message_of(glue.read, "rte", folder, "train"), other)
    write("RTE/train.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tneutral\n")
    unknown = "train.tsv:2: label: unknown label 'neutral'; known: entailment, not_entailment"
    assert says(message_of(glue.read, "rte", folder, "train"), unknown)
    write("RTE/train.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tentailment\n")
    assert says(message_of(glue.read, "rte", folder, "train"), "train.tsv:2: 3 fields where 4 are wanted")
    write("RTE/train.tsv", "index\tsentence1\tsentence2\tlabel\n")
    assert says(message_of(glue.read, "rte", folder, "train"), "train.tsv: no rows")
    write("RTE/train.tsv", "")
    assert says(message_of(glue.read, "rte", folder, "train"), "train.tsv:1: not a file of RTE")
    write("STS-B/sts-dev.csv", "a\tb\tc\td\t1.0\tx\ty\na\tb\tc\td\t1.0\tx\ty\tl\n")
    assert says(message_of(glue.read, "stsb", folder, "validation"), "sts-dev.csv:2: 8 fields where 7 or 9")
