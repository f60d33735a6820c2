"""StableHLO files: equal to the library at any shape, usable without it, loud about wrong input."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from bert import architectures
from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.data.padding import one_example_a_row
from bert.interop import stablehlo
from tests.bert.interop import every_head


@pytest.fixture(scope="module")
def path(config, params, tmp_path_factory):
    path = tmp_path_factory.mktemp("stablehlo") / "model.stablehlo"
    stablehlo.write(path, config, params)
    return path


def read(path) -> export.Exported:
    return export.deserialize(bytearray(path.read_bytes()))


def output_names(path) -> set[str]:
    exported = read(path)
    return set(jax.tree.unflatten(exported.out_tree, exported.out_avals))


@pytest.fixture(scope="module")
def model(path):
    return jax.jit(read(path).call)


@pytest.mark.parametrize(("rows", "length"), every_head.SHAPES)
def test_one_file_gives_what_the_library_gives_at_any_shape(model, config, params, rows, length):
    given = every_head.inputs(config, rows, length)
    got = model(given["token_ids"], given["type_ids"], given["mask"])
    assert set(got) == set(every_head.OUTPUTS)
    every_head.assert_close(got, every_head.expected(config, params, given), atol=1e-5)


def test_padding_changes_nothing_at_real_positions(model, config):
    """Other tokens under the mask, and more of it, leave every real position as it was, and what is read at [CLS]."""
    short, long = every_head.inputs(config, 2, 7), every_head.inputs(config, 2, 24)
    for name in ("token_ids", "type_ids"):
        long[name][:, :7] = short[name]
    mask = np.zeros_like(long["mask"])
    mask[:, :7] = 1
    plain = model(short["token_ids"], short["type_ids"], np.ones_like(short["mask"]))
    padded = model(long["token_ids"], long["type_ids"], mask)
    for name in every_head.OUTPUTS:
        per_position = plain[name].shape[1:2] == (7,)
        got = padded[name][:, :7] if per_position else padded[name]
        np.testing.assert_allclose(got, plain[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", [StridedConfig, DilatedConfig])
def test_convolutions_take_any_shape_too(tmp_path, kind):
    """Of odd length, and shorter than the taps reach."""
    config = kind(9, embedding_size=4, hidden_size=4, max_length=4, num_layers=2)
    batch = one_example_a_row([[1, 2, 3]], 3, 1)
    encoder = architectures.build(config)
    params = jax.jit(encoder.init)(jax.random.key(0), batch)["params"]
    stablehlo.write(tmp_path / "model.stablehlo", config, {"encoder": params}, platforms=["cpu"])
    given = (batch[name] for name in ("token_ids", "type_ids", "example_ids"))
    got = read(tmp_path / "model.stablehlo").call(*given)["sequence_output"]
    np.testing.assert_allclose(got, jax.jit(encoder.apply)({"params": params}, batch)["tokens"], atol=1e-6)


@pytest.mark.parametrize("parts", every_head.ALONE, ids="-".join)
def test_the_outputs_follow_from_the_heads(config, tmp_path, parts):
    stablehlo.write(tmp_path / "model.stablehlo", config, every_head.params(config, parts), platforms=["cpu"])
    assert output_names(tmp_path / "model.stablehlo") == {"sequence_output", *every_head.ALONE[parts]}


def test_an_encoder_without_a_head_is_a_model_too(config, params, tmp_path):
    stablehlo.write(tmp_path / "model.stablehlo", config, {"encoder": params["encoder"]}, platforms=["cpu"])
    assert output_names(tmp_path / "model.stablehlo") == {"sequence_output"}


@pytest.mark.parametrize("changes", [{"dtype": "bfloat16"}, {"layer_loop": "unroll", "remat": True}], ids=str)
def test_how_training_computed_does_not_get_into_the_file(config, params, path, tmp_path, changes):
    """The file is the same to the byte, in float32; JAX arrays are as good as NumPy's."""
    trained = jax.tree.map(jnp.asarray, params)
    stablehlo.write(tmp_path / "model.stablehlo", dataclasses.replace(config, **changes), trained)
    assert (tmp_path / "model.stablehlo").read_bytes() == path.read_bytes()


def test_nothing_of_this_machine_gets_into_the_file(path):
    """Neither paths nor names of source files, ours or the caller's; JAX's own setting is as it was."""
    assert b".py" not in path.read_bytes()
    assert str(pathlib.Path(stablehlo.__file__).parents[2]) not in read(path).mlir_module()
    assert jax.config.jax_traceback_in_locations_limit > 0  # type: ignore[attr-defined]


def test_a_process_without_this_library_runs_it(path, config, params, tmp_path):
    """The documented lines, in an isolated interpreter: neither bert nor flax is imported, the outputs are ours."""
    given = every_head.inputs(config, 2, 7)
    np.savez(tmp_path / "inputs.npz", **given)
    page = (pathlib.Path(stablehlo.__file__).parents[2] / "docs" / "weights.md").read_text()
    lines = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "jax" in block)
    loader = lines.replace('"out/model.stablehlo"', repr(str(path)))
    code = f"""
import json, sys
import numpy as np
given = np.load({str(tmp_path / "inputs.npz")!r})
token_ids, type_ids, mask = (given[name] for name in ("token_ids", "type_ids", "mask"))
{loader}
np.savez({str(tmp_path / "outputs.npz")!r}, **outputs)
print(json.dumps(sorted({{name.split(".")[0] for name in sys.modules}})))
"""
    environment = {"PATH": os.environ["PATH"], "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-I", "-W", "error", "-c", code]
    told = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    modules = set(json.loads(told.stdout))
    assert "jax" in modules
    assert not {"bert", "flax", "optax", "orbax", "ml_collections"} & modules
    with np.load(tmp_path / "outputs.npz") as got:
        every_head.assert_close(dict(got), every_head.expected(config, params, given), atol=1e-5)


def test_it_is_lowered_for_every_platform(path, config, params, tmp_path):
    exported = read(path)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert "stablehlo.dot_general" in exported.mlir_module()
    assert "precision = [HIGHEST, HIGHEST]" in exported.mlir_module()  # GPUs and TPUs would round the factors
    stablehlo.write(tmp_path / "model.stablehlo", config, params, platforms=["tpu"])
    assert read(tmp_path / "model.stablehlo").platforms == ("tpu",)


def test_no_warning_of_large_weights_that_are_meant(config, params, tmp_path):
    """JAX warns of constants from 2 GB on; here from one byte on, and a warning is an error."""
    before = jax.config.jax_captured_constants_warn_bytes  # type: ignore[attr-defined]
    jax.config.update("jax_captured_constants_warn_bytes", 1)
    try:
        stablehlo.write(tmp_path / "model.stablehlo", config, params, platforms=["cpu"])
        assert jax.config.jax_captured_constants_warn_bytes == 1  # type: ignore[attr-defined]
    finally:
        jax.config.update("jax_captured_constants_warn_bytes", before)


def test_the_token_table_and_every_other_weight_is_there_once(path, params):
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    assert 0 < path.stat().st_size - weights < 60_000


def test_wrong_input_is_refused_by_jax_itself(model, config):
    ids = np.zeros((2, config.max_position_embeddings + 1), np.int32)
    with pytest.raises(ValueError, match="Error refining shapes") as error:
        model(ids, ids, ids)
    assert "Input shapes do not match the symbolic shape constraint t <= 24" in str(error.value.__cause__)
    short = ids[:, :7]
    with pytest.raises(ValueError, match="Dtype mismatch"):
        model(short.astype(np.float32), short, short)
    with pytest.raises(ValueError, match="Found inconsistency between dimension size"):
        model(short, short, short[:, :6])
