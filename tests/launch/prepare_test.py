import pathlib
import socket
import subprocess
import sys

import pytest

from bert.errors import InputError
from bert.store.prepare import PrepareSettings
from bert.store.reader import Store
from launch import command_line, prepare
from tests.bert.builders import bytes_of

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] the keeper climbed stairs alone ."


def command(*words):
    """The finished process of `python -m launch.prepare`."""
    line = [sys.executable, "-m", "launch.prepare", *map(str, words)]
    return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.fixture
def words(tmp_path):
    """Words of a command that prepares a small text with a given vocabulary into tmp_path/out."""
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB.split()))
    (tmp_path / "a.txt").write_text("The keeper climbed.\nThe stairs.\n\nThe keeper.\nAlone.\n")
    settings = ("--config.workers=1", "--config.validation_share=0")
    return [
        f"--config.corpus={tmp_path}/a.txt",
        f"--config.vocab={tmp_path}/vocab.txt",
        f"--out={tmp_path}/out",
        *settings,
    ]


def test_the_command_prepares_reports_and_finds_itself_finished(words, tmp_path):
    """Exit code 0, the settings, the counts and the folder are printed; no carriage return; again, it is finished."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert f"--out={tmp_path}/out" in done.stdout
    assert f"(all are in {tmp_path}/out/manifest.json)" in done.stdout
    assert "--config.seed" not in done.stdout
    assert "documents kept" in done.stdout
    assert done.stdout.endswith(f"prepared text: {tmp_path}/out\n")
    assert "\r" not in done.stdout + done.stderr
    assert Store.open(tmp_path / "out", verify=True).num_documents == 2
    again = command(*words)
    assert again.returncode == 0
    assert "finished before with these settings and texts; nothing was done" in again.stdout


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ((), "vocabulary of 11; lower-case: yes; accents removed: yes; words longer than 100 characters are [UNK]"),
        (
            ("--config.strip_accents=False", "--config.max_word_chars=7"),
            "vocabulary of 11; lower-case: yes; accents removed: no; words longer than 7 characters are [UNK]",
        ),
        (("--config.lower_case=False",), "vocabulary of 11; lower-case: no; accents removed: no; "),
    ],
)
def test_what_the_tokenizer_does_to_text_is_told(words, capsys, settings, told):
    """Letter case, accents and long words stand in the report, of a folder found finished as well."""
    for _ in range(2):
        prepare.run(["prepare", *words, *settings])
        assert told in capsys.readouterr().out


def test_bad_input_is_one_line_and_exit_code_2(words, tmp_path):
    """A wrong setting, a missing option and bad bytes each end with one line of error and leave no folder."""
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9\n")
    bad = [word for word in words if "corpus" not in word] + [f"--config.corpus={tmp_path}/bad.txt"]
    for line, error in (
        ([*words, "--config.sede=3"], "error: unknown setting config.sede; did you mean config.seed?"),
        ([word for word in words if "--out" not in word], "error: --out is missing"),
        (bad, f"error: {tmp_path}/bad.txt, byte 3 (line 1): 0xE9 is not UTF-8"),
    ):
        done = command(*line)
        assert done.returncode == 2
        assert done.stderr.startswith(error)
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.partial").exists()


def test_notices_are_given_before_training(words, tmp_path, caplog):
    """Six lines with blank lines between: the run says that no true pairs can come of them, and still writes them."""
    (tmp_path / "a.txt").write_text("\n\n".join(f"The {word}." for word in VOCAB.split()[4:10]))
    prepared = prepare.run(["prepare", *words])
    assert "6 of 6 documents have one sentence and are unusable for true pairs; NSP needs two" in caplog.text
    assert Store.open(prepared.directory).num_sentences == 6


def test_nothing_reaches_for_the_network(words, tmp_path, monkeypatch):
    """With sockets refused, text, tables and saved data sets are prepared all the same."""
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": ["The keeper. Alone."]})
    data.save_to_disk(str(tmp_path / "saved"))
    data.to_parquet(str(tmp_path / "b.parquet"))

    def refused(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    corpus = f"--config.corpus={tmp_path}/a.txt,{tmp_path}/saved,{tmp_path}/b.parquet"
    prepared = prepare.run(["prepare", *words, corpus, "--config.deduplicate=False"])
    assert prepared.report.kept == 4


def test_shards_are_made_one_by_one_and_joined(words, tmp_path, capsys):
    """The three steps of a job array give the folder of one command; each tells where its part is."""
    words = [word for word in words if "vocab" not in word] + ["--config.vocab_size=40"]
    places = ("out.shards/vocabulary", "out.shards/2-of-2", "out.shards/1-of-2", "out")
    for step, place in zip(("--vocabulary", "--shard=2/2", "--shard=1/2", "--merge"), places, strict=True):
        prepare.run(["prepare", *words, step])
        out = capsys.readouterr().out
        assert out.endswith(f": {tmp_path}/{place}\n")
    prepare.run(["prepare", *words, f"--out={tmp_path}/one"])
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "one")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["--shard=0/4"], "--shard=0/4.* 1/16 to 16/16"),
        (["--shard=5/4"], "--shard=5/4"),
        (["--shard=4"], "--shard=4"),
        (["--shard=1/2", "--merge"], "--merge and --shard"),
        (["--merge", "--config.engine=ray"], "config.engine is 'ray'.*leave out --merge"),
        (["--config.engine=rya"], "config.engine.*did you mean 'ray'"),
        (["--config.engine_address=a:1"], "config.engine_address is 'a:1'.*config.engine is 'local'"),
        (["--vocabulary"], "vocab is .*make the shards"),
        (["--merge"], "out.shards: no shards"),
        (["--out=s3://bucket/out"], "'s3://bucket/out'.*name a folder"),
    ],
)
def test_steps_that_make_no_sense_are_refused(words, tmp_path, steps, said):
    with pytest.raises(InputError, match=said) as error:
        prepare.run(["prepare", *words, *steps])
    assert not (tmp_path / "out").exists()
    assert "leave --out" not in command_line.as_options(str(error.value))  # "leave out" is no setting


def test_settings_of_the_file_and_of_the_library_are_the_same(monkeypatch, tmp_path):
    """Each setting of configs/prepare.py reaches the library, and each of the library's can be set."""
    seen = []
    monkeypatch.setattr(prepare, "prepare", lambda out, settings, **_: seen.append((out, settings)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare.run(["prepare", f"--out={tmp_path}/out"])
    assert seen == [(f"{tmp_path}/out", PrepareSettings("installed-docs"))]


MEMORY = """
import resource, sys
from launch import prepare
from bench import turns
prepare.run(["prepare", *sys.argv[1:]])
print("peak", turns.resident() // 1024 + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_megabytes(words, path, megabytes):
    """Peak resident memory of preparing a text of this size: the process and the largest of its workers."""
    line = "The keeper climbed the stairs alone. " * 3 + "\n"
    with open(path, "w") as handle:
        for number in range(int(megabytes * 1e6 / len(line))):
            handle.write("\n" if number % 40 == 0 else f"{number} {line}")
    program = [sys.executable, "-c", MEMORY, *words, f"--config.corpus={path}", f"--out={path}.out"]
    done = subprocess.run(program, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return int(done.stdout.split("peak ")[1]) / 1024


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_text(words, tmp_path, workers):
    """200 MB of text need less than 512 MB of memory, and 400 MB need less than 1.3 times as much."""
    words = [*words, f"--config.workers={workers}", "--config.shard_tokens=4000000"]
    small = peak_megabytes(words, tmp_path / "small.txt", 200)
    large = peak_megabytes(words, tmp_path / "large.txt", 400)
    assert small < 512
    assert large < 1.3 * small
