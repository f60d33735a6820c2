"""Classifiers on files; the same commands with a model that was trained for it are in tests/launch/finetune_test.py."""

import contextlib
import csv
import decimal
import json
import os
import pathlib

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import bert
from bert import inference
from bert.errors import InputError
from bert.prediction import classification
from bert.prediction.classification import ClassificationOptions
from tasks import evaluation
from tasks.classification import sources
from tasks.files.tables import read_table

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


def classifier(kind: str, labels: tuple[str, ...], bias: list[float], **files) -> inference.LoadedModel:
    """A tiny model whose scores are ``bias``, whatever it reads."""
    tiny = bert.load(GOLDEN / "tiny_seqcls")
    head = {"kernel": np.zeros((32, len(bias)), np.float32), "bias": np.array(bias, np.float32)}
    params = {"encoder": tiny.params["encoder"], "head": {**tiny.params["head"], "sequence_classifier": head}}
    extra = ClassificationOptions(kind, ("text",), 16).to_json() | {
        "files": {"text": "text", "label": "label", **files}
    }
    return inference.from_params(tiny.config, params, tiny.tokenizer, labels=labels, extra=extra)


@pytest.mark.parametrize("separator", [";", ","])
def test_several_labels_in_a_cell_are_read_back_as_they_were_written(commands, separator):
    """Names with the separator in them, too."""
    run = commands("classification")
    model = classifier("classes", ("a,b", "c", "d;e"), [9.0, 9.0, -9.0], separator=separator)
    written = run.predict(model, run.write("in.csv", "text\nthe cat\n"), "out.csv", "csv")["out.csv"]
    (row,) = csv.DictReader(written.splitlines())
    again = run.write("again.csv", written)
    found = run.read(model, again, "needed", label="predicted")
    np.testing.assert_array_equal(found.targets, [[1, 1, 0]])
    assert row["predicted"] == ("a,b;c" if separator == ";" else '["a,b", "c"]')


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_many_rows_are_predicted_and_written_in_parts(commands, monkeypatch, tmp_path, format):
    """The same text as in one part; in a pipe, rows can be read before the next ones are predicted."""
    run, tiny = commands("classification"), bert.load(GOLDEN / "tiny_seqcls")
    extra = ClassificationOptions("class", ("text",), 16).to_json() | {"files": {"text": "text"}}
    model = inference.from_params(tiny.config, tiny.params, tiny.tokenizer, labels=tiny.labels, extra=extra)
    rows = [{"text": " ".join(["the cat"] * n), **({"late": n} if n == 6 else {})} for n in range(1, 8)]
    path = run.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    name = f"out.{format}"
    whole = run.predict(model, path, name, format)[name]
    monkeypatch.setattr(evaluation, "PART", 3)
    assert run.predict(model, path, name, format)[name] == whole
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    read, before, probabilities = b"", [], classification.probabilities

    def noted(*given):
        nonlocal read
        with contextlib.suppress(BlockingIOError):
            read += os.read(reading, 1 << 16)
        before.append(read.count(b"\n") - (format == "csv" and read != b""))
        return probabilities(*given)

    monkeypatch.setattr(classification, "probabilities", noted)
    evaluator = run.evaluator(model)
    evaluator.write_predictions(tmp_path / "pipe", evaluator.read(path, split="test", labelled="no"), format)
    assert before == [0, 3, 6]
    assert (read + os.read(reading, 1 << 16)).decode() == whole
    os.close(reading)


def test_decimal_numbers_of_parquet_are_numbers(commands, tmp_path):
    table = pyarrow.table({"text": ["the cat", "a mat"], "label": [decimal.Decimal("0.50"), decimal.Decimal("2.00")]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    run = commands("classification")
    model = classifier("number", ("score",), [0.5])
    found = run.read(model, str(tmp_path / "a.parquet"), "needed")
    np.testing.assert_array_equal(found.targets, [[0.5], [2.0]])
    found = run.read(classifier("class", ("0.5", "2"), [0, 1]), str(tmp_path / "a.parquet"), "needed")
    np.testing.assert_array_equal(found.targets, np.eye(2))


def test_numbers_of_the_worst_rows_are_short(commands):
    """5.49 as the file has it, not the nearest float32 in 17 digits."""
    run = commands("classification")
    model = classifier("number", ("score",), [0.1])
    text = run.evaluate(model, run.write("a.csv", "text,label\nfilm,5.49\nbook,1.5\n")).text
    assert "truth 5.49, predicted 0.1:" in text


def test_only_the_metrics_asked_for_are_reported_and_unknown_ones_are_told_the_known(commands):
    """Also one that is not among the usual ones, and in this order; the same values as among all."""
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, 1.0])
    path = run.write("a.csv", "text,label\nfilm,yes\nbook,no\nmat,yes\n")
    found = run.evaluate(model, path, metrics=("recall:yes", "accuracy"))
    assert {name: score["value"] for name, score in found.values["scores"].items()} == {
        "recall:yes": 1.0, "accuracy": pytest.approx(2 / 3)
    }  # fmt: skip
    assert list(found.values["scores"]) == ["recall:yes", "accuracy"]
    assert "macro_f1" not in found.text
    assert run.evaluate(model, path).values["scores"]["accuracy"] == found.values["scores"]["accuracy"]
    run.check_metrics(model, path, "f1", "n")
    with pytest.raises(InputError, match=r"'bleu' .*accuracy.*f1:LABEL"):
        run.check_metrics(model, path, "f1", "bleu")


@pytest.mark.parametrize(("column", "said"), [("id", 'a"1'), ("GUID", "7"), ("place", None)])
def test_the_worst_rows_have_the_id_of_the_file(commands, column, said):
    """In the report and as JSON; a column that is read as text or label is none."""
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, 1.0])
    cell = '"a""1"' if column == "id" else "7"
    path = run.write("a.csv", f"{column},text,label\n{cell},book,no\n,film,yes\n")
    first, second = (found := run.evaluate(model, path)).values["worst"]
    assert (first.get("id"), second.get("id")) == (said, None)
    assert (f"{path}:2 (id {said})  truth no" in found.text) == (said is not None)
    assert "id" not in run.evaluate(model, path, text=column).values["worst"][0] or column == "place"


def test_a_part_of_glue_without_labels_has_nothing_to_score(tmp_path):
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tthe cat sat\n")
    settings = {"glue": "sst2"}
    found = sources.read_part(settings, str(tmp_path), "class", ("0", "1"), split="test", labelled="no")
    assert len(found.texts) == 1
    with pytest.raises(InputError, match=r"test\.tsv: .*no labels; .*predict"):
        sources.read_part(settings, str(tmp_path), "class", ("0", "1"), split="test", labelled="needed")


def test_rows_without_a_text_are_scored_and_those_without_a_label_are_told(commands):
    """As official scripts count them; a row with neither is told once."""
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, 1.0])
    path = run.write("in.csv", "text,label\nthe cat,yes\n,no\n ,yes\nthe mat,\n,\n")
    found = run.evaluate(model, path).values
    assert (found["scores"]["n"]["value"], found["scores"]["accuracy"]["value"]) == (3, pytest.approx(2 / 3))
    assert found["rows"]["dropped"] == {"no label": {"rows": 2, "first": f"{path}:5"}}
    assert found["rows"]["notes"] == [f"2 rows have no text and are kept (first {path}:3)"]


def test_rows_are_left_out_only_where_the_command_says_so(commands):
    """A model whose training file had such rows: predictions are still those of the file's rows, one each."""
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, 1.0], ragged="drop", columns="text,label")
    path = run.write("in.tsv", "the cat\tyes\na mat\n")
    with pytest.raises(InputError, match=r"in\.tsv:2: 1 field .*ragged"):
        run.read(model, path, "needed")
    assert len(run.read(model, path, "needed", ragged="drop").texts) == 1


def test_lists_and_objects_of_json_are_json_in_a_table(commands):
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, 1.0])
    path = run.write("in.jsonl", '{"text": "the cat", "words": ["a", "b"], "more": {"k": "\u00e9"}}')
    (row,) = csv.DictReader(run.predict(model, path, "out.csv", "csv")["out.csv"].splitlines())
    assert (row["words"], row["more"]) == ('["a", "b"]', '{"k": "\u00e9"}')


def test_a_model_whose_training_diverged_says_so(commands):
    run = commands("classification")
    model = classifier("class", ("no", "yes"), [0.0, np.nan])
    with pytest.raises(InputError, match="scores are not finite"):
        model.predict(["the cat"])
    with pytest.raises(InputError, match="its scores are not finite"):
        run.predict(model, run.write("in.csv", "text\nthe cat\n"), "out.csv", "csv")
    assert not (run.folder / "out").exists()


def test_labels_make_no_lines_of_their_own_and_steer_no_terminal(commands):
    """A line end or an escape code in a label: the report has the lines that it has with other labels."""
    reports = []
    for labels in (("one", "two"), ("o\nne", "t\x1b[31mwo")):
        run, kinds = commands("classification"), ("class", "classes")
        table = "text,label\nfilm,{}\nbook,{}\n".format(*(f'"{label}"' for label in labels))
        texts = [run.evaluate(classifier(kind, labels, [1.0, 2.0]), run.write("a.csv", table)).text for kind in kinds]
        reports.append("\n".join(texts))
    plain, odd = reports
    assert len(odd.splitlines()) == len(plain.splitlines())
    assert all(line.isprintable() for line in odd.splitlines())


def test_an_evaluation_names_the_class_of_each_score_and_scores_each_class(commands):
    """A model that always says the commoner class: its F1 is that of the rarer one, and it is said in words."""
    run = commands("classification")
    rows = "".join(f"word{i}\t{'attack' if i < 3 else 'normal'}\n" for i in range(12))
    path = run.write("in.tsv", "text\tlabel\n" + rows)
    model = classifier("class", ("attack", "normal"), [0.0, 1.0])
    found = run.evaluate(model, path)
    line = next(line for line in found.text.splitlines() if line.startswith("f1 "))
    assert line.split()[1:4] == ["of", "attack", "0.0000"]
    assert found.values["scores"]["f1"]["label"] == "attack"
    assert found.values["scores"]["f1"]["value"] == 0
    for label, recall, support in (("attack", 0, 3), ("normal", 1, 9)):
        row = found.values["classes"][label]
        assert (row["recall"]["value"], row["support"]["value"], row["roc_auc"]["value"]) == (recall, support, 0.5)
        assert any(line.split()[:1] == [label] and f" {support} " in line for line in found.text.splitlines())
    assert found.values["classes"]["attack"]["average_precision"]["value"] == pytest.approx(0.25)
    assert found.values["classes"]["attack"]["precision"]["value"] is None
    assert "the model answers normal for all 12 rows" in found.text
    assert "normal for all 12 rows" in found.values["constant_answer"]
    model.extra["scored"] = {"metrics": ["accuracy"], "positive": "normal"}  # what the run says, goes
    found = run.evaluate(model, path)
    assert found.values["scores"]["f1"]["label"] == "normal"
    assert "f1 of normal" in found.text
    alone = run.evaluate(model, run.write("one.tsv", "text\tlabel\na\tnormal\nb\tnormal\n"))
    assert alone.values["constant_answer"] is None  # and right
    assert alone.values["classes"]["normal"]["roc_auc"]["value"] is None


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_predictions_are_read_back_by_csv_and_pandas_and_this_product(commands, ending):
    """Texts with line breaks of all kinds, tabs and quotes, alone and together."""
    run = commands("classification")
    model = classifier("class", ("no", 'y"es'), [0.0, 1.0])
    texts = ["a\nb", "a\tb", 'the "cat"', "a\rb", "a\r\nb", '"', '"a\n', "a, b", 'x, "a"', "'a'", "a;b", "the cat"]
    delimiter = "," if ending == "csv" else "\t"
    for rows in [[text] for text in texts] + [texts]:
        path = run.write("in.jsonl", "".join(json.dumps({"text": text, "id\n": "1"}) + "\n" for text in rows))
        written = run.predict(model, path, f"out.{ending}", ending)[f"out.{ending}"]
        again = run.write(f"again.{ending}", written)
        with open(again, newline="", encoding="utf-8") as file:
            by_csv = [row["text"] for row in csv.DictReader(file, delimiter=delimiter)]
        by_pandas = pandas.read_csv(again, sep=delimiter, dtype=str, keep_default_na=False)
        table = read_table(again)
        assert by_csv == list(by_pandas["text"]) == [row["text"] for row in table.rows] == rows
        assert {row["predicted"] for row in table.rows} == set(by_pandas["predicted"]) == {'y"es'}


@pytest.mark.parametrize(("label", "kept"), [("label", []), ("margin", ["margin"])])
def test_the_uncertainty_of_an_earlier_prediction_does_not_stay_beside_the_new_one(commands, label, kept):
    """But what the model reads does, and a column of that name in a table that has no earlier prediction."""
    run, model = commands("classification"), classifier("class", ("no", "yes"), [0.0, 1.0], label=label)
    earlier = run.write("earlier.csv", "text,entropy,predicted,p_no,p_yes,margin\nthe cat,0.7,no,0.5,0.5,no\n")
    written = run.predict(model, earlier, "out.csv", "csv")["out.csv"]
    assert written.splitlines()[0].split(",") == ["text", *kept, "predicted", "p_no", "p_yes"]
    others = run.write("others.csv", "text,entropy\nthe cat,0.7\n")
    assert run.predict(model, others, "out.csv", "csv")["out.csv"].startswith("text,entropy,predicted")
