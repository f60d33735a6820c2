"""docs/attention.md: the code runs and prints what the page shows, and the text uses the same numbers."""

import json
import pathlib
import re

import numpy as np
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
    assert sum(bool(shown) for _, shown in printed) == 10
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


def test_page_agrees_with_the_class_sheet(printed):
    """Weights, outputs and loss are those of exact decimal arithmetic."""
    sheet = json.loads((CHECKOUT / "tests" / "golden" / "activity_sheet.json").read_text())
    steps, text = sheet["queries_steps"]["MASK"], "".join(got for got, _ in printed)
    others = np.array(steps["weights"][:3]) / (1 - steps["weights"][3])  # without the last key
    for numbers in (steps["weights"], steps["output"], others, others @ sheet["values"][:3]):
        assert " ".join(f"{number:.4f}" for number in numbers) in text
    for score in steps["scaled"]:
        assert f"{score:.4f}" in text
    assert f"{sheet['loss']['fun']['loss_nats']:.4f} nats" in text
    for word, probability in zip(sheet["vocabulary"], sheet["probabilities"], strict=True):
        assert re.search(rf"^{word} .* {probability:.4f}$", text, re.MULTILINE)
