"""How processes find each other, and where programs are kept.

Training with several processes is in pretrain_test.py and finetune_tokens_test.py.
"""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from launch import runtime

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# A command that only sets itself up, and says its number and how many there are.
STARTS = """
import pathlib, sys, jax
from launch import flags, runtime

def run(argv):
    config, options = flags.parse(argv, doc="", config_file=None, options=runtime.PROCESS_OPTIONS, required=())
    runtime.start(allocator="system", cache=pathlib.Path("unused"), options=options)
    print(jax.process_index(), jax.process_count())
    print("bad", jax.process_index(), "\\nworse", file=sys.stderr)

flags.main(run)
"""


# The same, with settings of its own for the run directory.
WRITES = STARTS.replace(
    "print(",
    """from bert.tokenizer.backends import load_tokenizer
    from bert.training import run_directory
    settings = {"seed": config.seed, "data_sha256": "same", "data": str(jax.process_index())}
    run_directory.agree(settings)
    run_directory.write(pathlib.Path(config.data), settings, load_tokenizer("tests/golden/tiny_bert"))
    print(""",
    1,
)


def start(*words: str, program: str = STARTS, **environment: str) -> subprocess.Popen:
    """A program without what this machine's own cluster says."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "KUBERNETES"))}
    return subprocess.Popen(
        [sys.executable, "-c", program, "--config=configs/quickstart.py", *words],
        cwd=CHECKOUT,
        env={**ours, "JAX_PLATFORMS": "cpu", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("words", "more"), [((), {"SLURM_STEP_NUM_TASKS": "2"}), (("--coordinator=auto",), {})], ids=["unasked", "auto"]
)
def test_the_processes_of_a_cluster_that_jax_knows_find_each_other(words, more):
    """Two processes that are told what Slurm tells them; elsewhere than under srun only where auto asks for it.

    Process 0 alone prints to standard output; the lines of the other have its number, and C++ code prints none.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    both = [start(*words, JAX_COORDINATOR_PORT=port, SLURM_PROCID=str(i), **job, **more) for i in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert said == [("0 2\n", "bad 0 \nworse\n"), ("", "process 1: bad 1 \nprocess 1: worse\n")]


@pytest.mark.parametrize("seeds", ["00", "01"])
def test_processes_with_different_settings_do_not_train_together(tmp_path, seeds):
    """All of them are told which setting differs, and nothing is written; paths of the same data may differ."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    words = (address, "--num_processes=2", f"--config.data={tmp_path / 'run'}")
    both = [start(*words, f"--process_id={i}", f"--config.seed={seeds[i]}", program=WRITES) for i in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    if seeds == "00":
        assert [process.returncode for process in both] == [0, 0], said
    else:
        assert [process.returncode for process in both] == [2, 2], said
        for _, error in said:
            assert "error: not all processes have the settings and data of process 0 (seed; in process 1)" in error
    assert (tmp_path / "run").exists() == (seeds == "00")


@pytest.mark.parametrize(
    ("environment", "own"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, []),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, [0, 1, 2, 3]),
        ({"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_GPUS_PER_TASK": "2"}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "3", "SLURM_STEP_TASKS_PER_NODE": "4"}, [0]),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, [0, 1]),
        ({"SLURM_STEP_TASKS_PER_NODE": "1"}, []),
    ],
)
def test_a_process_takes_the_gpus_that_its_launcher_gives_it(environment, own):
    """One of its node where the tasks see all of them, else all that it sees; CUDA counts these from 0."""
    assert runtime.own_devices(environment) == own


def test_a_batch_script_without_srun_is_one_process():
    """The job has two tasks, but no step of it was started."""
    out, error = start(SLURM_JOB_ID="1", SLURM_NTASKS="2").communicate(timeout=120)
    assert out.split() == ["0", "1"], error


def test_where_jax_knows_no_cluster_one_line_says_what_to_give():
    process = start("--coordinator=auto")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 2
    (line,) = error.splitlines()
    assert line.startswith("error: --coordinator=auto: JAX does not find the other processes")
    assert line.endswith("; give HOST:PORT of process 0, --num_processes and --process_id")


def test_programs_are_kept_only_where_a_folder_can_be(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    assert runtime.user_cache() == tmp_path / "new" / "bert-jax"
    (tmp_path / "new").touch()
    assert runtime.user_cache() is None
