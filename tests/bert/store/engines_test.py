"""Clusters of this machine: the folder is that of one process, and a killed worker or bad text costs nothing else.

Each engine starts a cluster, which takes many seconds.
"""

import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

from bench import environments
from bert.errors import InputError, RunError
from bert.store import engines
from bert.store.engines import ENGINES, prepare_on
from bert.store.prepare import prepare
from bert.store.prepare_settings import PrepareSettings
from bert.store.shards import JobShard, make_shard, shards_folder
from tests.bert.builders import bytes_of, stories

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]


def test_an_engine_that_is_not_installed_is_told_with_its_package(write, vocab, tmp_path, monkeypatch):
    """Before a vocabulary is learnt."""
    corpus = str(write("text/a.txt", stories(9)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ENGINES:
        with pytest.raises(InputError, match=rf"pip install.*extra '{name}'"):
            prepare_on(name, tmp_path / "out", PrepareSettings(corpus), workers=2)
    assert not (tmp_path / "out.shards").exists()
    with pytest.raises(InputError, match=r"engine.*'rai'.*did you mean 'ray'"):
        prepare_on("rai", tmp_path / "out", PrepareSettings(corpus, vocab))


@contextlib.contextmanager
def in_turn(workers, address):
    """An engine without a cluster, in an order of its own."""
    yield lambda function, tasks: map(function, reversed(tasks))


def test_what_an_engine_made_is_joined_and_cleared_away(write, vocab, tmp_path, monkeypatch):
    """Bad text is told as by one process, in the words of the shard that met it; the next run goes on."""
    monkeypatch.setitem(ENGINES, "in_turn", in_turn)
    write("text/a.txt", stories(30))
    bad = write("text/b.txt", b"caf\xe9.\n")
    settings = PrepareSettings(str(tmp_path / "text"), vocab)
    with pytest.raises(InputError, match=r"b.txt, byte 3 .*0xE9"):
        prepare_on("in_turn", tmp_path / "out", settings, workers=3)
    bad.write_text("Mended.\n")
    prepared = prepare_on("in_turn", tmp_path / "out", settings, workers=3, overwrite=True)
    prepare(tmp_path / "one", settings)
    assert bytes_of(prepared.directory) == bytes_of(tmp_path / "one")
    assert not (tmp_path / "out.shards").exists()
    assert prepare_on("in_turn", tmp_path / "out", settings).was_finished


def test_the_shards_that_are_finished_tell_how_many_there_are(write, vocab, tmp_path, monkeypatch):
    """Whatever the cores of the machine that goes on; those of other settings tell nothing. At an address, the cores of
    this machine tell nothing either."""
    made = []

    def run(function, tasks):
        made.append([task[3] for task in tasks])
        return map(function, tasks)

    monkeypatch.setitem(ENGINES, "noted", lambda workers, address: contextlib.nullcontext(run))
    monkeypatch.setattr("bert.worker_pool.usable_cores", lambda: 2)
    settings = PrepareSettings(str(write("text/a.txt", stories(20))), vocab)
    make_shard(tmp_path / "out", settings, JobShard(2, 3))
    make_shard(tmp_path / "out", dataclasses.replace(settings, seed=5), JobShard(1, 4))
    prepare_on("noted", tmp_path / "out", settings)
    assert [path.name for path in shards_folder(tmp_path / "out").iterdir()] == ["1-of-4"]
    prepare_on("noted", tmp_path / "second", settings)
    prepare_on("noted", tmp_path / "third", settings, address="tcp://10.0.0.1:8786")
    assert [len(shards) for shards in made] == [3, 2, 1]


def test_an_error_of_a_machine_is_told_with_its_shard(write, vocab, tmp_path, monkeypatch):
    """Such as a package that is missing there: no exception that the first machine may not know travels to it."""
    monkeypatch.setitem(ENGINES, "in_turn", in_turn)
    settings = PrepareSettings(str(write("text/a.txt", stories(9))), vocab)

    def broken(*arguments, **how):
        raise ModuleNotFoundError("No module named 'zstandard'")

    monkeypatch.setattr(engines, "make_shard", broken)
    with pytest.raises(RunError, match=r"shard 2/2 .*: .*zstandard"):
        prepare_on("in_turn", tmp_path / "out", settings, workers=2)


READY = environments.FOLDER / "clusters" / "ready"
PACKAGES = {"ray": "ray", "dask": "distributed"}
# A task kills its process the first time, and the address is of no cluster.
KILLED = """
import os, pathlib, signal, sys
from bert.errors import InputError, RunError
from bert.store.engines import ENGINES

def dies_once(task):
    mark = pathlib.Path(task[1], task[0])
    if task[0] == "2" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task[0]

if __name__ == "__main__":
    engine, place = sys.argv[1:]
    with ENGINES[engine](2, "") as run:
        print(sorted(run(dies_once, [(str(number), place) for number in range(4)])))
    try:
        with ENGINES[engine](2, "127.0.0.1:1"):
            pass
    except InputError as error:
        print(error)
"""


@pytest.fixture
def environment(name):
    """Variables of a process that finds the packages of an engine."""
    paths = [str(CHECKOUT)]
    if READY.exists():
        paths += map(str, READY.absolute().parent.glob("lib/python*/site-packages"))
    elif importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"the packages of {name} are not installed; run python -m bench.environments")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_the_folder_of_a_cluster_is_that_of_one_process(write, tmp_path, environment, name):
    """With a learnt vocabulary, shard by shard; a worker that is killed has its task repeated; no cluster is told."""
    write("text/a.txt", stories(60))
    corpus = str(write("text/b.txt", stories(40, 9)).parent)
    prepare(tmp_path / "one", PrepareSettings(corpus, vocab_size=90))
    words = [f"--config.corpus={corpus}", "--config.vocab_size=90", "--config.workers=2", f"--out={tmp_path}/out"]
    command = [sys.executable, "-m", "launch.prepare", *words, f"--config.engine={name}"]
    how = {"env": environment, "capture_output": True, "text": True, "check": False, "timeout": 300}
    done = subprocess.run(command, cwd=CHECKOUT, **how)
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "one")
    program = write("killed.py", KILLED)
    command = [sys.executable, str(program), name, str(tmp_path)]
    done = subprocess.run(command, **how)
    results, error = done.stdout.splitlines()[-2:]
    assert results == "['0', '1', '2', '3']", done.stderr
    assert re.search(f"engine_address '127.0.0.1:1'.*{name}", error)
