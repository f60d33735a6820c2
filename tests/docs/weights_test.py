"""docs/weights.md: what it says of files and outputs is what happens (its StableHLO lines: stablehlo_test.py)."""

import pathlib
import re

import numpy as np
import onnxruntime  # noqa: F401  (the page's lines import it: where it is missing, this says so)
import pytest

import bert
from bert.interop.report import Report
from bert.model import forward

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"


@pytest.fixture(scope="module")
def page() -> str:
    return (CHECKOUT / "docs" / "weights.md").read_text()


def test_the_lines_for_onnx_run(page, tmp_path, monkeypatch):
    """On a model exported as the page says, with two rows of different length: the library's outputs."""
    model = bert.load(TINY)
    bert.save(model, tmp_path / "out", format="onnx")
    monkeypatch.chdir(tmp_path)
    token_ids = np.array([[2, 40, 41, 3], [2, 50, 3, 0]])
    mask, type_ids = (token_ids != 0).astype(np.int64), np.zeros_like(token_ids)
    names = {"token_ids": token_ids, "mask": mask, "type_ids": type_ids}
    lines = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "onnx" in block)
    exec(lines, names)
    want = model.outputs(token_ids, type_ids, mask)
    assert names["outputs"].keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(names["outputs"][name], value, rtol=0, atol=1e-5)


def test_the_table_of_outputs_is_complete(page):
    table = page.split("| name | shape | head |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)`", table)
    every_part = ("pooler", "mlm", "next_sentence", "sequence_classifier", "token_classifier", "span")
    assert set(named) == {"sequence_output", *forward.head_outputs(every_part)}


def test_the_report_that_is_shown_is_what_is_printed(page):
    """The page's example, made from its own numbers."""
    shown = page.split("error that names it:\n\n```\n")[1].split("\n```")[0]
    slots = {f"slot {i}": "the optimizer's memory" for i in range(92)}
    first = "bert/embeddings/LayerNorm/beta/adam_m"
    ignored = {first: slots.pop("slot 0"), **slots, "global_step": "the trainer's counter"}
    assert str(Report("tf1/bert_model.ckpt", used=["x"] * 46, ignored=ignored)) == shown
