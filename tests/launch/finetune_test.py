"""A model of the fine-tuning command, and what is done with it: evaluate, predict, go on."""

import csv
import json
import pathlib
import random

import numpy as np
import pytest

import bert
from bert.errors import InputError
from launch import evaluate, predict
from tests.launch.review_table import QUICK, TINY, reviews, run, write

pytestmark = pytest.mark.usefixtures("one_device")  # eight: tests/tasks/classification/job_test.py


@pytest.fixture(scope="module")
def trained(folder, table) -> pathlib.Path:
    """A run of eight epochs on the made-up reviews, several in a row of tokens."""
    words = (f"--config.validation={folder / 'held.csv'}", f"--workdir={folder / 'run'}", "--config.epochs=8")
    run(*QUICK, *table, *words, "--config.packed=True")
    return folder / "run"


def test_it_learns_and_the_best_evaluation_is_kept(trained, folder):
    """Most held-out rows right; the model's own scores are those that were logged for the best evaluation."""
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    held = [line for line in lines if line["split"] == "validation"]
    assert len(held) == 8
    best = max(held, key=lambda line: line["accuracy"])
    assert best["accuracy"] > 0.9
    assert best["n"] == 60
    model = bert.load(trained)
    assert (model.labels, model.report.notes) == (("no", "yes"), [])
    answers = model.predict(reviews(60, 1))
    right = [answer["label"] == row["liked"] for answer, row in zip(answers, reviews(60, 1), strict=True)]
    assert np.mean(right) == pytest.approx(best["accuracy"])
    assert all(sum(answer["probabilities"].values()) == pytest.approx(1) for answer in answers)
    losses = [line["loss"] for line in lines if line["split"] == "train"]
    assert losses[-1] < 0.5 * losses[0]


def test_the_model_card_has_the_data_the_settings_and_the_scores_and_no_path(trained, folder):
    card = (trained / "model" / "README.md").read_text()
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    step = bert.load(trained).extra["finetuning"]["step"]
    best = next(line for line in lines if line["split"] == "validation" and line["step"] == step)
    tokens = sum(line["tokens"] for line in lines if line["split"] == "train" and line["step"] <= step)
    accuracy = f"{best['accuracy']:.4f}".rstrip("0").rstrip(".")
    rows = ("training: rows kept | 160", "validation file | held.csv", f"steps | {step}")
    interval = json.loads((trained / "evaluation.json").read_text())["scores"]["accuracy"]
    low, high = (f"{interval[bound]:.4f}".rstrip("0").rstrip(".") for bound in ("low", "high"))
    assert f"| accuracy | {accuracy} | {low} to {high} |" in card
    for row in (*rows, f"tokens, without padding | {tokens:,.0f}"):
        assert f"| {row} |" in card
    assert "On held.csv (60 rows, which chose the model)." in card
    for text in (card, (trained / "model" / "config.json").read_text()):
        assert str(folder) not in text
        assert str(TINY) not in text


@pytest.mark.parametrize("batch_size", [1, 7, 32])
@pytest.mark.parametrize("packed", [True, False])
def test_predictions_do_not_depend_on_batches(trained, batch_size, packed):
    model, rows = bert.load(trained), reviews(60, 1)
    want = model.predict(rows[:1], packed=False) + model.predict(rows[1:])
    got = model.predict(rows, batch_size=batch_size, packed=packed)
    assert [answer["label"] for answer in got] == [answer["label"] for answer in want]
    for a, b in zip(got, want, strict=True):
        assert a["probabilities"]["yes"] == pytest.approx(b["probabilities"]["yes"], abs=1e-5)


def test_names_of_labels_are_the_models_own(trained, tmp_path, capsys):
    """Rows in another order, a file without one of the labels, names in other letters: the same answers and scores."""
    rows = reviews(60, 1)
    shuffled = random.Random(3).sample(rows, 60)
    accuracies = []
    files = {
        "first yes": rows[1:] + rows[:1],
        "shuffled": shuffled,
        "upper": [r | {"liked": r["liked"].upper()} for r in rows],
    }
    for name, some in files.items():
        evaluate.run(["evaluate", f"--model={trained}", f"--data={write(tmp_path / f'{name}.csv', some)}",
                      f"--out={tmp_path / f'{name}.json'}"])  # fmt: skip
        accuracies.append(json.loads((tmp_path / f"{name}.json").read_text())["scores"]["accuracy"]["value"])
    assert len(set(accuracies)) == 1
    only = [row for row in rows if row["liked"] == "yes"]
    evaluate.run(["evaluate", f"--model={trained}", f"--data={write(tmp_path / 'only.csv', only)}"])
    assert "30 rows scored" in capsys.readouterr().out


def test_an_evaluation_has_intervals_confusion_and_worst_rows(trained, folder, tmp_path, capsys):
    out = tmp_path / "deep" / "scores.json"
    evaluate.run(["evaluate", f"--model={trained}", f"--data={folder / 'held.csv'}", f"--out={out}"])
    shown = capsys.readouterr().out
    assert "95 % interval" in shown
    assert "truth \\ predicted" in shown
    values = json.loads(out.read_text())
    assert values["scores"]["n"]["value"] == 60
    assert np.sum(values["confusion"]["counts"]) == 60
    assert values["confusion"]["labels"] == ["no", "yes"]
    losses = [row["loss"] for row in values["worst"]]
    assert losses == sorted(losses, reverse=True)
    assert values["worst"][0]["place"].startswith(f"{folder / 'held.csv'}:")


def test_predictions_are_the_inputs_rows_in_their_order(trained, tmp_path):
    """Without a label column, with an empty text among the rows; each format; the same labels as in Python."""
    rows = [{"id": row["id"], "review": row["review"]} for row in reviews(20, 5)]
    rows[3]["review"] = ""
    source = write(tmp_path / "input.csv", rows)
    for ending in ("csv", "tsv", "jsonl"):
        output = tmp_path / f"out.{ending}"
        predict.run(["predict", f"--model={trained}", f"--input={source}", f"--output={output}"])
        if ending == "jsonl":
            found = [json.loads(line) for line in output.read_text().splitlines()]
            labels = [row["predicted"]["label"] for row in found]
        else:
            lines = output.read_text().splitlines()
            found = list(csv.DictReader(lines, delimiter="," if ending == "csv" else "\t"))
            labels = [row["predicted"] for row in found]
            assert float(found[0]["p_no"]) + float(found[0]["p_yes"]) == pytest.approx(1, abs=1e-5)
        assert [row["id"] for row in found] == [row["id"] for row in rows]
        assert labels == [answer["label"] for answer in bert.load(trained).predict(rows)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.csv", "out.csv", "out.jsonl", "out.tsv"]


def test_the_same_command_again_is_finished_and_says_the_same(trained, folder, table, capsys):
    words = (f"--config.validation={folder / 'held.csv'}", f"--workdir={folder / 'run'}", "--config.epochs=8",
             "--config.packed=True")  # fmt: skip
    before = (trained / "model" / "model.safetensors").read_bytes()
    settings = json.loads((trained / "config.json").read_text())
    newer = ("steps", "label_smoothing", "optimizer.decay_share")  # than a run that was begun before there were such
    old = {name: value for name, value in settings.items() if name not in newer}
    (trained / "config.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"label_smoothing was 0\.0, is 0\.1"):
        run(*QUICK, *table, *words, "--config.label_smoothing=0.1")
    run(*QUICK, *table, *words, "--config.init_from=gone")
    assert json.loads((trained / "config.json").read_text()) == settings  # it began with the weights named first
    assert "accuracy" in capsys.readouterr().out
    assert (trained / "model" / "model.safetensors").read_bytes() == before
    with pytest.raises(InputError, match="batch_size was 16, is 8"):
        run(*QUICK, *table, *words, "--config.batch_size=8")
    run(*QUICK, *table, *words, "--config.kind=class")  # what auto was: a later version may ask for it
    with pytest.raises(InputError, match="kind was 'class', is 'classes'"):
        run(*QUICK, *table, *words, "--config.kind=classes")


def test_predictions_that_cannot_be_meant_are_refused(trained, tmp_path):
    """One text where a list belongs, a pair for a model of single texts, an unknown ending, the input itself."""
    for rows in ("Not bad.", {"review": "Not bad."}):
        with pytest.raises(InputError, match=r"rows is one .*list"):
            bert.load(trained).predict(rows)
    source = write(tmp_path / "input.csv", [{"review": "good", "other": "bad"}])
    common = ["predict", f"--model={trained}", f"--input={source}"]
    with pytest.raises(InputError, match=r"--text names 2 .*review"):
        predict.run([*common, f"--output={tmp_path / 'out.csv'}", "--text=review,other"])
    with pytest.raises(InputError, match=r"out\.parquet: .*ending .*\.csv"):
        predict.run([*common, f"--output={tmp_path / 'out.parquet'}"])
    with pytest.raises(InputError, match="is the input"):
        predict.run([*common, f"--output={source}"])
    with pytest.raises(InputError, match=r"--split=test .*GLUE"):
        predict.run([*common, f"--output={tmp_path / 'out.csv'}", "--split=test"])
    for name, option in (("predicted", "--label=predicted"), ("p_yes", "--text=p_yes")):
        gold = write(tmp_path / "gold.csv", [{"review": "good", name: "yes"}])
        with pytest.raises(InputError, match=rf"gold\.csv: .*column '{name}'"):
            predict.run(
                ["predict", f"--model={trained}", f"--input={gold}", f"--output={tmp_path / 'out.csv'}", option]
            )
    gold.unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["input.csv"]


def test_unpaired_surrogates_and_nan_in_the_input_are_no_trouble(trained, tmp_path):
    """JSON can hold them; a file in UTF-8 cannot hold the first, JSON not the second: U+FFFD and null."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"review": "good \\ud800", "id": "a\\ud800", "score": NaN, "more": [Infinity]}\n')
    predict.run(["predict", f"--model={trained}", f"--input={source}", f"--output={target}"])

    def refuse(name):
        raise AssertionError(name)

    row = json.loads(target.read_text(), parse_constant=refuse)
    assert (row["review"], row["id"], row["score"], row["more"]) == ("good \ufffd", "a\ufffd", None, [None])
    source.write_text('{"review": "good", "liked": "y\\ud800"}\n')
    with pytest.raises(InputError, match=r"in\.jsonl:1.*surrogate"):
        evaluate.run(["evaluate", f"--model={trained}", f"--data={source}"])


def test_a_file_without_a_header_is_read_as_the_options_say(trained, tmp_path, capsys):
    """The way out that a message names can be given to the command."""
    source = tmp_path / "plain.tsv"
    source.write_text('1\t"good" movie\tyes,yes,no\n2\tbad\tno,no,no\n')
    words = ["evaluate", f"--model={trained}", f"--data={source}"]
    with pytest.raises(InputError, match=r"no column 'review'"):
        evaluate.run(words)
    words.append("--columns=id,review,liked")
    with pytest.raises(InputError, match=r"plain\.tsv:1: .*'yes,yes,no'"):
        evaluate.run(words)
    with pytest.raises(InputError, match=r"plain\.tsv:1: .*set quoting to no"):
        evaluate.run([*words, "--quoting=yes", "--votes=yes"])
    evaluate.run([*words, "--quoting=no", "--votes=yes", f"--out={tmp_path / 'scores.json'}"])
    assert "2 rows scored" in capsys.readouterr().out
    worst = json.loads((tmp_path / "scores.json").read_text())["worst"]
    assert {"no": pytest.approx(1 / 3, abs=1e-4), "yes": pytest.approx(2 / 3, abs=1e-4)} in [
        row["truth"] for row in worst
    ]
    with pytest.raises(InputError, match=r"--votes is 'True'; .*yes"):
        evaluate.run([*words, "--votes=True"])


def test_scores_are_not_written_over_the_data(trained, folder, tmp_path):
    data = write(tmp_path / "held.csv", reviews(4, 1))
    before = data.read_bytes()
    with pytest.raises(InputError, match=r"--out=.*held\.csv: is the input"):
        evaluate.run(["evaluate", f"--model={trained}", f"--data={data}", f"--out={data}"])
    assert data.read_bytes() == before


def test_a_file_in_another_encoding_than_in_training(trained, tmp_path):
    """The way out that the message names exists, and the text comes back whole."""
    source, target = tmp_path / "latin.csv", tmp_path / "out.csv"
    source.write_bytes("review\ngood caf\u00e9\n".encode("latin-1"))
    words = ["predict", f"--model={trained}", f"--input={source}", f"--output={target}"]
    with pytest.raises(InputError, match="0xE9 is not UTF-8; set encoding"):
        predict.run(words)
    predict.run([*words, "--encoding=latin-1"])
    assert target.read_text().splitlines()[1].split(",")[0] == "good caf\u00e9"


def test_evaluation_without_labels_or_with_another_model_is_refused(trained, tmp_path):
    source = write(tmp_path / "input.csv", [{"review": "good"}, {"review": "bad"}])
    with pytest.raises(InputError, match="liked"):
        evaluate.run(["evaluate", f"--model={trained}", f"--data={source}"])
    with pytest.raises(InputError, match="has no head of a task"):
        evaluate.run(["evaluate", f"--model={TINY}", f"--data={source}"])
    with pytest.raises(InputError, match=r"--batch_size=0: .*whole"):
        evaluate.run(["evaluate", f"--model={trained}", f"--data={source}", "--batch_size=0"])
