"""The code blocks of the pages, and how Python blocks are run: as a reader would run them."""

import contextlib
import io
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted(CHECKOUT.glob("docs/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str  # "" for none
    text: str


def blocks_of(page: str) -> list[Block]:
    return [Block(*match.groups()) for match in FENCE.finditer(page)]


def run_blocks(page: str, *, compiled_only: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(what a block printed, what the page shows below it) for each Python block, in one namespace.

    Blocks that have one of the texts ``compiled_only`` are compiled and not run.
    """
    names: dict = {}
    pairs = []
    for code, shown in re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.DOTALL):
        program = compile(code, "a block of the page", "exec")
        if any(text in code for text in compiled_only):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(program, names)
        pairs.append((out.getvalue(), shown))
    return pairs
