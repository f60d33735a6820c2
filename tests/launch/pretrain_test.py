"""The pretraining command: from prepared text to a model directory that answers; what it refuses before training."""

import json
import pathlib
import shutil
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import bert
from bert import inference
from bert.data.batches import Batches
from bert.errors import InputError
from bert.store.prepare import PrepareSettings, prepare
from launch import flags
from launch.pretraining_job import PretrainingJob
from tests.launch.tiny_pretraining import TINY, run

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("one_device")  # eight: tests/bert/training/train_test.py


def test_a_run_ends_with_a_model_scores_and_answers_and_goes_on_when_it_is_longer(
    prepared, tmp_path, capsys, monkeypatch
):
    """Six steps, then the same command with ten: the log holds each step once, and the model answers; no network."""

    def refuse(*_):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    workdir, probe = tmp_path / "run", "--config.probes=('the [MASK] .',)"
    run(*TINY, f"--config.data={prepared}", f"--workdir={workdir}", probe)
    said = capsys.readouterr().out
    assert "before" in said
    assert "after" in said
    assert "nsp_accuracy" in said
    assert f"wrote {workdir}/model/" in said
    first = bert.load(workdir).params["encoder"]["embeddings"]["token"]["embedding"]
    run(*TINY, f"--config.data={prepared}", f"--workdir={workdir}", probe, "--config.total_steps=10")
    said = capsys.readouterr().out
    assert "before" not in said  # a run that goes on did not start from random weights
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["split"] == "train"] == [2, 4, 6, 8, 10]
    model = bert.load(workdir)
    assert model.extra["pretraining"] == {"step": 10, "objective": "nsp"}
    assert len(model.fill_mask("the [MASK] .", top=3)[0]) == 3
    assert not np.array_equal(first, model.params["encoder"]["embeddings"]["token"]["embedding"])
    card, last = (
        (workdir / "model" / "README.md").read_text(),
        [row for row in rows if row["split"] == "validation"][-1],
    )
    assert f"| mlm\\_accuracy | {last['mlm_accuracy']:.4f}".rstrip("0") in card
    assert "| documents kept | 40 |" in card
    assert str(tmp_path) not in card
    for name in ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        assert (workdir / "model" / name).is_file()


def test_an_empty_probe_on_the_command_line_is_none(prepared):
    words = ("--config=configs/quickstart.py", f"--config.data={prepared}", "--config.probes=")
    config, _ = flags.parse(["", *words], "", {}, config_file=None)
    assert PretrainingJob(config).config.probes == ()


@pytest.mark.slow
def test_a_run_that_stops_within_its_second_epoch_ends_as_one_that_does_not(prepared, tmp_path, monkeypatch):
    """Real prepared text, dropout, two micro-batches, a crash at batch 7 with epochs of about five batches.

    The weights are bit-equal, so no row was read twice or left out, and masks and pairs were the same.
    """
    words = (*TINY, f"--config.data={prepared}", "--config.total_steps=10", "--config.micro_batches=2")
    words = (*words, "--config.mesh.mode=dp", "--config.batch_size=16", "--config.optimizer.schedule=linear")
    words = (*(word for word in words if "warmup_steps" not in word), "--config.warmup_share=0.4")
    run(*words, f"--workdir={tmp_path / 'whole'}")
    real = Batches.__call__

    def crash_at_seven(self, index, rows=slice(None)):
        assert self.steps_per_epoch < 7
        if index == 7:
            raise ConnectionAbortedError
        return real(self, index, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Batches, "__call__", crash_at_seven)
        with pytest.raises(ConnectionAbortedError):
            run(*words, f"--workdir={tmp_path / 'parts'}")
    run(*words, f"--workdir={tmp_path / 'parts'}")
    second = json.loads((tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()[0])
    assert (second["step"], second["learning_rate"]) == (2, pytest.approx(1e-4 / 4))  # the warm-up has four steps
    whole, parts = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    for name, tensor in whole.items():
        np.testing.assert_array_equal(tensor, parts[name], err_msg=name)


@pytest.mark.slow
def test_a_run_starts_from_the_weights_of_another(prepared, tmp_path, capsys):
    """`init_from`: at rate almost 0 the first run's weights come out again; sizes are those of the first."""
    run(*TINY, f"--config.data={prepared}", f"--workdir={tmp_path / 'one'}", "--config.total_steps=2")
    words = (f"--config.data={prepared}", f"--workdir={tmp_path / 'two'}", f"--config.init_from={tmp_path / 'one'}")
    capsys.readouterr()
    run(*TINY, *words, "--config.optimizer.learning_rate=1e-30", "--config.model.size=mini")
    assert "config.model.size is tiny, as the weights of" in capsys.readouterr().out
    assert json.loads((tmp_path / "two" / "config.json").read_text())["model.size"] == "tiny"
    run(*TINY, *words, "--config.optimizer.learning_rate=1e-30", "--config.model.size=mini")  # goes on: is finished
    one, two = (bert.load(tmp_path / name).params["encoder"]["blocks"] for name in ("one", "two"))
    np.testing.assert_array_equal(one["attention"]["query"]["kernel"], two["attention"]["query"]["kernel"])


@pytest.mark.slow
def test_a_run_starts_from_an_encoder_alone_when_its_head_may_be_new(prepared, tmp_path, capsys):
    """An encoder with the vocabulary of the text and no head: refused with the setting that helps; then it trains."""
    run(*TINY, f"--config.data={prepared}", f"--workdir={tmp_path / 'one'}", "--config.total_steps=2")
    whole = bert.load(tmp_path / "one")
    alone = inference.from_params(
        whole.config, {"encoder": whole.params["encoder"], "head": {"pooler": whole.params["head"]["pooler"]}},
        whole.tokenizer,
    )  # fmt: skip
    bert.save(alone, tmp_path / "encoder")
    words = (f"--config.data={prepared}", f"--workdir={tmp_path / 'two'}", f"--config.init_from={tmp_path / 'encoder'}")
    with pytest.raises(InputError, match=r"mlm.*--config.init_fresh=mlm,next"):
        run(*TINY, *words)
    still = ("--config.optimizer.learning_rate=1e-30", "--config.init_fresh=mlm,next_sentence")
    run(*TINY, *words, "--config.total_steps=2", *still)
    two = bert.load(tmp_path / "two")
    for path in ("encoder", "head"):
        assert set(two.params[path]) == set(whole.params[path])
    pooler = two.params["head"]["pooler"]["kernel"]
    np.testing.assert_array_equal(pooler, whole.params["head"]["pooler"]["kernel"])
    assert not np.array_equal(
        two.params["head"]["next_sentence"]["kernel"], whole.params["head"]["next_sentence"]["kernel"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["none", "sop"])
def test_other_objectives_train(prepared, tmp_path, capsys, objective):
    """Sentence order has two losses; without pairs there is one, and the model has no next-sentence head."""
    run(
        *TINY,
        f"--config.data={prepared}",
        f"--workdir={tmp_path / 'run'}",
        f"--config.examples.objective={objective}",
        "--config.examples.whole_words=True",
        "--config.total_steps=2",
    )
    assert "notice: no word has two pieces" in capsys.readouterr().out  # whole words would be single tokens
    assert ("next_sentence" in bert.load(tmp_path / "run").parts) == (objective == "sop")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--config.max_length=65",), "config.max_length is 65, .*64"),
        (("--config.total_steps=0",), "total_steps is 0"),
        (("--config.batch_size=6", "--config.micro_batches=4"), "batch_size is 6; it must be a multiple of"),
        (("--config.model.size=tinny",), "size is 'tinny'; .*mean 'tiny'"),
        (("--config.examples.mask_share=0.9", "--config.examples.random_share=0.3"), "0.9.*0.3"),
        (("--config.optimizer.name=adam",), "optimizer.name is 'adam'"),
        (("--config.warmup_share=0.1",), "config.warmup_share and config.optimizer.warmup_steps are both given"),
        (("--config.optimizer.warmup_steps=99999",), "warmup_steps is 99999; .*config.warmup_share"),
        (("--config.totl_steps=3",), "config.totl_steps; .*config.total_steps"),
        (("--config.data=",), "config.data is missing"),
        (("--config.allocator=jemalloc",), "config.allocator is 'jemalloc'"),
        (("--config.probes=('no mask',)",), "config.probes: 'no mask' has no \\[MASK\\]"),
        (("--coordinator=localhost:1",), "--num_processes is missing"),
        (
            ("--coordinator=auto", "--num_processes=2"),
            "--coordinator is 'auto'; .*HOST:PORT",
        ),
        (("--coordinator=localhost", "--num_processes=2", "--process_id=0"), "--coordinator is 'localhost'"),
        (("--coordinator=localhost:1", "--num_processes=two", "--process_id=0"), "must be whole numbers"),
        (
            ("--coordinator=localhost:1", "--num_processes=2", "--process_id=2"),
            "--process_id is 2; .*2 processes",
        ),
        (
            ("--config.model.attention=fused",),
            "'fused', .*attention_dropout=0",
        ),
        (("--config.init_from=nowhere",), "nowhere: no such directory"),
        (("--config.init_fresh=mlm",), "config.init_fresh needs config.init_from"),
        (
            ("--config.init_from=nowhere", "--config.init_fresh=mlm,poolr"),
            "config.init_fresh names 'poolr'; .*mlm",
        ),
        (
            ("--config.init_from=nowhere", "--config.init_fresh=sequence_classifier"),
            "config.init_fresh names 'sequence_classifier'",
        ),
    ],
)
def test_bad_settings_are_refused_before_training(prepared, tmp_path, words, said):
    """Each in one line that names the setting, its value and the rule; the run directory is not taken."""
    with pytest.raises(InputError, match=said) as error:
        run(*TINY, f"--config.data={prepared}", f"--workdir={tmp_path / 'run'}", *words)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "config.json").exists()  # the folder is as good as new for the corrected command


@pytest.mark.parametrize("decay_share", [0.5, 1])
def test_a_warm_up_that_leaves_no_room_for_the_decay_is_refused(prepared, tmp_path, decay_share):
    words = [word for word in TINY if "warmup_steps" not in word and "schedule" not in word]
    wsd = ("--config.optimizer.schedule=wsd", f"--config.optimizer.decay_share={decay_share}")
    with pytest.raises(InputError, match=rf"warmup_share is 0\.6; .*{1 - decay_share}, what optimizer.decay_share"):
        run(*words, *wsd, f"--config.data={prepared}", f"--workdir={tmp_path}/run", "--config.warmup_share=0.6")


def test_the_command_line_ends_with_code_2_and_one_line(tmp_path):
    """As a person runs it: no traceback, one line of error on standard error."""
    command = [sys.executable, "-m", "launch.pretrain", *TINY, "--config.data=nowhere", f"--workdir={tmp_path}/run"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == done.stderr.splitlines()
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_model_of_any_size(prepared, tmp_path):
    """Sizes beside those released; the feed-forward part follows the width unless it is set. The run goes on, too."""
    words = (*TINY, f"--config.data={prepared}", f"--workdir={tmp_path / 'run'}", "--config.total_steps=2",
             "--config.optimizer.warmup_steps=1",
             "--config.model.num_layers=1", "--config.model.hidden_size=48", "--config.model.num_heads=3")  # fmt: skip
    run(*words)
    config = bert.load(tmp_path / "run").config
    assert (config.num_layers, config.hidden_size, config.num_heads, config.intermediate_size) == (1, 48, 3, 192)  # type: ignore[attr-defined]
    before = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(InputError, match=r"total_steps is 1, .*step 2"):
        run(*words, "--config.total_steps=1")
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    with pytest.raises(InputError, match=r"model\.num_layers was 1, is 2"):
        run(*words, "--config.model.num_layers=2")
    with pytest.raises(InputError, match="num_heads"):
        run(*words, f"--workdir={tmp_path / 'uneven'}", "--config.model.num_heads=5")


def test_damaged_text_is_refused_by_name_and_prepared_again(prepared, tmp_path):
    """A flipped bit makes one word another: nothing is trained on it, and after the way out the run goes on."""
    data, workdir = shutil.copytree(prepared, tmp_path / "prepared"), tmp_path / "run"
    words = (*TINY, f"--config.data={data}", f"--workdir={workdir}")
    run(*words, "--config.total_steps=2")
    path = data / "train-00000.tokens"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(InputError, match=r"train-00000\.tokens: .*checksum"):
        run(*words, "--config.total_steps=4")
    assert bert.load(workdir).extra["pretraining"]["step"] == 2
    settings = PrepareSettings(
        corpus=str(prepared.parent / "a.txt"), vocab=str(prepared.parent / "vocab.txt"), validation_share=0.1
    )
    assert not prepare(data, settings).was_finished
    run(*words, "--config.total_steps=4")
    assert bert.load(workdir).extra["pretraining"]["step"] == 4


@pytest.mark.slow
def test_two_processes_train_as_one_does(prepared, tmp_path, two_processes):
    """Two local processes over Gloo end with the weights of one process; each builds its half of every batch.

    They print what one process does, without lines of Gloo or of JAX's C++.
    """
    done = two_processes("pretrain", *TINY, f"--config.data={prepared}")
    assert done.stdout.startswith("process 0 of 2: waiting for the others at 127.0.0.1:")
    assert "\nwrote " in done.stdout
    assert "[Gloo]" not in done.stdout
    # On a slow machine an evaluation says how far it is.
    assert all(line.startswith(("step ", "evaluation: ")) for line in done.stderr.splitlines()), done.stderr
    one, two = (bert.load(tmp_path / name).params["encoder"]["blocks"] for name in ("one", "two"))
    for name in ("query", "key", "value"):
        np.testing.assert_allclose(one["attention"][name]["kernel"], two["attention"][name]["kernel"], atol=1e-5)


@pytest.mark.slow
def test_as_many_devices_in_one_process_or_in_two_end_with_the_same_bits(prepared, tmp_path):
    """Both over Gloo. Of rows this long, products are cut by the number of threads."""
    sizes = ("--config.batch_size=32", "--config.max_length=128", "--config.model.max_position_embeddings=128")
    environment = {"PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)}
    for processes, devices in ((1, 4), (2, 2)):
        words = (f"--config.data={prepared}", "--config.mesh.mode=fsdp", f"--workdir={tmp_path / str(processes)}")
        command = [sys.executable, "-m", "launch.local_processes", f"--processes={processes}", f"--devices={devices}"]
        subprocess.run(
            [*command, "pretrain", *TINY, *sizes, *words], cwd=CHECKOUT, env=environment, check=True, timeout=500
        )
    one, two = (bert.load(tmp_path / name).params for name in ("1", "2"))
    jax.tree.map(np.testing.assert_array_equal, one, two)
