"""Runs of the fine-tuning command: seeds, kinds of labels, killed and earlier runs, the best evaluation."""

import functools
import json
import random
import re

import numpy as np
import pytest

import bert
from bert import inference
from bert.data.encoded_examples import TrainingBatches
from bert.errors import InputError
from launch import evaluate
from tasks.classification import job
from tasks.metrics import classification_metrics
from tests.launch.review_table import QUICK, TINY, reviews, run, write

pytestmark = pytest.mark.usefixtures("one_device")  # eight: tests/tasks/classification/job_test.py


def test_several_seeds_are_compared(folder, table, tmp_path, capsys):
    """A column a seed, mean and deviation, the best one's model beside the runs."""
    run(*QUICK, *table, f"--workdir={tmp_path / 'runs'}", "--config.seeds=2", "--config.epochs=2",
        "--config.baseline=True")  # fmt: skip
    shown = capsys.readouterr().out
    assert "seed 0" in shown
    assert "seed 1" in shown
    row = next(line.split() for line in shown.splitlines() if line.startswith("accuracy") and len(line.split()) == 6)
    first, second, mean, deviation, best = map(float, row[1:])
    assert mean == pytest.approx((first + second) / 2, abs=1e-4)
    assert deviation == pytest.approx(abs(first - second) / 2**0.5, abs=1e-4)
    assert best == max(first, second)
    kept = (tmp_path / "runs" / "model" / "model.safetensors").read_bytes()
    assert kept == (tmp_path / "runs" / f"seed-{int(second > first)}" / "model" / "model.safetensors").read_bytes()
    assert "baseline: TF-IDF and a linear model" in shown
    assert bert.load(tmp_path / "runs").labels == ("no", "yes")


@pytest.mark.slow
def test_numbers_several_labels_and_votes(folder, tmp_path, capsys):
    """A number, some of three labels a row, soft labels from three annotators: an epoch each, and the model answers."""
    rng = random.Random(2)
    rows = [
        {"text": row["review"], "score": f"{rng.uniform(0, 5):.2f}", "tags": rng.choice(["a", "a,c", "b", ""]),
         "votes": ",".join(rng.choices(["yes", "no"], k=3))}
        for row in reviews(48, 4)
    ]  # fmt: skip
    rows[0]["tags"] = "b,c"
    data = write(tmp_path / "rows.csv", rows)
    cases = {
        "score": ((), "value", "pearson"),
        "tags": (("--config.kind=classes",), "labels", "micro_f1"),
        "votes": (("--config.votes=True",), "label", "cross_entropy"),
    }
    for column, (words, answer, metric) in cases.items():
        run(*QUICK, *words, f"--config.data={data}", "--config.text=text", f"--config.label={column}",
            f"--workdir={tmp_path / column}", "--config.epochs=1", "--config.validation_share=0.25")  # fmt: skip
        assert metric in capsys.readouterr().out
        (found,) = bert.load(tmp_path / column).predict(["the movie is great"])
        assert answer in found
        evaluate.run(["evaluate", f"--model={tmp_path / column}", f"--data={data}"])
        assert "48 rows scored" in capsys.readouterr().out


def test_a_classifier_of_other_classes_gets_a_new_head(table, tmp_path, caplog):
    """From three classes to two: the replaced tensors are named with their shapes, the pooler and encoder stay, but for
    the rows of added tokens."""
    caplog.set_level("INFO", logger="absl")
    three, tokens = TINY.with_name("tiny_seqcls"), tmp_path / "tokens.txt"
    tokens.write_text("[E1]\ncity mat\n")
    words = (*QUICK, *table, f"--workdir={tmp_path / 'run'}", f"--config.init_from={three}", "--config.steps=1",
             f"--config.add_tokens=@{tokens}", "--config.optimizer.learning_rate=1e-30")  # fmt: skip
    run(*words)
    assert "[32, 3]" in caplog.text or "[3, 32]" in caplog.text
    model, before = bert.load(tmp_path / "run"), bert.load(three)
    assert model.labels == ("no", "yes")
    np.testing.assert_array_equal(model.params["head"]["pooler"]["kernel"], before.params["head"]["pooler"]["kernel"])
    table_VD, old_VD = (one.params["encoder"]["embeddings"]["token"]["embedding"] for one in (model, before))
    np.testing.assert_array_equal(table_VD[:128], old_VD)
    ids = before.tokenizer.encode("city mat").ids
    np.testing.assert_allclose(table_VD[129], old_VD[ids].mean(0), atol=1e-6)
    assert (len(table_VD), model.tokenizer.encode("a City Mat").ids[1:]) == (130, [129])
    run(*words)  # goes on: is finished
    tokens.write_text("[E1]\n")
    with pytest.raises(InputError, match=r"added_tokens was \['\[E1\]', 'city mat'\], is"):
        run(*words)


def test_f1_is_about_the_same_label_whatever_order_the_start_has(folder, table, tmp_path):
    """From a model whose labels are (yes, no): the F1 of "yes" all the same, as scored from its predictions."""
    tiny = bert.load(TINY.with_name("tiny_seqcls"))
    head = {**tiny.params["head"], "sequence_classifier": {"kernel": np.zeros((32, 2), np.float32),
                                                           "bias": np.array([0.0, 1.0], np.float32)}}  # fmt: skip
    start = inference.from_params(
        tiny.config, {"encoder": tiny.params["encoder"], "head": head}, tiny.tokenizer, labels=("yes", "no")
    )
    bert.save(start, tmp_path / "start")
    run(*QUICK, *table, f"--config.validation={folder / 'held.csv'}", f"--workdir={tmp_path / 'run'}",
        f"--config.init_from={tmp_path / 'start'}", "--config.steps=1",
        "--config.optimizer.learning_rate=1e-30")  # fmt: skip
    assert bert.load(tmp_path / "run").labels == ("yes", "no")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["step"] == 1
    assert last["f1"] == 0.0, "it says no to every row"


def fails_at(last):
    """A `TrainingBatches.__call__` that raises for batch ``last``."""
    make = TrainingBatches.__call__

    def batch(self, number):
        if number == last:
            raise RuntimeError("killed")
        return make(self, number)

    return batch


def test_a_run_that_was_killed_ends_as_if_it_had_not_been(folder, table, tmp_path, monkeypatch):
    """Six epochs with dropout, killed in the fourth, with the best evaluation behind it: the same files in the end."""
    words = (*QUICK, *table, f"--config.validation={folder / 'held.csv'}", "--config.epochs=6", "--config.patience=3",
             "--config.model.hidden_dropout=0.1")  # fmt: skip
    run(*words, f"--workdir={tmp_path / 'whole'}")
    with monkeypatch.context() as before:
        before.setattr(TrainingBatches, "__call__", fails_at(35))
        with pytest.raises(RuntimeError, match="killed"):
            run(*words, f"--workdir={tmp_path / 'killed'}")
    run(*words, f"--workdir={tmp_path / 'killed'}", "--config.init_from=gone")
    for name in ("model.safetensors", "config.json"):
        whole, killed = ((tmp_path / run_name / "model" / name).read_bytes() for run_name in ("whole", "killed"))
        assert whole == killed, name
    logs = []
    for run_name in ("whole", "killed"):
        lines = map(json.loads, (tmp_path / run_name / "metrics.jsonl").read_text().splitlines())
        logs.append([line for line in lines if line["split"] == "validation"])
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_a_run_that_was_begun_before_goes_on_with_its_split_and_its_class(folder, tmp_path, monkeypatch, capsys):
    """Rows that stand twice were in both parts then, F1 was of another class; killed, it ends as it would have."""
    rows = [row for i, row in enumerate(reviews(90, 3)) if i % 2 == 0 or i % 3 == 0] * 2  # yes is rarer
    data = write(tmp_path / "train.csv", rows)
    words = (*QUICK, f"--config.data={data}", "--config.text=review", "--config.label=liked", "--config.epochs=2",
             "--config.metrics=f1,accuracy", "--config.validation_share=0.25")  # fmt: skip
    read = job.read
    with monkeypatch.context() as before:
        before.setattr(job, "read", functools.partial(read, equal_apart=True))
        before.setattr(classification_metrics, "rarer_label", lambda targets, labels: "no")
        run(*words, f"--workdir={tmp_path / 'whole'}")
        before.setattr(TrainingBatches, "__call__", fails_at(8))
        with pytest.raises(RuntimeError, match="killed"):
            run(*words, f"--workdir={tmp_path / 'killed'}")
    capsys.readouterr()
    run(*words, f"--workdir={tmp_path / 'killed'}")
    shown = capsys.readouterr().out
    assert "f1 of no" in shown
    assert re.search(r"validation: \d+ of \d+ texts are in the training part, too", shown)
    for name in ("model.safetensors", "config.json"):
        whole, killed = ((tmp_path / run_name / "model" / name).read_bytes() for run_name in ("whole", "killed"))
        assert whole == killed, name


def test_of_equal_evaluations_and_runs_the_one_with_the_lowest_loss_is_kept(tmp_path, capsys, caplog):
    """Reviews learnt within an epoch: accuracy stays 1 while the loss still falls. The log names the class of F1."""
    caplog.set_level("INFO", logger="absl")
    rows = [{"review": "great" if i % 3 else "bad", "liked": "yes" if i % 3 else "no"} for i in range(96)]
    data = write(tmp_path / "train.csv", rows)
    run(*QUICK, f"--config.data={data}", f"--config.validation={data}", "--config.text=review", "--config.label=liked",
        "--config.epochs=4", "--config.seeds=2", f"--workdir={tmp_path / 'run'}")  # fmt: skip
    shown, losses = capsys.readouterr().out, []
    for seed in ("seed-0", "seed-1"):
        lines = map(json.loads, (tmp_path / "run" / seed / "metrics.jsonl").read_text().splitlines())
        held = [line for line in lines if line["split"] == "validation"]
        right = [line for line in held if line["accuracy"] == 1]
        best = min(right, key=lambda line: line["cross_entropy"])
        assert best["cross_entropy"] < right[0]["cross_entropy"]
        assert bert.load(tmp_path / "run" / seed).extra["finetuning"]["step"] == best["step"]
        assert all(line["f1"] == line["f1:no"] for line in held)
        losses.append(best["cross_entropy"])
    assert re.search(rf"^best: seed {np.argmin(losses)}, .*cross_entropy.*\(seeds 0, 1\)", shown, re.MULTILINE)
    assert "validation  accuracy 1.0000  f1 of no 1.0000  macro_f1" in caplog.text
    assert re.search(r"^f1 of no +1\.0000$", shown, re.MULTILINE)


def test_training_stops_when_waiting_was_too_long(folder, table, tmp_path, capsys):
    """At rate almost 0 nothing gets better: with patience 2 the third evaluation is the last, and all ends well.

    Of runs whose answers are all the same each is told, and what can be done about the one that is kept.
    """
    run(*QUICK, *table, f"--config.validation={folder / 'held.csv'}", f"--workdir={tmp_path / 'run'}",
        "--config.epochs=20", "--config.patience=2", "--config.optimizer.learning_rate=1e-30", "--config.seed=7",
        "--config.seeds=2")  # fmt: skip
    shown = capsys.readouterr().out
    assert re.search(r"stopped early: no better accuracy.* in 2 evaluations", shown)
    lines = (tmp_path / "run" / "seed-7" / "metrics.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["split"] == "validation" for line in lines) == 3
    assert re.search(r"^seed 7: the model answers yes for all 60 rows$", shown, re.MULTILINE)
    assert re.search(r"^seed 8: the model answers no for all 60 rows$", shown, re.MULTILINE)
    assert re.search(r"^the model answers (yes|no) for all 60 rows: .*--config\.epochs", shown, re.MULTILINE)
