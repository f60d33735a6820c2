"""docs/token_tasks.md: the worked example prints what the page shows, and its numbers follow from the formula."""

import pathlib
import re

import numpy as np
import pytest

from tests.docs.blocks import run_blocks

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "token_tasks.md").read_text()


@pytest.fixture(scope="module")
def printed(page) -> list[tuple[str, str]]:
    return run_blocks(page[: page.index("**Annotators.**")])


def test_code_prints_what_the_page_shows(printed):
    assert len(printed) == 3
    for got, shown in printed:
        assert got == shown != ""


def test_the_numbers_follow_from_the_formula(page, printed):
    """L = -sum t log p in NumPy, from targets written out by hand."""
    target = np.array([[2, 0, 1], [1, 2, 0], [0, 1, 2], [0, 0, 3]]) / 3
    logits = np.array(eval(re.search(r"logits = np\.array\((.*)\)", page)[1]))
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    nats = -(target * log_p).sum(1)
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", printed[1][0])]
    assert numbers == pytest.approx([*nats, nats.sum(), nats.mean()], abs=6e-5)
    majority = -log_p[range(4), [0, 1, 2, 2]]
    assert float(printed[2][0]) == pytest.approx(majority.mean(), abs=6e-5)
