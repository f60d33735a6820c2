"""Clusters of this machine: the folder is that of one process, and a killed worker or bad text costs nothing else.

Each engine starts a cluster, which takes many seconds.
"""

import os
import pathlib
import signal

import pytest

from bert.errors import InputError
from bert.store import engines
from bert.store.engines import ENGINES, prepare_on
from bert.store.prepare import prepare
from bert.store.prepare_settings import PrepareSettings
from tests.bert.builders import bytes_of, stories


def test_an_engine_that_is_not_installed_is_told_with_its_package(write, vocab, tmp_path, monkeypatch):
    corpus = str(write("text/a.txt", stories(9)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ENGINES:
        with pytest.raises(InputError, match=rf"{name}.*pip install.*extra '{name}'"):
            prepare_on(name, tmp_path / "out", PrepareSettings(corpus, vocab), workers=2)
    with pytest.raises(InputError, match=r"engine.*'rai'.*did you mean 'ray'"):
        prepare_on("rai", tmp_path / "out", PrepareSettings(corpus, vocab))


def in_turn(function, tasks, workers, address):
    """An engine without a cluster, in an order of its own."""
    yield from map(function, reversed(tasks))


def test_what_an_engine_made_is_joined_and_cleared_away(write, vocab, tmp_path, monkeypatch):
    """Bad text is told as by one process, in the words of the shard that met it; the next run goes on."""
    monkeypatch.setitem(ENGINES, "in_turn", in_turn)
    write("text/a.txt", stories(30))
    bad = write("text/b.txt", b"caf\xe9.\n")
    settings = PrepareSettings(str(tmp_path / "text"), vocab)
    with pytest.raises(InputError, match=r"b.txt, byte 3 \(line 1\): 0xE9 is not UTF-8"):
        prepare_on("in_turn", tmp_path / "out", settings, workers=3)
    bad.write_text("Mended.\n")
    prepared = prepare_on("in_turn", tmp_path / "out", settings, workers=3, overwrite=True)
    prepare(tmp_path / "one", settings)
    assert bytes_of(prepared.directory) == bytes_of(tmp_path / "one")
    assert not (tmp_path / "out.shards").exists()
    assert prepare_on("in_turn", tmp_path / "out", settings).was_finished


def dies_once(task):
    """Kills its process the first time that it runs."""
    number, place = task
    mark = pathlib.Path(place, str(number))
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ["ray", "dask"])
def test_the_folder_of_a_cluster_is_that_of_one_process(write, tmp_path, name):
    """With a learnt vocabulary; a worker that is killed has its task repeated."""
    pytest.importorskip({"dask": "distributed"}.get(name, name))
    write("text/a.txt", stories(60))
    settings = PrepareSettings(str(write("text/b.txt", stories(40, 9)).parent), vocab_size=90)
    prepare(tmp_path / "one", settings)
    prepare_on(name, tmp_path / "out", settings, workers=2)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "one")
    tasks = [(number, str(tmp_path)) for number in range(4)]
    assert sorted(engines.ENGINES[name](dies_once, tasks, 2, "")) == [0, 1, 2, 3]
    with pytest.raises(InputError, match=f"127.0.0.1:1'.*{name}"):
        list(engines.ENGINES[name](dies_once, tasks, 2, "127.0.0.1:1"))
