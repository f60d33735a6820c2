"""The Python blocks of a page, run as a reader would run them."""

import contextlib
import io
import re


def run_blocks(page: str) -> list[tuple[str, str]]:
    """(what a block printed, what the page shows below it) for each block, in one namespace."""
    names: dict = {}
    pairs = []
    for code, shown in re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        pairs.append((out.getvalue(), shown))
    return pairs
