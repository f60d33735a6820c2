"""The run directory: the same settings go on, others are refused by name, foreign folders are left alone."""

import functools
import json

import pytest

from bert.errors import InputError
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.wordpiece import WordPiece
from bert.training import run_directory, tracking

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello"]
SETTINGS = {"total_steps": 10, "seed": 0, "probes": ("a", "b"), "mesh.mode": "dp"}


@pytest.fixture
def tokenizer() -> Tokenizer:
    return WordPiece.from_vocab(VOCABULARY, source="a test")


def open_run(workdir, tokenizer, defaults=None, **changes) -> bool:
    """Checks and notes the settings, as a command does."""
    settings = SETTINGS | changes
    goes_on = run_directory.check(workdir, settings, may_change=("total_steps", "mesh."), defaults=defaults)
    run_directory.write(workdir, settings, tokenizer)
    return goes_on


def test_the_same_settings_go_on_and_every_value_is_on_disk(tmp_path, tokenizer):
    assert not open_run(tmp_path / "run", tokenizer)
    assert open_run(tmp_path / "run", tokenizer)
    written = json.loads((tmp_path / "run" / "config.json").read_text())
    assert written == {**SETTINGS, "probes": ["a", "b"], "tokenizer_sha256": tokenizer.fingerprint}
    assert load_tokenizer(tmp_path / "run").fingerprint == tokenizer.fingerprint


def test_a_run_of_an_earlier_version_goes_on(tmp_path, tokenizer):
    """Its settings have no checksum of the tokenizer; from now on they do, and another tokenizer is refused."""
    open_run(tmp_path, tokenizer)
    (tmp_path / "config.json").write_text(json.dumps({**SETTINGS, "probes": ["a", "b"]}))
    assert run_directory.read_tokenizer(tmp_path).fingerprint == tokenizer.fingerprint
    assert open_run(tmp_path, tokenizer)
    WordPiece.from_vocab([*VOCABULARY, "more"], source="a test").save(tmp_path)
    with pytest.raises(InputError, match=r"tokenizer\.json, .* damaged"):
        run_directory.read_tokenizer(tmp_path)


def test_other_settings_are_refused_with_both_values(tmp_path, tokenizer):
    """A changed seed would silently train something else; a longer run and another mesh may go on."""
    open_run(tmp_path / "run", tokenizer)
    with pytest.raises(InputError, match="settings: seed was 0, is 1; give"):
        open_run(tmp_path / "run", tokenizer, seed=1)
    with pytest.raises(InputError, match="settings: seed was 0, is 1; give"):  # not what follows from it
        open_run(tmp_path / "run", tokenizer, seed=1, extra={"seed": 1}, data_sha256="other")
    with pytest.raises(InputError, match=r"config.json: the data .*changed"):
        open_run(tmp_path / "run", tokenizer, data_sha256="other")
    with pytest.raises(InputError, match=": task was None, is 'squad'; give"):  # all else follows from it
        open_run(tmp_path / "run", tokenizer, seed=1, task="squad")
    assert open_run(tmp_path / "run", tokenizer, total_steps=20, **{"mesh.mode": "fsdp"})
    assert run_directory.read(tmp_path / "run")["total_steps"] == 20


def test_a_setting_that_is_newer_than_the_run_had_its_default(tmp_path, tokenizer):
    """Also inside of what is derived from settings; another value is refused, and so is what a task does not have."""
    open_run(tmp_path / "run", tokenizer, extra={"files": {"format": "auto"}})
    newer = {"smoothing": 0.0, "extra": {"files": {"format": "auto", "offsets": "auto"}}}
    check = functools.partial(run_directory.check, tmp_path / "run", may_change=(), defaults={"smoothing": 0.0})
    assert check(SETTINGS | newer)
    with pytest.raises(InputError, match=r"settings: smoothing was 0.0, is 0.1; give"):
        check(SETTINGS | newer | {"smoothing": 0.1})
    with pytest.raises(InputError, match="extra was"):
        check(SETTINGS | newer | {"extra": {"files": {"format": "lines", "offsets": "auto"}}})
    with pytest.raises(InputError, match="task was None"):
        check(SETTINGS | newer | {"task": "squad"}, defaults={"smoothing": 0.0, "task": "squad"})


def test_a_folder_with_other_files_is_not_taken_for_a_run(tmp_path, tokenizer):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds files but no run"):
        open_run(tmp_path, tokenizer)


def test_a_damaged_config_is_told_by_file_and_line(tmp_path, tokenizer):
    open_run(tmp_path, tokenizer)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"seed"', '"seee"'))
    with pytest.raises(InputError, match=r"config\.json: seee is no setting.*damaged.*another folder"):
        open_run(tmp_path, tokenizer, defaults={"seed": 0})
    (tmp_path / "config.json").write_text('{"seed": 0,')
    with pytest.raises(InputError, match=r"config\.json:1: not JSON.*restore it .*another folder"):
        open_run(tmp_path, tokenizer)
    (tmp_path / "config.json").unlink()
    (tmp_path / "checkpoints" / "4").mkdir(parents=True)
    with pytest.raises(InputError, match=r"config\.json: is missing.*checkpoints.*restore it"):
        run_directory.read(tmp_path)
    with pytest.raises(InputError, match="no run here"):
        run_directory.read(tmp_path / "elsewhere")


def test_a_run_killed_before_it_wrote_its_settings_can_start_again(tmp_path, tokenizer, killed_writer):
    """The lock, compiled programs and half-written settings are no foreign files."""
    with run_directory.locked(tmp_path / "run"):
        (tmp_path / "run" / "cache").mkdir()
        killed_writer(tmp_path / "run" / "config.json")
        (tmp_path / "run" / "config.json.tmp").write_text("{")
    assert not open_run(tmp_path / "run", tokenizer)


def test_files_of_others_keep_their_text(tmp_path, tokenizer):
    """Beside a run's own files, under names that programs use; a lock that is a link empties nothing."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").write_text("mine")
    with pytest.raises(InputError, match="no"), run_directory.locked(tmp_path / "run"):
        raise InputError("no")
    with run_directory.locked(tmp_path / "run"):
        open_run(tmp_path / "run", tokenizer)
        for name in ("config.json.tmp", "metrics.jsonl.tmp"):
            (tmp_path / "run" / name).write_text("mine")
        open_run(tmp_path / "run", tokenizer)
        tracking.MetricsFile(tmp_path / "run", 0).close()
    for name in ("lock", "config.json.tmp", "metrics.jsonl.tmp"):
        assert (tmp_path / "run" / name).read_text() == "mine"
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "lock").symlink_to(tmp_path / "run" / "lock")
    with pytest.raises(InputError, match="lock: is not a plain file"):
        run_directory.locked(tmp_path / "link").__enter__()
    assert (tmp_path / "run" / "lock").read_text() == "mine"


def test_two_runs_never_share_a_folder(tmp_path):
    """The second one is refused in a line while the first is at work, and let in afterwards."""
    second = run_directory.locked(tmp_path / "run")
    with run_directory.locked(tmp_path / "run"), pytest.raises(InputError, match="another run is active"), second:
        pass
    with run_directory.locked(tmp_path / "run"):
        pass


def test_a_refused_run_leaves_no_trace(tmp_path):
    """A new folder is gone again, a foreign one is as it was; a file in its place is refused in a line."""
    (tmp_path / "thesis.tex").write_text("mine")
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(InputError, match="no"), run_directory.locked(folder):
            raise InputError("no")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    for name, why in (("\udcff", "not UTF-8"), ("back\\sl", "backslash")):
        with pytest.raises(InputError, match=why):
            run_directory.locked(tmp_path / name / "run").__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match=r"thesis\.tex: .*File exists"):
        run_directory.locked(tmp_path / "thesis.tex").__enter__()
