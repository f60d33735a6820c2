"""What reaches the terminal: texts of others never steer it, and a name never makes a line of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]

COMMAND = r"""
import pathlib, sys, warnings
from absl import logging
from launch import flags

def run(argv):
    print("\x1b[2Jred\x9b31m\u202e\r \udcff", "two\nlines\tü\u200d大\u3000")
    sys.stdout.writelines(["\x1b[0m", "\n"])
    logging.info("%s, %s: %s", pathlib.Path("a\nb\x1b"), "c\nd", ValueError("e\nf"))
    logging.warning("\x1b[2J")
    warnings.warn("\x1b[2J")
    raise RuntimeError("\x1b[2J")

flags.main(run)
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_print_log_warning_or_traceback_steers_the_terminal(encoding):
    """Escapes are visible; line ends and tabs that we print stay; an encoding without a character stops nothing."""
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], cwd=CHECKOUT, env=environment, capture_output=True, check=False
    )
    out, error = done.stdout.decode(encoding), done.stderr.decode(encoding)
    umlaut, character = ("ü", "\u200d大\u3000") if encoding == "utf-8" else (r"\xfc", r"\u200d\u5927\u3000")
    assert out.splitlines() == [
        r"\x1b[2Jred\x9b31m\u202e\r \udcff two",
        f"lines\t{umlaut}{character}",
        r"\x1b[0m",
    ]
    lines = error.splitlines()
    assert lines[:2] == [r"a\nb\x1b, c\nd: e\nf", r"warning: \x1b[2J"]
    assert r"UserWarning: \x1b[2J" in error
    assert lines[-1] == r"RuntimeError: \x1b[2J"
    assert all(character.isprintable() for character in "".join(lines))
