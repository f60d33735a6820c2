"""Output of commands: plain lines, with control characters escaped."""

import logging
import os
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from absl import logging as absl_logging

from bert import files
from bert.errors import printable


class _Escaping:
    """A stream that escapes control characters and passes everything else on; ``prefix`` begins each line."""

    def __init__(self, stream: TextIO):
        self._stream, self.prefix, self._at_start = stream, "", True

    def write(self, text: str) -> int:
        text = printable(text, lines=True)
        if self.prefix and text:
            lines = re.sub(r"\n(?=.)", f"\n{self.prefix}", text, flags=re.DOTALL)
            text, self._at_start = self.prefix * self._at_start + lines, text.endswith("\n")
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def plain_output() -> None:
    """Makes standard output and error escape control characters, and characters that their encoding lacks.

    Progress bars, which need control characters, write to ``sys.__stderr__``.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        if stream is not None and not isinstance(stream, _Escaping):  # None: closed
            setattr(sys, name, _Escaping(stream))


def without_native_output() -> None:
    """Drops what C++ code prints to standard output, such as Gloo's lines on connections; Python's goes there still."""
    if sys.stdout is None:  # closed
        return
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "w", buffering=1, encoding=sys.stdout.encoding, errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = output
    plain_output()


def of_process(number: int) -> None:
    """Shows of a process of several what one should see: of all but number 0 only warnings and errors, each line with
    the number of the process."""
    if number == 0:
        return
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    plain_output()
    absl_logging.set_verbosity(absl_logging.WARNING)
    errors: Any = sys.stderr
    errors.prefix = f"process {number}: "


def beside(*outputs: str | None) -> TextIO:
    """The stream for a command's messages: standard error if one of its output files is standard output."""
    taken = any(output and files.standard_stream(pathlib.Path(output)) == 1 for output in outputs)
    return sys.stderr if taken else sys.stdout


def plain_logging() -> None:
    """Logs plain lines to standard error, without those of Orbax and asyncio, whose errors are reported here."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    handler.addFilter(lambda record: "orbax" not in record.pathname and record.name != "asyncio")
    logging.getLogger().handlers[:] = [handler]
    absl_logging.set_verbosity(absl_logging.INFO)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):  # a name or an error with a line end in it makes no further line
            in_one_line = (str, os.PathLike, BaseException)  # others, such as reports, may have several
            record.args = tuple(printable(str(arg)) if isinstance(arg, in_one_line) else arg for arg in record.args)
        text = record.getMessage()
        return text if record.levelno <= logging.INFO else f"{record.levelname.lower()}: {text}"
