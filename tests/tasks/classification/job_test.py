"""The classification task: losses by their definition, weights of classes, labels by name, scores on any devices."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.data.encoded_examples import ExampleSettings
from bert.errors import InputError
from bert.interop.hugging_face import load_model_directory
from bert.prediction.classification import ClassificationOptions
from bert.prediction.scores import Devices
from bert.training import sharding
from bert.training.best import Choice
from configs import glue as glue_config
from configs import table as table_config
from tasks.classification import job as classification_job
from tasks.classification.job import Classification, Job, class_weights
from tasks.files.examples import TextExamples
from tasks.files.reports import ReadReport

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


def examples(texts, targets, labels, kind="class") -> TextExamples:
    count = len(texts)
    return TextExamples(
        texts, np.array(targets, np.float32), [{}] * count, [f"file:{i}" for i in range(count)],
        tuple(labels), kind, ReadReport("file", count, count),
    )  # fmt: skip


def job(train, held=None, kind="class", weights=None, metrics=("accuracy", "cross_entropy")) -> Job:
    options = ClassificationOptions(kind, ("a",), 24)
    return Job(train, held, options, {}, metrics, weights or {})


def loss_of(task, logits, targets, weights) -> float:
    batch = {"targets": jnp.array(targets)[:, None], "target_weights": jnp.array(weights)[:, None]}
    outputs = {"sequence_logits": jnp.array(logits)[:, None]}
    totals = {"loss": float(task.sums(outputs, batch)["loss"]), "loss_count": float(task.counts(batch)["loss"])}
    return task.metrics(totals)["loss"]


def test_class_weights_divide_by_the_summed_weights():
    """Logits (1, 0) twice, labels a and b: 0.81326; with weights 1 and 3: 1.06326, not 2.12652."""
    task, logits, targets = Classification("class", 2), [[1.0, 0.0]] * 2, np.eye(2, dtype=np.float32)
    assert loss_of(task, logits, targets, [1.0, 1.0]) == pytest.approx(0.81326, abs=1e-5)
    assert loss_of(task, logits, targets, [1.0, 3.0]) == pytest.approx(1.06326, abs=1e-5)
    assert task.metrics({"loss": 0.0, "loss_count": 0.0})["loss"] is None


def test_uneven_parts_of_a_batch_are_weighed_by_their_counts():
    """One label with loss 4 and nine with loss 1: 1.3, not the mean of two means."""
    task = Classification("class", 2)
    logits = [[0.0, np.log(np.e**4 - 1)]] + [[0.0, np.log(np.e - 1)]] * 9
    parts = [loss_of(task, logits[:1], [[1.0, 0.0]], [1.0]), loss_of(task, logits[1:], [[1.0, 0.0]] * 9, [1.0] * 9)]
    assert parts == pytest.approx([4.0, 1.0], abs=1e-5)
    assert loss_of(task, logits, [[1.0, 0.0]] * 10, [1.0] * 10) == pytest.approx(1.3, abs=1e-5)


def test_balanced_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.array([0, 0, 0, 1, 2, 2])
    train = examples([("x",)] * 6, np.eye(3)[labels], "abc")
    want = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    assert list(class_weights("balanced", train).values()) == pytest.approx(want)
    assert class_weights("a=2, c=0.5", train) == {"a": 2.0, "c": 0.5}


def test_weights_reach_the_batches_by_the_labels_of_each_example(tmp_path):
    """Of a soft label the mean over its shares; of a label that is not named 1."""
    tokenizer = load_model_directory(GOLDEN / "tiny_bert").tokenizer
    train = examples([("cat",), ("dog",), ("mat",)], [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.5]], "abc")
    made = job(train, weights={"a": 3.0}).batches(tokenizer, ExampleSettings(3, 24, packed=False))(0)
    by_target = {tuple(t): w for t, w in zip(made["targets"][:, 0].tolist(), made["target_weights"][:, 0], strict=True)}
    assert by_target == {(1, 0, 0): 3.0, (0, 1, 0): 1.0, (0.5, 0, 0.5): 2.0}


def test_targets_follow_the_order_of_a_models_labels():
    train = examples([("x",), ("y",)], [[1, 0, 0], [0, 0.25, 0.75]], "abc")
    other = job(train, train).with_labels("cab")
    assert other.labels == ("c", "a", "b")
    for part in (other.train, other.validation):
        np.testing.assert_array_equal(part.targets, [[0, 1, 0], [0.75, 0, 0.25]])


def test_other_data_has_another_fingerprint():
    base = examples([("x",), ("y",)], [[1, 0], [0, 1]], "ab")
    others = [
        base._replace(texts=[("x",), ("z",)]), base._replace(targets=np.eye(2, dtype=np.float32)[::-1]),
        base._replace(labels=("a", "c")),
    ]  # fmt: skip
    assert job(base).fingerprint == job(base).fingerprint
    assert len({job(part).fingerprint for part in (base, *others)} | {job(base, base).fingerprint}) == 5


@pytest.mark.parametrize("told", ["d=1", "a", "a=0", "a=nan", "a=x", "a=1,a=2"])
def test_weights_that_make_no_sense_are_refused(told):
    train = examples([("x",)] * 3, np.eye(3), "abc")
    with pytest.raises(InputError, match=r"config\.class_weights"):
        class_weights(told, train)
    with pytest.raises(InputError, match="they are for one class a row"):
        class_weights("a=1", train._replace(kind="classes"))


def read(tmp_path, rows, **changes) -> Job:
    """The job of a table with (text, label) rows."""
    config = table_config.get_config()
    config.data = str(tmp_path / "rows.tsv")
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    config.update({"text": "text", "label": "label", **changes})
    return classification_job.read(config)


def test_f1_is_of_the_rarer_of_two_classes_and_its_name_says_so(tmp_path):
    """Twenty attacks and 220 normal rows; a setting says otherwise; of equal ones the second."""
    rows = [(f"t{i}", "attack" if i < 20 else "normal") for i in range(240)]
    made = read(tmp_path, rows)
    assert made.positive == "attack"
    assert made.extra({})["scored"] == {
        "metrics": ["accuracy", "f1", "macro_f1", "matthews", "cross_entropy", "n"],
        "positive": "attack",
    }
    normal = made.metrics(made.validation, np.tile(np.float32([0.1, 0.9]), (24, 1)))
    assert normal["f1"] == normal["f1:attack"] == 0
    assert (normal["constant_answer:normal"], normal["accuracy"]) == (24, pytest.approx(22 / 24))
    assert read(tmp_path, rows, positive="normal").positive == "normal"
    assert read(tmp_path, rows[:40]).positive == "normal"  # twenty of each
    made = read(tmp_path, rows[:14] + rows[20:35])  # 14 and 15; of them 13 and 13 are trained on
    assert made.train.targets.sum(0).tolist() == [13, 13]
    assert made.positive == "attack"
    assert read(tmp_path, [(text, f"{label}{i % 2}") for i, (text, label) in enumerate(rows)]).positive is None


def test_glue_has_its_own_positive_class(tmp_path):
    """Most pairs of MRPC are equivalent, and that is what F1 is of."""
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    lines = "".join(f"{int(i % 4 > 0)}\t1\t2\tone {i}\tother {i}\n" for i in range(12))
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(header + lines)
    config = glue_config.get_config("mrpc")
    config.data = str(tmp_path)
    made = classification_job.read(config)
    assert made.positive == "equivalent"
    assert made.choice == Choice("f1", True, 0, "cross_entropy")
    assert made.names == ("f1", "accuracy")
    scores = made.metrics(made.validation, made.validation.targets)
    assert list(scores) == ["f1", "accuracy", "f1:equivalent", "cross_entropy"]
    assert "validation: 12 of 12 texts are in the training part" in made.report  # the same pairs


def test_the_loss_decides_between_equal_evaluations_whatever_is_logged(tmp_path):
    rows = [(f"t{i}", i / 7) for i in range(20)]
    assert read(tmp_path, rows).choice == Choice("pearson", True, 0, "mse")
    made = read(tmp_path, rows, metrics="spearman", metric="mse")
    assert made.choice == Choice("mse", False, 0, "mse")
    assert set(made.metrics(made.validation, made.validation.targets)) == {"spearman", "mse"}
    constant = made.metrics(made.validation, np.full((2, 1), 1.25, np.float32))
    assert constant["constant_answer:about the same number"] == 2
    with pytest.raises(InputError, match=r"config\.metric is 'n'; .* pearson"):
        read(tmp_path, rows, metric="n")


def test_the_report_counts_the_texts_that_both_files_hold(tmp_path):
    (tmp_path / "held.tsv").write_text("text\tlabel\nT1 \ta\nother\tb\nt2\tb\n")
    rows = [(f"t{i}", "ab"[i % 2]) for i in range(6)]
    made = read(tmp_path, rows, validation=str(tmp_path / "held.tsv"))
    assert "validation: 2 of 3 texts are in the training part" in made.report
    assert len(made.validation.texts) == 3
    assert "in the training part, too" not in read(tmp_path, rows * 2, validation_share=0.5).report


def test_scores_are_the_same_on_one_and_on_eight_devices():
    """Packed or not, batches of 1, 7 and 32: the same accuracy, cross-entropy to 1e-6, every row scored."""
    found = load_model_directory(GOLDEN / "tiny_seqcls")
    rng = np.random.default_rng(0)
    words = "the cat dog sat on mat good bad movie great".split()  # noqa: SIM905
    texts = [tuple(" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(2)) for _ in range(53)]
    held = examples(texts, np.eye(3)[rng.integers(0, 3, 53)], found.labels)
    made, scores = job(held, held, metrics=("accuracy", "cross_entropy", "n")), []
    for devices, size, packed in ((1, 32, True), (8, 32, True), (8, 7, False), (1, 1, True), (1, 7, False)):
        mesh = sharding.make_mesh(devices=jax.devices()[:devices])
        place = Devices(lambda batch, mesh=mesh: sharding.place(batch, mesh), sharding.on_this_host)
        settings = ExampleSettings(size, 24, packed, row_unit=devices)
        with jax.set_mesh(mesh):
            params = jax.device_put(found.params, sharding.replicated(mesh))
            scores.append(made.evaluator(found.tokenizer, found.config, settings, place)(params))
    assert {score["accuracy"] for score in scores} == {scores[0]["accuracy"]}
    assert {score["n"] for score in scores} == {53}
    assert np.ptp([score["cross_entropy"] for score in scores]) < 1e-6
