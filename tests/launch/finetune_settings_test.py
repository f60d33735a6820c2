"""Settings and data that the fine-tuning command refuses or remarks on; what it does is in finetune_test.py."""

import pytest

from bert.errors import InputError
from tests.launch.review_table import QUICK, reviews, run, write

pytestmark = pytest.mark.usefixtures("one_device")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--config.data=",), "config.data is missing"),
        (("--config.text=",), "text is missing; name the text column"),
        (("--config.text=reviw",), "reviw.*review"),
        (("--config.label=like",), "like.*liked"),
        (("--config.init_from=",), "config.init_from is missing"),
        (("--config.max_length=100",), "config.max_length is 100, but .* has 64 positions; lower it"),
        (("--config.metric=bleu",), "config.metric is 'bleu'; .* accuracy"),
        (("--config.metrics=accuracy,bleu",), "metric 'bleu' is not known"),
        (("--config.class_weights=maybe=2",), "config.class_weights: class is 'maybe'"),
        (("--config.class_weights=yes=-1",), "'yes=-1' must be CLASS=NUMBER"),
        (("--config.seeds=0",), "config.seeds is 0"),
        (("--config.seed=-1",), "config.seed is -1; .* at least 0"),
        (("--config.seed=4294967296",), "config.seed is 4294967296; .*4,294,967,295"),
        (("--config.seeds=2", "--config.validation_share=0"), "config.seeds is 2, .* held out"),
        (("--config.patience=3", "--config.validation_share=0"), "config.patience is 3, .* held out"),
        (("--config.metric=accuracy", "--config.validation_share=0"), "config.metric is 'accuracy', .* held out"),
        (("--config.epochs=nan",), "config.epochs is nan; .*above 0"),
        (("--config.epochs=inf",), "config.epochs is inf"),
        (("--config.epochs=0",), "config.epochs is 0"),
        (("--config.steps=0",), "config.steps is 0"),
        (("--config.steps=10", "--config.epochs=2"), "config.steps and config.epochs are both given"),
        (("--config.warmup_share=2",), "config.warmup_share is 2"),
        (("--config.label_smoothing=1",), "config.label_smoothing is 1"),
        (("--config.optimizer.decay_share=1.5",), "optimizer.decay_share is 1.5"),
        (
            ("--config.optimizer.schedule=wsd", "--config.warmup_share=0.95"),
            "warmup_share is 0.95; .*decay_share leaves",
        ),
        (
            ("--config.optimizer.schedule=wsd", "--config.optimizer.decay_share=0.9", "--config.warmup_share=0.2"),
            "warmup_share is 0.2; .*at most 0.1,",
        ),
        (("--config.max_length=2",), "config.max_length is 2; .*CLS"),
        (("--config.task=tagging",), "config.task belongs to the file of settings; choose another by --config="),
        (("--config.task", "tagging"), "config.task belongs to the file of settings"),
        (("--config.micro_batches=0",), "config.micro_batches is 0; .*1"),
        (("--config.classifier_dropout=1.0",), "config.classifier_dropout is 1.0"),
        (("--config.threshold=2",), "config.threshold is 2.0"),
        (("--config.glue=colla",), "config.glue is 'colla'; it must be one of cola"),
    ],
)
def test_bad_settings_are_refused_before_training(table, tmp_path, words, said):
    with pytest.raises(InputError, match=said) as error:
        run(*QUICK, *table, f"--workdir={tmp_path / 'run'}", *words)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "config.json").exists()


def test_an_unknown_label_in_validation_is_told_with_its_line(folder, table, tmp_path):
    rows = reviews(10, 7)
    rows[4]["liked"] = "maybe"
    held = write(tmp_path / "held.csv", rows)
    with pytest.raises(InputError, match=rf"{held}:6: .*maybe.*no.*yes"):
        run(*QUICK, *table, f"--config.validation={held}", f"--workdir={tmp_path / 'run'}")


def test_a_metric_that_is_never_defined_chooses_nothing_and_that_is_said(tmp_path, capsys):
    """Held-out numbers that are all the same have no correlation."""
    rows = [{"text": row["review"], "score": "2"} for row in reviews(16, 1)]
    data = write(tmp_path / "rows.csv", rows)
    run(*QUICK, f"--config.data={data}", f"--config.validation={data}", "--config.text=text", "--config.label=score",
        "--config.kind=number", "--config.metric=pearson", f"--workdir={tmp_path / 'run'}")  # fmt: skip
    assert "pearson was undefined in every evaluation; model/ is of step" in capsys.readouterr().out
