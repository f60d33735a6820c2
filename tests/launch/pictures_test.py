"""Classes of pictures by the commands: trained from random weights, resumed, evaluated and predicted."""

import json
import re

import numpy as np
import pytest

import bert
import configs.digits
from bert.errors import InputError
from launch import evaluate, finetune, predict
from tasks.pictures import job
from tests.launch.review_table import TINY

pytestmark = pytest.mark.usefixtures("one_device")
SMALL = (
    "--config=configs/digits.py", "--config.epochs=6", "--config.batch_size=16", "--config.allocator=system",
    "--config.model.num_layers=1", "--config.model.hidden_size=16", "--config.model.intermediate_size=64",
    "--config.model.num_heads=2",
    "--config.model.initializer_range=0.2", "--config.optimizer.learning_rate=1e-2", "--config.evaluations_per_epoch=1",
    "--config.model.hidden_dropout=0.0", "--config.model.attention_dropout=0.0", "--config.log_every=50",
)  # fmt: skip


def pictures(count: int, seed: int) -> dict[str, np.ndarray]:
    """Noise of 4 x 4 pixels with one bright pixel, in the upper half ("up") or in the lower one."""
    rng = np.random.default_rng(seed)
    images, rows = rng.normal(100, 10, (count, 4, 4)), np.arange(count) % 4
    images[np.arange(count), rows, rng.integers(0, 4, count)] += 100
    return {"images": images, "labels": np.where(rows < 2, "up", "down")}


def run(workdir, *words) -> None:
    finetune.run(["finetune", f"--workdir={workdir}", *SMALL, *map(str, words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder with a.npz and b.npz, the run on the first)"""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, name in enumerate(("a.npz", "b.npz")):
        np.savez(folder / name, **pictures(120, seed))
    run(folder / "run", f"--config.data={folder / 'a.npz'}", "--config.fold=1", "--config.baseline=True")
    return folder, folder / "run"


def test_a_run_learns_and_its_model_predicts_pictures(trained, monkeypatch, capsys):
    folder, workdir = trained
    scores = json.loads((workdir / "evaluation.json").read_text())
    assert scores["scores"]["accuracy"]["value"] > 0.9
    assert scores["baseline"]["accuracy"] > 0.9
    assert scores["baseline_is"] == "logistic regression of the pixels"
    assert "Which classes are confused" in (workdir / "report.html").read_text()
    model, held = bert.load(workdir), pictures(40, 7)
    answers = model.predict(held["images"], measure="entropy")
    assert np.mean([answer["label"] for answer in answers] == held["labels"]) > 0.9
    assert answers[0].keys() == {"label", "probabilities", "entropy"}
    assert model.predict(list(held["images"][:2])) == model.predict(held["images"][:2, :, :, None])
    again = bert.load(bert.save(model, folder / "copy"))
    assert again.predict(held["images"][:3]) == model.predict(held["images"][:3])
    (block,) = re.findall(r"```python\n(.*?)```", (workdir / "model" / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(workdir / "model")
    exec(block, {})
    assert "'probabilities'" in capsys.readouterr().out


def test_another_scale_of_pixels_is_noticed(trained, tmp_path, caplog):
    folder, workdir = trained
    small = pictures(8, 3) | {"images": pictures(8, 3)["images"] / 255}
    np.savez(tmp_path / "c.npz", **small)
    config = configs.digits.get_config()
    config.data, config.validation = str(folder / "a.npz"), str(tmp_path / "c.npz")
    model = bert.load(workdir)
    model.predict(pictures(8, 3)["images"])
    assert not any("scale" in message for message in caplog.messages)
    for way in (
        lambda: model.predict(small["images"]),
        lambda: evaluate.run(["evaluate", f"--model={workdir}", f"--data={tmp_path / 'c.npz'}"]),
        lambda: job.read(config),
    ):
        caplog.clear()
        way()
        assert ["0.4" in message for message in caplog.messages if "scale" in message] == [True]


def test_files_are_evaluated_and_predicted(trained, capsys):
    folder, workdir = trained
    data = folder / "b.npz"
    evaluate.run(["evaluate", f"--model={workdir}", f"--data={data}", f"--out={folder / 'scores.json'}"])
    values = json.loads((folder / "scores.json").read_text())
    assert "pictures" in capsys.readouterr().out
    predict.run(["predict", f"--model={workdir}", f"--input={data}", f"--output={folder / 'answers.jsonl'}"])
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert [row["picture"] for row in answers] == list(range(120))
    right = np.mean([row["predicted"]["label"] for row in answers] == np.load(data)["labels"])
    assert values["scores"]["accuracy"]["value"] == pytest.approx(right)
    assert right > 0.9
    predict.run(["predict", f"--model={workdir}", f"--input={data}", f"--output={folder / 'answers.csv'}"])
    assert (folder / "answers.csv").read_text().splitlines()[0] == "picture,predicted,p_down,p_up"


@pytest.mark.slow
def test_a_finished_run_resumes_to_its_end_and_another_starts_from_it(trained, tmp_path, capsys):
    folder, workdir = trained
    data = f"--config.data={folder / 'a.npz'}"
    before = (workdir / "model" / "model.safetensors").read_bytes()
    run(workdir, data, "--config.fold=1", "--config.baseline=True")
    assert (workdir / "model" / "model.safetensors").read_bytes() == before
    still = ("--config.optimizer.learning_rate=1e-30", "--config.epochs=1", "--config.validation_share=0")
    run(tmp_path / "next", data, *still, f"--config.init_from={workdir}")
    tables = [bert.load(path).params["encoder"]["embeddings"]["patch"] for path in (workdir, tmp_path / "next")]
    np.testing.assert_array_equal(*(table["projection"]["kernel"] for table in tables))


@pytest.mark.parametrize(("words", "said"), [
    (["--config.model.patch_size=3"], "pictures have 4 x 4 pixels, no multiple of patch_size 3"),
    (["--config.max_length=4"], "max_length is 4, but pictures of 4 x 4 pixels are 5 positions in patches of 2"),
    (["--config.fold=5"], "config.fold is 5; it must be a whole number, at least 0 and below 5"),
    (["--config.fold=1", "--config.validation=x.npz"], "config.fold is 1, and config.validation names a file"),
    (["--config.add_tokens=a"], "add_tokens is 'a', but pictures have no tokens"),
    ([f"--config.init_from={TINY}"], "is a 'bert' encoder, which reads texts; start from another model"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(trained, tmp_path, words, said):
    folder, _ = trained
    with pytest.raises(InputError, match=said):
        run(tmp_path / "run", f"--config.data={folder / 'a.npz'}", *words)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_model_of_other_pictures_or_patches_is_no_start(trained, tmp_path):
    """Nothing is written, so the run can begin with the right setting."""
    folder, workdir = trained
    np.savez(tmp_path / "wide.npz", images=np.eye(60).reshape(60, 6, 10), labels=["up", "down"] * 30)
    start = f"--config.init_from={workdir}"
    with pytest.raises(InputError, match=r"6 x 10 x 1, .*init_from reads 4 x 4 x 1"):
        run(tmp_path / "run", f"--config.data={tmp_path / 'wide.npz'}", start)
    with pytest.raises(InputError, match=r"patch_size is 4, .*init_from has 2"):
        run(tmp_path / "run", f"--config.data={folder / 'a.npz'}", start, "--config.model.patch_size=4")
    assert not (tmp_path / "run" / "config.json").exists()


def test_pictures_of_another_size_and_texts_are_refused(trained, tmp_path):
    _, workdir = trained
    model = bert.load(workdir)
    with pytest.raises(InputError, match=r"rows .*5 x 4 x 1, .*4 x 4 x 1"):
        model.predict(np.zeros((1, 5, 4)))
    with pytest.raises(InputError, match=r"rows .*several sizes"):
        model.predict([np.zeros((4, 4)), np.zeros((5, 4))])
    with pytest.raises(InputError, match=r"'patches' .*token ids.*predict"):
        model.outputs([[0, 0]])
    with pytest.raises(InputError, match=r"has no tokenizer.json or vocab.txt"):
        model.embed(["a text"])
    with pytest.raises(InputError, match="reads patches"):
        bert.save(model, tmp_path / "out", format="stablehlo")
