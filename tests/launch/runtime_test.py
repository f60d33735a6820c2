"""How processes find each other; training with several of them is in pretrain_test.py and finetune_tokens_test.py."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# A command that only sets itself up, and says its number and how many there are.
STARTS = """
import pathlib, sys, jax
from launch import flags, runtime

def run(argv):
    config, options = flags.parse(argv, doc="", config_file=None, options=runtime.PROCESS_OPTIONS, required=())
    runtime.start(allocator="system", cache=pathlib.Path("unused"), options=options)
    print(jax.process_index(), jax.process_count())

flags.main(run)
"""


def start(*words: str, **environment: str) -> subprocess.Popen:
    """``STARTS`` without what this machine's own cluster says."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "KUBERNETES"))}
    return subprocess.Popen(
        [sys.executable, "-c", STARTS, "--config=configs/quickstart.py", *words],
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
    """Two processes that are told what Slurm tells them; elsewhere than under srun only where auto asks for it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    both = [start(*words, JAX_COORDINATOR_PORT=port, SLURM_PROCID=str(i), **job, **more) for i in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert [out.split() for out, _ in said] == [["0", "2"], ["1", "2"]], said


def test_a_batch_script_without_srun_is_one_process():
    """The job has two tasks, but no step of it was started."""
    out, error = start(SLURM_JOB_ID="1", SLURM_NTASKS="2").communicate(timeout=120)
    assert out.split() == ["0", "1"], error


def test_where_jax_knows_no_cluster_one_line_says_what_to_give():
    process = start("--coordinator=auto")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 2
    (line,) = error.splitlines()
    assert line.startswith("error: --coordinator=auto: JAX finds none of the clusters that it knows")
    assert line.endswith("give HOST:PORT of process 0, --num_processes and --process_id")
