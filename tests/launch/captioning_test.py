"""Captions of pictures by the commands: trained from random weights, resumed, evaluated and predicted."""

import json
import re
import shutil

import numpy as np
import pytest

import bert
import configs.captioning
from bert.errors import InputError
from launch import evaluate, finetune, predict
from tasks.captioning import job
from tests.launch.review_table import TINY

pytestmark = pytest.mark.usefixtures("one_device")
COLOURS = {"red": (250, 0, 0), "green": (0, 250, 0), "blue": (0, 0, 250)}
SMALL = (
    "--config=configs/captioning.py", "--config.epochs=8", "--config.batch_size=16", "--config.allocator=system",
    "--config.vocab_size=280", "--config.max_length=8", "--config.validation_share=0.2", "--config.beams=2",
    "--config.model.num_layers=1", "--config.model.hidden_size=16", "--config.model.intermediate_size=16",
    "--config.model.num_heads=2", "--config.model.patch_size=2", "--config.model.hidden_dropout=0",
    "--config.model.max_position_embeddings=32", "--config.model.initializer_range=0.25",
    "--config.optimizer.learning_rate=2e-2", "--config.log_every=50", "--config.keep_checkpoints=9",
)  # fmt: skip


def pictures(count: int, seed: int) -> dict[str, np.ndarray]:
    """4 x 4 pixels of noise, one half in a colour: "red left" or "blue right"."""
    rng, texts = np.random.default_rng(seed), []
    images = rng.integers(0, 40, (count, 4, 4, 3), np.uint8)
    for picture in images:
        colour, side = list(COLOURS)[rng.integers(3)], rng.integers(2)
        picture[:, 2 * side : 2 * side + 2] = COLOURS[colour]
        texts.append(f"{colour} {('left', 'right')[side]}")
    return {"images": images, "captions": np.array(texts)}


def run(workdir, *words) -> None:
    finetune.run(["finetune", f"--workdir={workdir}", *SMALL, *map(str, words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder with a.npz and b.npz, the run on the first)"""
    folder = tmp_path_factory.mktemp("captions")
    for seed, (name, count) in enumerate({"a.npz": 160, "b.npz": 24}.items()):
        np.savez(folder / name, **pictures(count, seed))
    run(folder / "run", f"--config.data={folder / 'a.npz'}")
    return folder, folder / "run"


def test_no_output_replaces_a_picture_that_a_table_names(trained, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures of files need Pillow")
    image.fromarray(pictures(1, 5)["images"][0]).save(tmp_path / "p.png")
    (tmp_path / "t.csv").write_text("picture,caption\np.png,red left\n")
    before = (tmp_path / "p.png").read_bytes()
    words = [f"--model={trained[1]}", f"--out={tmp_path / 'p.png'}"]
    with pytest.raises(InputError, match=r"--out=.*is the input"):
        evaluate.run(["evaluate", *words, f"--data={tmp_path / 't.csv'}"])
    assert (tmp_path / "p.png").read_bytes() == before


def test_a_run_learns_and_its_model_writes_captions(trained, monkeypatch, capsys):
    _, workdir = trained
    scores = json.loads((workdir / "evaluation.json").read_text())["scores"]
    assert scores["exact"]["value"] > 0.9
    assert "box_attention" not in scores
    assert "<th>caption</th>" in re.sub(r"<th[^>]*>", "<th>", (workdir / "report.html").read_text())
    model, new = bert.load(workdir), pictures(12, 7)
    captions = model.caption(new["images"])
    assert np.mean(np.array(captions) == new["captions"]) > 0.9
    assert model.caption(new["images"][0]) == captions[0]
    assert model.predict(new["images"][:2]) == [
        {"caption": captions[i], "score": pytest.approx(model.caption(new["images"], best=2)[i][0].score, rel=1e-4)}
        for i in range(2)
    ]
    read = model.attention(new["images"][0])
    assert "".join(read.target).startswith(captions[0])
    assert read.weights.shape == (2, len(read.target), 2, 2)
    np.testing.assert_allclose(read.weights.sum((2, 3)), 1, atol=1e-6)
    (block,) = re.findall(r"```python\n(.*?)```", (workdir / "model" / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(workdir / "model")
    exec(block, {})
    assert "'caption'" in capsys.readouterr().out


def test_a_directory_loads_back_equal(trained, tmp_path):
    _, workdir = trained
    model, new = bert.load(workdir), pictures(4, 8)["images"]
    again = bert.load(bert.save(model, tmp_path / "copy"))
    assert again.config == model.config
    assert again.predict(new) == model.predict(new)


def test_files_are_evaluated_and_captioned(trained, tmp_path, capsys):
    folder, workdir = trained
    data = folder / "b.npz"
    evaluate.run(["evaluate", f"--model={workdir}", f"--data={data}", f"--out={tmp_path / 'scores.json'}"])
    values = json.loads((tmp_path / "scores.json").read_text())
    predict.run(["predict", f"--model={workdir}", f"--input={data}", f"--output={tmp_path / 'answers.jsonl'}"])
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert rows[3]["predicted"].keys() == {"caption", "score"}
    assert rows[3]["picture"] == "picture 3"
    right = np.mean([row["predicted"]["caption"] for row in rows] == np.load(data)["captions"])
    assert values["scores"]["exact"]["value"] == pytest.approx(right)
    predict.run(
        ["predict", f"--model={workdir}", f"--input={data}", f"--output={tmp_path / 'answers.csv'}", "--best=2"]
    )
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("picture,predicted,score", 49)
    words = [f"--model={workdir}", f"--input={data}", f"--output={tmp_path / 'answers.txt'}"]
    predict.run(["predict", *words, f"--attention={tmp_path / 'page.html'}"])
    assert "What a caption reads" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_run_that_goes_on_at_a_checkpoint_ends_at_the_same_weights(trained, tmp_path):
    folder, workdir = trained
    shutil.copytree(workdir, tmp_path / "run")
    checkpoints = tmp_path / "run" / "checkpoints"
    for step in sorted(int(place.name) for place in checkpoints.iterdir() if place.name.isdigit())[5:]:
        shutil.rmtree(checkpoints / str(step))
    shutil.rmtree(tmp_path / "run" / "model")
    run(tmp_path / "run", f"--config.data={folder / 'a.npz'}")
    one, other = ((place / "model" / "model.safetensors").read_bytes() for place in (workdir, tmp_path / "run"))
    assert one == other


@pytest.mark.parametrize(("words", "said"), [
    (["--config.model.patch_size=3"], "pictures have 4 x 4 pixels, no multiple of patch_size 3"),
    (["--config.packed=True"], "packed is True, .*one example"),
    ([f"--config.init_from={TINY}"], "config.init_from: a 'bert' model has no decoder that reads pictures"),
    (["--config.validation=scenes:test:3"], ":3: scene 0 is 64 x 64 x 3, but config.data has 4 x 4 x 3; scale"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(trained, tmp_path, words, said):
    folder, _ = trained
    with pytest.raises(InputError, match=said):
        run(tmp_path / "run", f"--config.data={folder / 'a.npz'}", *words)


def test_a_model_of_other_patches_is_no_start(trained, tmp_path):
    folder, workdir = trained
    words = (f"--config.init_from={workdir}", "--config.model.patch_size=4")
    with pytest.raises(InputError, match=r"patch_size is 4, .*init_from has 2"):
        run(tmp_path / "run", f"--config.data={folder / 'a.npz'}", *words)
    assert not (tmp_path / "run" / "config.json").exists()


def test_another_scale_of_pixels_is_noticed(trained, tmp_path, caplog):
    """Once, by each way in; pictures of the scale of training, and black ones, are not remarked on."""
    folder, workdir = trained
    model, new = bert.load(workdir), pictures(3, 7)
    for same in (new["images"], new["images"] // 4, np.zeros((1, 4, 4, 3))):
        model.caption(same)
    assert not any("scale" in message for message in caplog.messages)
    small = new["images"] / 255
    np.savez(tmp_path / "small.npz", images=small, captions=new["captions"])
    words = [f"--model={workdir}", f"--input={tmp_path / 'small.npz'}", f"--output={tmp_path / 'answers.txt'}"]
    config = configs.captioning.get_config()
    config.data, config.validation = str(folder / "a.npz"), str(tmp_path / "small.npz")
    for name, way in [
        ("pictures", lambda: model.caption(small)),
        ("rows", lambda: model.predict(small)),
        ("the picture", lambda: model.attention(small[0])),
        (config.validation, lambda: predict.run(["predict", *words])),
        (config.validation, lambda: job.read(config)),
    ]:
        caplog.clear()
        way()
        (said,) = [message for message in caplog.messages if "scale" in message]
        assert re.match(rf"{re.escape(name)}: .*0\.\d+,.* 1\d\d;", said)


def test_other_pictures_and_uses_are_refused(trained):
    _, workdir = trained
    model = bert.load(workdir)
    with pytest.raises(InputError, match=r"pictures .*5 x 4 x 3.*4 x 4 x 3"):
        model.caption(np.zeros((5, 4, 3)))
    with pytest.raises(InputError, match=r"pictures .*several sizes"):
        model.caption([np.zeros((4, 4, 3)), np.zeros((5, 4, 3))])
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 4))
    with pytest.raises(InputError, match=r"pictures .*Pillow.*numpy\.asarray\(picture\)"):
        model.caption(image)
    with pytest.raises(InputError, match=r"the picture is uint8 \[2, 4, 4, 3\]; .*one picture"):
        model.attention(np.zeros((2, 4, 4, 3), np.uint8))
    with pytest.raises(InputError, match=r"'picture-transformer' .*no decoder"):
        model.translate("a text")
    with pytest.raises(InputError, match=r"'bert' .*no decoder.*captioning"):
        bert.load(TINY).caption(np.zeros((4, 4, 3)))
    with pytest.raises(InputError, match=r"setting of caption"):
        model.caption(np.zeros((4, 4, 3)), beam=3)
