"""The files for clusters: Slurm's under a real slurmctld, where one is installed; the others as they are written."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import yaml

from launch import flags, pretrain
from tests.launch.short_run import command

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
STEPS = 120
# One node of two cores; the ports, names and folders are filled in. Without cgroups, and without the two minutes that
# Slurm lets pass before it starts a job again.
SLURM_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobRequeue=1
KillWait=60
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def until(check: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} seconds"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Callable[..., str]]:
    """Runs a command of Slurm on a cluster of this machine alone; what it prints."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs {', '.join(missing)} (Debian: slurm-wlm and munge)" if missing else "needs root for slurmd")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores, for two tasks")
    folder, host, ports = tmp_path_factory.mktemp("slurm"), socket.gethostname(), []
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir()
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    settings = {"control": ports[0], "node": ports[1], "host": host, "folder": folder, "cores": os.cpu_count()}
    (folder / "slurm.conf").write_text(SLURM_CONF.format(**settings))
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    of_munge = [f"--{name}={folder}/munge/{name}" for name in ("socket", "pid-file", "log-file", "seed-file")]
    daemons = [
        ["munged", "--foreground", "--force", f"--key-file={key}", *of_munge],
        ["slurmctld", "-D"],
        ["slurmd", "-D"],
    ]

    def run(*words: object, **more: str) -> str:
        done = subprocess.run(
            [*map(str, words)], env=environment | more, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout

    processes = []
    try:
        for words in daemons:
            with (folder / f"{words[0]}.out").open("wb") as out:
                processes.append(subprocess.Popen(words, env=environment, stdout=out, stderr=out))
            until((folder / "munge" / "socket").exists, 30, "munged")
        until(lambda: "idle" in run("sinfo", "--noheader", "--format=%T"), 120, "the cluster")
        yield run
    finally:
        run("scancel", "--state=RUNNING")
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


@pytest.fixture
def submit(slurm, tmp_path) -> Callable[..., str]:
    """Submits launch/slurm.sh with two tasks on this machine's CPU; the number of the job."""
    program = tmp_path / "bin" / "bert"
    program.parent.mkdir()
    # What the tests set for themselves would reach the job.
    environment = f"PYTHONPATH={shlex.quote(str(CHECKOUT))} JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=1"
    start = f'{environment} exec {shlex.quote(sys.executable)} -m bert "$@"'
    program.write_text(f"#!/bin/sh\nunset TF_CPP_MIN_LOG_LEVEL\n{start}\n")
    program.chmod(0o755)

    def run(words, log, **more):
        here = ("--nodes=1", "--ntasks-per-node=2", "--gpus-per-node=0", "--cpus-per-task=1", f"--output={log}")
        path = f"{program.parent}:{os.environ['PATH']}"
        job = slurm("sbatch", "--parsable", *here, CHECKOUT / "launch" / "slurm.sh", *words, PATH=path, **more).strip()
        assert job.isdecimal()
        return job

    return run


def words_of(prepared, workdir) -> list[str]:
    changed = (f"--config.total_steps={STEPS}", f"--config.evaluate_every={STEPS}", f"--config.save_every={STEPS // 4}")
    return [*command(prepared, workdir), *changed]


@pytest.mark.slow
def test_a_job_that_slurm_queues_again_ends_as_one_that_nothing_disturbs(slurm, submit, prepared, tmp_path):
    """Two tasks, stopped as before the time limit and by `scontrol requeue`; the weights are equal bit by bit.

    The log has the lines of one process. One job copies its data to the disk of the node, and deletes the copy there.
    """

    def state(job):
        return re.search(r"JobState=(\w+)", slurm("scontrol", "show", "job", job))[1]

    def trained(name, *stops, **more) -> str:
        log = tmp_path / f"{name}.log"
        job = submit(words_of(prepared, tmp_path / name), log, **more)

        def wait_for(pattern):
            ended = ("COMPLETED", "FAILED", "CANCELLED")
            found = lambda: log.exists() and re.search(pattern, log.read_text(), re.DOTALL)  # noqa: E731
            until(lambda: found() or state(job) in ended, 600, pattern)

        for starts, stop in enumerate(stops):
            wait_for(f"(  restored.*){{{starts}}}\nstep [0-9]*0/{STEPS}  train")  # of this start
            slurm(*stop, job)
            wait_for(f"(stopped at step .*){{{starts + 1}}}")
        wait_for("no such line")
        assert state(job) == "COMPLETED", log.read_text()
        return log.read_text()

    said = trained("disturbed", ("scancel", "--signal=TERM"), ("scontrol", "requeue"))
    assert len((tmp_path / "disturbed" / "starts.jsonl").read_text().splitlines()) == 3
    assert said.count(f"step {STEPS}/{STEPS}  train") == 1
    assert "[Gloo]" not in said
    assert "preemption_notifier" not in said  # a line of JAX's C++ on SIGTERM
    trained("whole", LOCAL_DISK=str(tmp_path / "local"))
    assert f"/{prepared.name}" in (tmp_path / "whole" / "config.json").read_text().partition(str(tmp_path / "local"))[2]
    assert not list((tmp_path / "local").iterdir())
    one, two = ((tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("disturbed", "whole"))
    assert one == two


@pytest.mark.slow
def test_a_job_with_bad_input_is_not_queued_again(slurm, submit, tmp_path):
    """Both tasks print their line, the second one with its number where it knows it; exit code 2 is that of the job."""
    job = submit(["pretrain", "--config=nowhere", f"--workdir={tmp_path / 'run'}"], tmp_path / "log")
    show = lambda: slurm("scontrol", "show", "job", job)  # noqa: E731
    until(lambda: "JobState=FAILED" in show(), 120, "the job")
    assert "ExitCode=2:0" in show()
    assert "Restarts=0" in show()
    assert "error: --config=nowhere: no such file" in (tmp_path / "log").read_text()


@pytest.fixture
def nodes(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs launch/slurm.sh where `srun` runs its command once; `bert` shows its words, cores and data, and ends so."""
    programs = {
        "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
        "scontrol": 'echo "scontrol $*"; ls local',
        "bert": 'printf "%s\\n" "$@" "cores $SRUN_CPUS_PER_TASK"; cat local/*/*/*; exit "$CODE"',
        "cp": '[[ $2 != *full* ]] && exec /bin/cp "$@"; touch "$3"; echo "no space" >&2; exit 1',
    }
    (tmp_path / "bin").mkdir()
    (tmp_path / "local").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def run(*words, code=0):
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        job = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "1", "SLURM_CPUS_PER_TASK": "6", "LOCAL_DISK": "local"}
        script = CHECKOUT / "launch" / "slurm.sh"
        return subprocess.run(
            ["bash", script, *words], cwd=tmp_path, env={"PATH": path, "CODE": str(code)} | job,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_what_a_job_copies_to_the_disk_of_its_nodes(nodes, tmp_path):
    """Both settings in both forms, several files, two of one name; what is no path is read as it was given."""
    for path in ("a/x.en", "b/x.de", "new/x.en", "one,two"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f"{path}\n")
    done = nodes("finetune", "--config.data=a/x.en,b/x.de", "--config.validation", "new/x.en", "--workdir=a b")
    local = "local/bert-7"
    assert done.stdout.splitlines() == [
        *("finetune", f"--config.data={local}/1/x.en,{local}/2/x.de", "--config.validation", f"{local}/3/x.en"),
        *("--workdir=a b", "cores 6", "a/x.en", "b/x.de", "new/x.en"),
    ]
    assert (done.returncode, list((tmp_path / "local").iterdir())) == (0, [])
    done = nodes(
        "finetune", "--config.data=scenes:train:9", "--config.validation=a/x.en,gone", "--config.data", "one,two"
    )
    assert done.stdout.splitlines() == [
        *("finetune", "--config.data=scenes:train:9", "--config.validation=a/x.en,gone", "--config.data"),
        *(f"{local}/1/one,two", "cores 6", "one,two"),
    ]


@pytest.mark.parametrize("code", [0, 1, 2, 143])
def test_a_job_ends_as_its_tasks_do_and_leaves_no_copy(nodes, tmp_path, code):
    """It is queued again where they were stopped, and only then; the copies are deleted before that."""
    (tmp_path / "text").write_text("text\n")
    done = nodes("pretrain", "--config.data=text", code=code)
    assert (done.returncode, "text" in done.stdout.splitlines()) == (code, True)
    assert done.stdout.splitlines()[3:] == ["text"] + ["scontrol requeue 7"] * (code == 143)
    assert not list((tmp_path / "local").iterdir())


def test_a_job_whose_data_cannot_be_copied_leaves_nothing(nodes, tmp_path):
    (tmp_path / "full").write_text("text\n")
    done = nodes("pretrain", "--config.data=full")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no space\n")
    assert not list((tmp_path / "local").iterdir())


def test_the_words_for_a_tpu_slice_reach_every_host_as_typed(tmp_path):
    """gcloud is replaced by a program that shows what it would run there, which is then run."""
    checkout = tmp_path / "my check out"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    for path, text in ((tmp_path / "gcloud", '"$@"'), (checkout / ".venv" / "bin" / "bert", '"$@"')):
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' {text}\n")
        path.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TPU": "slice",
        "ZONE": "zone",
        "CHECKOUT": str(checkout),
    }
    script, words = (
        CHECKOUT / "launch" / "tpu_pod.sh",
        ["pretrain", "--config.probes=('it\\'s $HOME',)", "--workdir=a b"],
    )
    shown = subprocess.run([script, *words], env=environment, capture_output=True, text=True, check=True).stdout
    *_, where, zone, workers, there = shown.splitlines()
    assert (where, zone, workers) == ("slice", "--zone=zone", "--worker=all")
    typed = subprocess.run(
        ["bash", "-c", there.removeprefix("--command=")], capture_output=True, text=True, check=True
    ).stdout
    assert typed.splitlines() == [*words, "--coordinator=auto"]
    lacking = subprocess.run([script], env={"PATH": environment["PATH"]}, capture_output=True, text=True, check=False)
    assert "TPU is not set" in lacking.stderr


# The fields of a JobSet that the file uses: of v1alpha2 of JobSet's API, and of batch/v1 and core/v1 of Kubernetes.
POD = {
    "restartPolicy": str, "terminationGracePeriodSeconds": int,
    "containers": [{"name": str, "image": str, "command": [str], "args": [str], "ports": [{"containerPort": int}],
                    "resources": {"limits": {"nvidia.com/gpu": int}},
                    "volumeMounts": [{"name": str, "mountPath": str}]}],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}, "emptyDir": {"medium": str}}],
}  # fmt: skip
JOB = {
    "parallelism": int, "completions": int, "completionMode": str, "backoffLimit": int,
    "podFailurePolicy": {"rules": [{"action": str, "onPodConditions": [{"type": str, "status": str}],
                                    "onExitCodes": {"containerName": str, "operator": str, "values": [int]}}]},
    "template": {"spec": POD},
}  # fmt: skip
JOB_SET = {
    "apiVersion": str, "kind": str, "metadata": {"name": str},
    "spec": {
        "failurePolicy": {"maxRestarts": int, "rules": [{"name": str, "action": str, "onJobFailureReasons": [str],
                                                         "onJobFailureMessagePatterns": [str]}]},
        "replicatedJobs": [{"name": str, "replicas": int, "template": {"spec": JOB}}],
    },
}  # fmt: skip


def fits(value, schema, place: str = "") -> None:
    if isinstance(schema, dict):
        assert isinstance(value, dict), place
        assert set(value) <= set(schema), place
        for name, part in value.items():
            fits(part, schema[name], f"{place}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list), place
        for part in value:
            fits(part, schema[0], f"{place}[]")
    else:
        assert type(value) is schema, place


def test_the_job_set_has_the_fields_of_its_schema_and_a_command_that_is_accepted():
    """As many processes as pods, which find process 0 by the name that JobSet gives the first pod."""
    job_set = yaml.safe_load((CHECKOUT / "launch" / "kubernetes.yaml").read_text())
    fits(job_set, JOB_SET)
    (replicated,) = job_set["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    words = [word.replace("$(JOB_COMPLETION_INDEX)", "1") for word in container["args"]]
    _, options = flags.parse(words[:1] + words, "", pretrain.OPTIONS, ("workdir",), config_file=None)
    assert container["command"] == ["bert", "pretrain"]
    assert int(options.num_processes) == job["parallelism"] == job["completions"]
    first = f"{job_set['metadata']['name']}-{replicated['name']}-0-0.{job_set['metadata']['name']}"
    assert options.coordinator == f"{first}:{container['ports'][0]['containerPort']}"
