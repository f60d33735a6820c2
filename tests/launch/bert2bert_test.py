"""An encoder-decoder made of a BERT, from the commands: trained, resumed, gone on with, and what it writes."""

import json
import shutil
from typing import Any

import numpy as np
import pytest

import bert
from bert.errors import InputError
from launch import finetune, predict

pytestmark = pytest.mark.usefixtures("one_device")
TINY = "tests/golden/tiny_bert"
WORDS = {"cat": "dog", "john": "mary", "good": "bad", "ran": "runs", "mat": "city", "awful": "great"}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    """Of words of the tiny BERT."""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    rows = [" ".join(rng.choice(list(WORDS), rng.integers(1, 5))) for _ in range(80)]
    (folder / "a.en").write_text("".join(f"{row}\n" for row in rows))
    (folder / "a.de").write_text("".join(" ".join(WORDS[word] for word in row.split()) + "\n" for row in rows))
    return f"{folder / 'a.en'},{folder / 'a.de'}"


def command(variant: str, data: str, workdir, epochs: int, start: str | None = TINY) -> list[str]:
    settings = {
        "data": data, "epochs": epochs, "batch_size": 16, "max_length": 16, "validation_share": 0.2, "beams": 2,
        "keep_checkpoints": 9, "optimizer.learning_rate": 3e-3, "allocator": "system",
    } | ({} if start is None else {"init_from": start})  # fmt: skip
    words = [f"--config.{name}={value}" for name, value in settings.items()]
    return ["finetune", f"--config=configs/translation.py:{variant}", *words, f"--workdir={workdir}"]


def validation(workdir) -> list[float]:
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [line["nll"] for line in lines if line["split"] == "validation"]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["bert2bert", "bertshare"])
def test_it_learns_resumes_at_the_same_weights_translates_and_goes_on(variant, data, tmp_path):
    run = tmp_path / "run"
    finetune.run(command(variant, data, run, 3))
    held = validation(run)
    assert held[-1] < held[0]
    model = bert.load(run)
    config: Any = model.config
    assert (config.model_type, config.share) == ("encoder-decoder", variant == "bertshare")
    assert model.report.notes == []
    (tmp_path / "new.en").write_text("cat ran\n\ngood mat\n")
    predict.run(["predict", f"--model={run}", f"--input={tmp_path / 'new.en'}", f"--output={tmp_path / 'new.txt'}"])
    assert (tmp_path / "new.txt").read_text().split("\n")[:-1] == model.translate(["cat ran", "", "good mat"])
    weights = (run / "model" / "model.safetensors").read_bytes()
    for step in sorted(int(folder.name) for folder in (run / "checkpoints").iterdir() if folder.name.isdigit())[1:]:
        shutil.rmtree(run / "checkpoints" / str(step))
    shutil.rmtree(run / "model")
    finetune.run(command(variant, data, run, 3, start=None))
    assert (run / "model" / "model.safetensors").read_bytes() == weights
    finetune.run(command(variant, data, tmp_path / "on", 1, start=str(run)))
    assert validation(tmp_path / "on")[-1] < held[-1]


def test_where_it_cannot_start_one_line_says_so(data, tmp_path):
    with pytest.raises(InputError, match=r"init_from is missing; rnd2rnd"):
        finetune.run(command("rnd2rnd", data, tmp_path / "a", 1, start=None))
    with pytest.raises(InputError, match=r"init_from: .*'bert' .*bert2bert"):
        finetune.run(command("transformer-tiny", data, tmp_path / "b", 1))
    with pytest.raises(InputError, match=r"max_length is 100.*tiny_bert .*64"):
        finetune.run([*command("bert2bert", data, tmp_path / "c", 1), "--config.max_length=100"])
