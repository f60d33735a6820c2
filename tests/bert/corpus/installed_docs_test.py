import gc
import multiprocessing
import sys

import pytest

from bert.corpus import installed_docs
from bert.errors import RunError

DOC = '''
"""Module text about the lighthouse. It has two sentences in it."""

def keeper(lamp):
    """Lights the ``lamp`` with :func:`~house.match` and returns *nothing* at all.

    Parameters
    ----------
    lamp : array_like, optional
        The lamp that burns when the night has come.

    .. versionadded:: 1.2
       Hidden words of a directive, not prose.

    Examples
    --------
    >>> keeper(3)
    hidden output of it

    Use it like this::

        hidden code that nobody reads as prose

    - the first point of a list of points
    - the second point, see `the page <http://x.y>`_ [1]_

    =====  =====
    a      b
    =====  =====
    """
    def inner():
        """short"""

class Tower:
    if True:
        async def stairs(self):
            """Module text about the lighthouse. It has two sentences in it."""

numpy.add_newdoc("module", "name", """A function of compiled code whose text stands in a call of its own.""")
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """One source file, and that file alone, is all that is installed."""
    path = tmp_path / "house.py"
    path.write_text(DOC)
    found = [("house.py", path), ("missing.py", tmp_path / "missing.py")]
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    monkeypatch.setattr(installed_docs, "source_files", lambda: [*found, ("zz/__init__.py", broken)])
    return path


def test_docstrings_become_prose_and_nothing_else(package):
    """Examples, directives, headings, tables and marks go; words in marks stay; short or equal texts drop."""
    assert list(installed_docs.documents()) == [
        ("house:1", "Module text about the lighthouse. It has two sentences in it."),
        (
            "house:4",
            "Lights the lamp with house.match and returns nothing at all.\n\n"
            "The lamp that burns when the night has come.\n\n"
            "Use it like this:\n\n"
            "the first point of a list of points\n\n"
            "the second point, see the page",
        ),
        ("house:39", "A function of compiled code whose text stands in a call of its own."),
    ]


def test_no_package_is_imported(tmp_path, monkeypatch):
    """Source files are parsed, never run."""
    path = tmp_path / "bomb.py"
    path.write_text('"""A module with a docstring that is long enough to be kept here."""\nraise SystemExit(1)\n')
    monkeypatch.setattr(installed_docs, "source_files", lambda: [("bomb.py", path)])
    assert len(list(installed_docs.documents())) == 1
    assert "bomb" not in sys.modules


def test_sources_are_sorted_and_without_tests_or_vendored_copies():
    """The order does not follow the file system, so two machines with the same packages read the same text."""
    names = [name for name, _ in installed_docs.source_files()]
    assert names == sorted(names)
    assert len(names) == len(set(names))
    assert "json/decoder.py" in names
    assert any(name.startswith("numpy/") for name in names)
    assert not [name for name in names if "/tests/" in name or "/_vendor/" in name or "site-packages" in name]
    assert installed_docs.installed()[0].startswith("python 3.")


def test_a_killed_worker_ends_the_reading(monkeypatch):
    """For want of memory, say: an error, where a pool that starts another worker would wait for ever."""
    many = installed_docs.source_files()[:400]
    monkeypatch.setattr(installed_docs, "source_files", lambda: many)
    found = installed_docs.documents(2)
    next(found)
    for worker in multiprocessing.active_children():
        worker.kill()
    with pytest.raises(RunError, match=r"2 worker .*killed"):
        list(found)


def test_the_process_itself_goes_on_collecting_garbage(package):
    """Only workers, which end with the reading, do without."""
    list(installed_docs.documents(1))
    assert gc.isenabled()


def test_workers_do_not_change_the_text(monkeypatch):
    """Two processes give what one gives, in the same order."""
    few = installed_docs.source_files()[:40]
    monkeypatch.setattr(installed_docs, "source_files", lambda: few)
    alone = list(installed_docs.documents(1))
    assert len(alone) >= 40
    assert list(installed_docs.documents(2)) == alone
