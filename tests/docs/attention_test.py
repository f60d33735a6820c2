"""docs/attention.md: the code runs and prints what the page shows, and the text uses the same numbers."""

import json
import pathlib
import re

import pytest

from tests.docs.blocks import run_blocks

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")


@pytest.fixture(scope="module")
def page() -> str:
    return (CHECKOUT / "docs" / "attention.md").read_text()


@pytest.fixture(scope="module")
def printed(page) -> list[tuple[str, str]]:
    """(what a code block printed, what the page shows below it), for the blocks that print."""
    return run_blocks(page)


def test_code_prints_what_the_page_shows(printed):
    """Block after block, to the last digit."""
    assert sum(bool(shown) for _, shown in printed) == 8
    for got, shown in printed:
        assert got == shown


def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((.*?)\)", page)
    assert targets
    for target in targets:
        assert (CHECKOUT / "docs" / target).exists(), target


def test_prose_uses_the_numbers_of_the_code(page, printed):
    """Every decimal number in the text is an input, a printed number, or a product of section 1."""
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    known = set(NUMBER.findall(code)) | set(NUMBER.findall("".join(got for got, _ in printed)))
    known |= {f"{100 * float(number):.2f}" for number in known}  # the same as a percentage
    products = {f"{a * b:.2f}" for a, b in zip((0.7, 0.2, 0.5), (0.2, 0.5, 0.7), strict=True)}
    assert set(NUMBER.findall(prose)) <= known | products


def test_page_agrees_with_the_hand_computed_example(printed):
    """Weights, outputs and loss are those of exact decimal arithmetic."""
    expected = json.loads((CHECKOUT / "tests" / "golden" / "hand_examples.json").read_text())
    text = "".join(got for got, _ in printed)
    for case in ("all_four_keys", "without_the_MASK_key"):
        for name in ("weights", "output"):
            assert " ".join(f"{number:.4f}" for number in expected["attention_example"][case][name]) in text
    for score in expected["attention_example"]["all_four_keys"]["scaled_scores_div_sqrt3"]:
        assert f"{score:.4f}" in text
    assert f"{expected['masked_word_example']['cross_entropy_nats']:.4f} nats" in text
