"""Log messages of a command: plain lines for people, warnings marked as such."""

import logging
import sys

from absl import logging as absl_logging


def plain_logging() -> None:
    """Our log messages as plain lines on standard error; of Orbax and asyncio nothing, for we tell what matters."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    handler.addFilter(lambda record: "orbax" not in record.pathname and record.name != "asyncio")
    logging.getLogger().handlers[:] = [handler]
    absl_logging.set_verbosity(absl_logging.INFO)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        return text if record.levelno <= logging.INFO else f"{record.levelname.lower()}: {text}"
