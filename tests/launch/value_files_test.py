"""Files of settings in YAML and JSON: values as the settings' types have them; one line for what is wrong in them."""

import json

import pytest

from bert import config_fields
from bert.errors import InputError
from launch import config_files, flags


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """The settings of a file with this text, by dotted name."""
    monkeypatch.chdir(tmp_path)

    def read(text, name="my.yaml", *words):
        (tmp_path / name).write_text(text)
        config, _ = flags.parse(["finetune", f"--config={name}", *words], "", {}, config_file=None)
        return config_fields.flatten(config)

    return read


def test_what_differs_is_named_and_the_rest_is_the_recipe(settings):
    """Nested or with dots, in YAML or JSON; the command line counts before the file."""
    want = flags.defaults("configs/table.py") | {
        "text": "review", "optimizer.learning_rate": 1e-5, "epochs": 5.0, "optimizer.name": "lamb", "steps": 7
    }  # fmt: skip
    text = "base: table\ntext: review\noptimizer: {learning_rate: 1e-5}\noptimizer.name: lamb\nepochs: 5\nsteps: 7\n"
    assert settings(text) == want
    values = {"base": "configs/table.py", "optimizer": {"learning_rate": 1e-5, "name": "lamb"}, "epochs": 5}
    assert settings(json.dumps(values | {"text": "review", "steps": 7}), "my.json") == want
    assert settings(text, "my.yml", "--config.epochs=2") == want | {"epochs": 2.0}
    glue = settings("base: glue:cola\nseed: 3\n")
    assert (glue["glue"], glue["seed"]) == ("cola", 3)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("no_answer: no", "no_answer", "no"),  # a text, where YAML reads False
        ("data: 2024-01-01", "data", "2024-01-01"),  # a date
        ("question: 007", "question", "007"),
        ("validation: 1:30", "validation", "1:30"),  # 90, in YAML 1.1
        ("epochs: 1e1", "epochs", 10.0),  # a text, in YAML 1.1
        ("optimizer.learning_rate: 1e-5", "optimizer.learning_rate", 1e-5),
        ("packed: off", "packed", False),
        ("packed: False", "packed", False),
        ("steps: ~", "steps", None),
        ("data: 'null'", "data", "null"),
    ],
)
def test_the_setting_decides_what_a_value_is(settings, line, name, value):
    got = settings(f"base: squad\n{line}\n")[name]
    assert got == value
    assert type(got) is type(value)


def test_lists(tmp_path):
    (tmp_path / "my.yaml").write_text("base: pretrain:tiny\nprobes: [a [MASK] ., 'b']\n".replace("a [MASK] .", "'a'"))
    config, _ = flags.parse(["pretrain", f"--config={tmp_path / 'my.yaml'}"], "", {}, config_file=None)
    assert (config.probes, config.model.size) == (("a", "b"), "tiny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: table\nepoch: 3", r"my.yaml:2: unknown setting epoch; did you mean epochs\?"),
        ("base: table\nlearning_rate: 3", r"my.yaml:2: .*; write optimizer.learning_rate: 3$"),
        ("base: table\nframe_rate: 3", r"my.yaml:2: unknown setting frame_rate; "),
        ("base: table\nepochs: 3\n\nepochs: 4", r"my.yaml:4: epochs is set twice, before in my.yaml:2"),
        ("base: table\noptimizer:\n  b1: 0.8\noptimizer.b1: 0.9", r"my.yaml:4: optimizer.b1 is set twice"),
        ("base: table\noptimizer: 3", r"my.yaml:2: .*optimizer; it is a section"),
        ("base: table\nepochs: many", r"my.yaml:2: epochs is 'many'; it must be a number"),
        ("base: table\nepochs: [1]", r"my.yaml:2: epochs is \['1'\]; it must be a number"),
        ("base: table\nbatch_size: 010", r"my.yaml:2: batch_size is '010'; it must be a whole number"),
        ("base: table\nbatch_size: 1:30", r"my.yaml:2: batch_size is '1:30'; it must be a whole number"),
        ("base: table\nbatch_size: 8.0", r"my.yaml:2: batch_size is '8.0'; it must be a whole number"),
        ("base: table\nbatch_size:", r"my.yaml:2: batch_size has no value"),
        ("base: table\npacked: 1", r"my.yaml:2: packed is '1'; it must be true or false"),
        ("base: table\nlabel: [a, b]", r"my.yaml:2: label is .*; it must be one text"),
        ("base: table\n[a]: 3", r"my.yaml:2: a name is no text"),
        ("base: table\nlabel: [[a]]", r"my.yaml:2: label holds lists"),
        ("base: table\na: &a {b: *a}", r"my.yaml: nested without end"),
        ("base: table\n\tepochs: 3", r"my.yaml:2: not YAML"),
        ("base: table\n---\nbase: table", r"my.yaml:2: not YAML"),
        ("epochs: 3", r"my.yaml: has no base; add base: .*configs/table.py"),
        ("", r"my.yaml: holds no names and values"),
        ("- epochs", r"my.yaml: holds no names and values"),
        ("base: table\nlearning_rate:\n  b: 1", r"my.yaml:3: unknown setting learning_rate.b"),
        ("base: table\nnum_train_epochs: 3", r"my.yaml:2: unknown setting num_train_epochs; write epochs: 3$"),
        ("base: table\noptimizer: {lr: 1e-5}", r"my.yaml:2: .*optimizer.lr; write optimizer.learning_rate: 1e-5$"),
        ("base: table\nfp16: true", r"my.yaml:2: unknown setting fp16; write model.dtype: bfloat16; "),
        ("base: table\npush_to_hub: true", r"my.yaml:2: unknown setting push_to_hub; .*push DIR"),
        ("base: table\nworkdir: run", r"my.yaml:2: unknown setting workdir; .*--workdir=RUN"),
        ("base: table\ncolumns: [a, b]", r"my.yaml:2: columns is .*; it must be one text, with commas"),
        ("base: table:x", r"--config=\S*table.py:x: this file takes no :NAME"),
        ("seed: 3\nbase: tabel", r"my.yaml:2: base is tabel, no such file"),
        ("base: tabel", r"my.yaml:1: base is tabel, no such file; recipes: .*table"),
        ("base: my.yaml", r"my.yaml:1: base is 'my.yaml'; it must be"),
        ("base: [table]", r"my.yaml:1: base is "),
    ],
)
def test_what_is_wrong_is_one_line(settings, text, message):
    with pytest.raises(InputError, match=f"^{message}") as caught:
        settings(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"base": "table", "epochs": "many"}', "my.json: epochs is 'many'; it must be a number"),
        ('{"base": "table", "epochs": true}', "my.json: epochs is True; it must be a number"),
        ('{"base": "table", "seed": true}', "my.json: seed is True; it must be a whole number"),
        ('{"base": "table", "epochs": 3, "epochs": 4}', "my.json.*epochs"),
        ('{"epochs": 3}', "my.json: has no base"),
        ("{", "my.json"),
    ],
)
def test_what_is_wrong_in_json_is_one_line(settings, text, message):
    with pytest.raises(InputError, match=f"^{message}") as caught:
        settings(text, "my.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("recipe", ["table", "tagging", "pretrain"])
def test_the_settings_of_a_run_are_a_file_of_settings(settings, recipe):
    """The same settings again, also those that the command line left open, without what the run recorded."""
    changed = flags.defaults(f"configs/{recipe}.py") | {"seed": 5, "optimizer.b1": 0.5, "optimizer.schedule": "cosine"}
    other = {"table": "epochs", "tagging": "epochs", "pretrain": "optimizer.warmup_steps"}[recipe]
    changed |= {other: None, "steps" if other == "epochs" else "warmup_share": 0.25 if recipe == "pretrain" else 9}
    recorded = {"data_sha256": "0", "encoder": {"hidden_size": 3}, "labels": ["a"], "extra": {}}
    assert settings(json.dumps(changed | recorded), "config.json") == changed


def test_the_help_shows_values_of_the_file_and_comments_of_its_recipe(settings, tmp_path):
    settings("base: table\nepochs: 5\n")
    (epochs,) = [
        setting
        for settings in config_files.described(["", "--config=my.yaml"], None).values()
        for setting in settings
        if setting.name == "epochs"
    ]
    assert epochs.value == 5.0
    assert epochs.comment.startswith("passes over")
