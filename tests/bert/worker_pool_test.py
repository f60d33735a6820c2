import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from bert import worker_pool
from bert.errors import RunError

_added = 0


def set_up(number):
    global _added
    _added = number


def add(number):
    return number + _added


def die(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_each_process_is_set_up(workers):
    found = worker_pool.ordered_map(add, range(20), workers=workers, setup=set_up, setup_arguments=(100,))
    assert list(found) == [number + 100 for number in range(20)]


def test_only_a_few_tasks_are_under_way():
    """A slow consumer holds back the reading of tasks, so memory does not grow with the corpus."""
    taken = 0

    def tasks():
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = worker_pool.ordered_map(add, tasks(), workers=2, setup=set_up, setup_arguments=(0,))
    for _ in range(10):
        next(results)
    assert taken <= 10 + 6
    results.close()  # type: ignore[attr-defined]


def test_a_killed_process_is_told_in_one_line():
    with pytest.raises(RunError, match=r"2 worker .* set workers to 1"):
        list(worker_pool.ordered_map(die, range(9), workers=2, setup=set_up, setup_arguments=(0,)))


def test_an_error_in_a_task_reaches_the_caller():
    with pytest.raises(TypeError):
        list(worker_pool.ordered_map(add, ["x"], workers=2, setup=set_up, setup_arguments=(0,)))


def wait_long(_):
    print(os.getpid(), flush=True)
    time.sleep(600)


PROGRAM = """
from bert import worker_pool
from {module} import set_up, wait_long
if __name__ == "__main__":
    list(worker_pool.ordered_map(wait_long, range(2), workers=2, setup=set_up, setup_arguments=(0,)))
"""


def test_workers_end_with_the_process_that_started_them(tmp_path):
    """After kill -9 of the first process, no worker stays behind."""
    here = pathlib.Path(__file__)
    (tmp_path / "program.py").write_text(PROGRAM.format(module=here.stem))
    paths = os.pathsep.join([str(here.parent), str(here.parents[2])])
    environment = {**os.environ, "PYTHONPATH": paths}
    program = [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as started:
        workers = [int(started.stdout.readline()) for _ in range(2)]
        started.kill()
        deadline = time.monotonic() + 60
        while any(is_running(worker) for worker in workers):
            assert time.monotonic() < deadline, "a worker is still there"
            time.sleep(0.05)


def is_running(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
