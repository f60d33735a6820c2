"""A fine-tuned model that is lost is restored from its own step or refused; never replaced by another step's."""

import json
import pathlib
import shutil

import pytest

import bert
from bert.errors import InputError
from bert.training import train
from bert.training.best import Choice
from launch import evaluate, export, predict
from tests.launch.review_table import QUICK, reviews, run, write

pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> pathlib.Path:
    return write(tmp_path_factory.mktemp("table") / "train.csv", reviews(64, 0))


@pytest.fixture(scope="module")
def words(table) -> tuple[str, ...]:
    return (*QUICK, f"--config.data={table}", "--config.text=review", "--config.label=liked", "--config.epochs=3",
            "--config.validation_share=0.25", "--config.keep_checkpoints=9")  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory, words) -> pathlib.Path:
    """A run of three evaluations, whose first one was the best, with the checkpoints of all."""
    workdir, note = tmp_path_factory.mktemp("runs") / "run", Choice.note
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Choice, "note", lambda self, best, *rest: best.step < 0 and note(self, best, *rest))
        run(*words, f"--workdir={workdir}")
    return workdir


@pytest.fixture
def copied(finished, tmp_path) -> pathlib.Path:
    return shutil.copytree(finished, tmp_path / "run")


def best_and_last(workdir: pathlib.Path) -> tuple[int, int]:
    best = json.loads((workdir / "model" / "config.json").read_text())["finetuning"]["step"]
    return best, max(int(path.name) for path in (workdir / "checkpoints").iterdir())


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lose(workdir: pathlib.Path, name: str) -> None:
    if name:
        (workdir / "model" / name).unlink()
    else:
        shutil.rmtree(workdir / "model")


@pytest.mark.parametrize("name", ["", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt"])
def test_no_command_uses_another_model(copied, table, tmp_path, name):
    lose(copied, name)
    commands = (
        (predict, ["predict", f"--model={copied}", f"--input={table}", f"--output={tmp_path / 'out.csv'}"]),
        (evaluate, ["evaluate", f"--model={copied}", f"--data={table}", f"--out={tmp_path / 'out.json'}"]),
        (export, ["export", f"--source={copied}", f"--out={tmp_path / 'out'}"]),
    )
    for module, command in commands:
        with pytest.raises(InputError, match=name or "step 3, .* lost") as error:
            module.run(command)
        assert str(error.value).startswith(f"{copied}/model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize("name", ["", "model.safetensors", "tokenizer.json"])
def test_the_command_that_trained_it_restores_the_same_files(copied, words, capsys, name):
    best, last = best_and_last(copied)
    assert best < last
    before = contents(copied / "model")
    lose(copied, name)
    run(*words, f"--workdir={copied}")
    assert contents(copied / "model") == before
    assert f"written again from the checkpoint of step {best}" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["removed", "flipped"])
def test_without_the_checkpoint_of_that_step_it_refuses(copied, words, capsys, damage):
    best, _ = best_and_last(copied)
    lose(copied, "")
    if damage == "removed":
        shutil.rmtree(copied / "checkpoints" / str(best))
    else:
        for path in (copied / "checkpoints" / str(best) / "state").rglob("*"):
            content = bytearray(path.read_bytes() if path.is_file() else b"")
            content[100::100] = (byte ^ 4 for byte in content[100::100])  # in parameters as well as in moments
            if content:
                path.write_bytes(content)
    kept = rf"holds steps \d+, \d+, not {best}\)" if damage == "removed" else rf"\({best}: "
    with pytest.raises(InputError, match=rf"model: .* step {best}, .*{kept}.*another folder"):
        run(*words, f"--workdir={copied}")
    assert not (copied / "model").exists()
    assert "wrote" not in capsys.readouterr().out


def test_a_run_that_has_ended_and_lost_its_checkpoints_is_not_trained_anew(copied, words, capsys, monkeypatch):
    """Its model and its log would be replaced; one that was killed before its first checkpoint begins again."""
    shutil.rmtree(copied / "checkpoints")
    log, model = (copied / "metrics.jsonl").read_bytes(), contents(copied / "model")
    with pytest.raises(InputError, match=r"run: .*has ended.*checkpoints/.*another folder"):
        run(*words, f"--workdir={copied}")
    assert (log, model) == ((copied / "metrics.jsonl").read_bytes(), contents(copied / "model"))
    for name in ("evaluation.json", "report.html"):  # which a start takes away
        (copied / name).unlink()

    def fit(*_):
        raise ConnectionAbortedError

    monkeypatch.setattr(train, "fit", fit)
    with pytest.raises(ConnectionAbortedError):
        run(*words, f"--workdir={copied}")
    assert "begins again at step 0" in capsys.readouterr().out


def test_a_directory_that_is_not_known_to_be_ours_is_left_alone(copied, words, capsys):
    """Without its config.json model/ may be anybody's; moved away, as the message says, it is restored."""
    before = contents(copied / "model")
    lose(copied, "config.json")
    with pytest.raises(InputError, match="move this one away"):
        run(*words, f"--workdir={copied}")
    assert "wrote" not in capsys.readouterr().out
    (copied / "model").rename(copied / "away")
    run(*words, f"--workdir={copied}")
    assert contents(copied / "model") == before


@pytest.mark.parametrize("damage", ["missing", "empty", "folder"])
def test_a_finished_run_without_its_log_says_which_scores_are_lost(copied, words, damage):
    best, _ = best_and_last(copied)
    path, before = copied / "metrics.jsonl", contents(copied / "model")
    path.unlink()
    if damage == "empty":
        path.touch()
    if damage == "folder":
        path.mkdir()
    said = r"metrics\.jsonl: is no plain file" if damage == "folder" else f"no scores of step {best}"
    with pytest.raises(InputError, match=said):
        run(*words, f"--workdir={copied}")
    assert contents(copied / "model") == before


@pytest.mark.parametrize("lost", ["labels", "extra", "encoder", "tokenizer.json", "vocab.txt and tokenizer.json"])
def test_a_run_that_lost_what_it_was_started_with_is_refused(copied, words, lost):
    """Neither other names of classes nor another tokenizer takes its place."""
    if "json" in lost:
        for name in lost.split(" and "):
            (copied / name).unlink()
        if lost == "tokenizer.json":  # what is left gives another tokenizer
            (copied / "vocab.txt").write_text((copied / "vocab.txt").read_text().replace("movie", "movies"))
    else:
        values = json.loads((copied / "config.json").read_text())
        values.pop(lost)
        (copied / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=lost.split(" and ")[-1]):
        run(*words, f"--workdir={copied}")


@pytest.mark.slow
def test_a_run_without_an_evaluation_so_far_gives_its_newest_checkpoint(words, tmp_path):
    """There, nothing was chosen: the newest weights are the model."""
    run(*words, "--config.validation_share=0", f"--workdir={tmp_path / 'run'}")
    want = bert.load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    found = bert.load(tmp_path / "run")
    assert found.labels == want.labels == ("no", "yes")
    assert found.predict([{"review": "the movie is great"}]) == want.predict([{"review": "the movie is great"}])
