"""What strikes C code ends with a line of ours."""

import pathlib
import subprocess
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# Reads a mapped file that was cut meanwhile.
READS = """
import os, sys
import numpy as np
from launch import native_signals
native_signals.on("SIGBUS", lambda: (print("tokens: cut", flush=True), os._exit(2)))
open(sys.argv[1], "wb").write(bytes(1 << 16))
mapped = np.memmap(sys.argv[1], np.uint8, "r")
os.truncate(sys.argv[1], 10)
mapped[np.arange(1 << 16)]
"""


def test_a_mapped_file_that_is_cut_is_a_line(tmp_path):
    command = [sys.executable, "-c", READS, str(tmp_path / "tokens")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "tokens: cut\n"), done.stderr
