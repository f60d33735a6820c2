"""docs/weights.md: its claims about files and outputs hold (for its StableHLO code see stablehlo_test.py)."""

import dataclasses
import pathlib
import re
import shutil

import jax.export
import numpy as np
import onnxruntime  # the page imports it
import pytest

import bert
from bert.interop import export, hugging_face, onnx
from bert.interop.formats.tensor_bundle import open_bundle
from bert.interop.load_report import LoadReport
from bert.model import forward
from tests.bert.interop import every_head
from tests.bert.interop.formats.bundle_writer import write_checkpoint

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
    theirs = onnx.output_names(model.parts)
    want = {theirs[name]: value for name, value in model.outputs(token_ids, type_ids, mask).items()}
    assert names["outputs"].keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(names["outputs"][name], value, rtol=0, atol=1e-5)


def test_the_table_of_outputs_is_complete(page):
    """Our names of all outputs, and those in ONNX of a model with this head alone."""
    table = page.split("| StableHLO | ONNX | shape | head |")[1].split("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", line) for line in table.splitlines() if "`" in line]
    named = dict(pair for row in rows for pair in zip(row[: len(row) // 2], row[len(row) // 2 :], strict=True))
    every_part = ("pooler", "mlm", "next_sentence", "sequence_classifier", "token_classifier", "span")
    assert set(named) == {"sequence_output", *forward.head_outputs(every_part)}
    for parts in every_head.ALONE:
        theirs = onnx.output_names(parts)
        assert theirs == {name: named[name] for name in theirs}
    assert f"`{onnx.output_names(every_part)['nsp_logits']}`" in page


def test_the_example_report_is_what_is_printed(page, tmp_path):
    """The page's example: a checkpoint of the tiny model with the trainer's variables, loaded."""
    shown = re.search(r"\*\*The report\.\*\*.*?```\n(.*?)\n```", page, re.DOTALL)[1]
    golden, folder = TINY.with_name("tiny_bert_tf1"), tmp_path / "tf1"
    variables = dict(open_bundle(golden / "bert_model.ckpt"))
    slots = {f"{name}/{slot}": variables[name] for name in variables for slot in ("adam_m", "adam_v")}
    folder.mkdir()
    shutil.copy(golden / "bert_config.json", folder)
    write_checkpoint(folder / "bert_model.ckpt", variables | slots | {"global_step": np.int64(6)})
    assert str(bert.load(folder).report).replace(str(folder), "tf1") == shown


def test_every_setting_and_key_on_the_page_exists(page):
    """Fields of the report, formats and precisions that the page names."""
    fields = re.search(r"`model\.report` with (.*?\.)", page, re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", fields)) == {field.name for field in dataclasses.fields(LoadReport)} - {
        "source",
        "counted",
    }
    assert f'"{hugging_face.MARK}": "{hugging_face.WRITER}"' in page
    assert set(re.findall(r"--format=(\w+)", page)) == set(export.PROGRAMS)
    assert set(re.findall(r"--dtype=(\w+)", page)) <= set(export.DTYPES)


@pytest.mark.parametrize("format", ["stablehlo", "onnx"])
def test_programs_with_out_of_range_ids(page, tmp_path, format):
    """As the page says: NaN, an error, or ids counted from the end."""
    model = bert.load(TINY)
    folder = bert.save(model, tmp_path / "out", format=format)
    token_ids, zeros, ones = np.array([[2, 40, 3]]), np.zeros((1, 3), int), np.ones((1, 3), int)
    if format == "onnx":
        session = onnxruntime.InferenceSession(folder / "model.onnx")

        def run(tokens, types):
            inputs = {"input_ids": tokens, "attention_mask": ones, "token_type_ids": types}
            return session.run(["last_hidden_state"], inputs)[0]
    else:
        program = jax.export.deserialize(bytearray((folder / "model.stablehlo").read_bytes()))

        def run(tokens, types):
            return np.asarray(program.call(*map(np.int32, (tokens, types, ones)))["sequence_output"])

    last = np.where(token_ids == 40, 127, token_ids)
    negative, types_negative = run(np.where(token_ids == 40, -1, token_ids), zeros), run(token_ids, zeros - 1)
    if format == "onnx":
        np.testing.assert_array_equal(negative, run(last, zeros))
        np.testing.assert_array_equal(types_negative, run(token_ids, zeros + 1))
    else:
        assert np.isnan(negative).any()
        assert np.isnan(types_negative).any()
    for tokens, types in ((np.where(token_ids == 40, 128, token_ids), zeros), (token_ids, zeros + 2)):
        if format == "onnx":
            with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
                run(tokens, types)
        else:
            assert np.isnan(run(tokens, types)).any()
    assert "**Out-of-range ids.**" in page
