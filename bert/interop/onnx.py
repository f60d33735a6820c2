"""Writes a model as one ONNX file, for runtimes without JAX: the encoder and every head that the parameters hold.

The graph is built operator by operator with the layers written out; only the package `onnx` is needed. Inputs, int64
[batch_size, sequence_length], have the names, the order and the axis names of Hugging Face's exports: ``input_ids``,
``attention_mask`` (0: padding), ``token_type_ids``. Outputs are float32, and have such names, too (`output_names`).
Not here: other precisions, files above 2 GB (one protobuf message holds no more).
Axes: as in bert/model/blocks.py.

Source: ONNX operators, opset 17; bert/model/blocks.py for the arithmetic; transformers 4
``models/bert/configuration_bert.py`` (BertOnnxConfig) for the inputs; optimum-onnx 0.1 ``onnxruntime/modeling.py`` for
the outputs that each of its classes reads.
"""

import math
import pathlib
from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.errors import InputError
from bert.extras import check_installed
from bert.interop.parameters import check_size
from bert.model import forward
from bert.types import Params

# The first opset with LayerNormalization, and the file format of its time. onnxruntime 1.15 (2023) reads both.
_OPSET, _IR_VERSION = 17, 8
_SHAPE_BT = ("batch_size", "sequence_length")
_STATES = {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}
_SCORES = ("sequence_logits", "token_logits", "mlm_logits", "nsp_logits")  # the first that there is becomes "logits"


def output_names(parts: Collection[str]) -> dict[str, str]:
    """Our name of each output of a head of these parts -> its name in the file.

    The scores of the task are "logits", in pretraining those of the masked words; the scores of sentence pairs beside
    them have the name that transformers gives them.
    """
    ours = ("sequence_output", *forward.head_outputs(parts))
    names = {name: _STATES.get(name, name) for name in ours} | {"nsp_logits": "seq_relationship_logits"}
    names |= {name: "logits" for name in [name for name in _SCORES if name in ours][:1]}
    return {name: names[name] for name in ours}


def write(path: pathlib.Path, config: ModelConfig, params: Params) -> None:
    """Writes a model, float32 arrays (NumPy or JAX), to the file ``path``, with the outputs that its heads allow.

    InputError, without a file, where onnx is missing, the weights do not fit in one file, or there is one position.
    """
    check_installed("onnx", "onnx", "onnx", f"{path}: ONNX")
    import onnx

    check_size(path, params, "an ONNX file")
    if config.model_type not in _ENCODERS:
        others = "huggingface" if architectures.is_encoder_decoder(config) else "stablehlo or huggingface"
        raise InputError(f"{path}: no ONNX graph for model_type {config.model_type!r}; export {others}")
    if architectures.is_causal(config):
        raise InputError(f"{path}: no ONNX graph for causal attention (is_decoder); export stablehlo or huggingface")
    if config.max_length == 1:  # a table of one row would be repeated for longer inputs, silently
        raise InputError(f"{path}: max_position_embeddings is 1 and ONNX needs 2 or more; export huggingface")
    model = onnx.ModelProto(
        ir_version=_IR_VERSION, producer_name="bert-jax", opset_import=[onnx.helper.make_opsetid("", _OPSET)]
    )
    model.graph.name = "bert"
    graph = _Graph(onnx, model.graph)
    token_ids, mask, type_ids = (graph.input(name) for name in ("input_ids", "attention_mask", "token_type_ids"))
    x_BTD = _ENCODERS[config.model_type](graph, config, params["encoder"], token_ids, mask, type_ids)
    graph.output("last_hidden_state", x_BTD, (*_SHAPE_BT, config.hidden_size))
    _add_heads(graph, config, params, x_BTD)
    path.write_bytes(model.SerializeToString())


class _Graph:
    """A graph under construction. A value is known by its name; a node has the name of the value it gives."""

    def __init__(self, onnx: Any, graph: Any):
        self._onnx, self._graph = onnx, graph
        self._stored: set[str] = set()

    def input(self, name: str) -> str:
        """An input, int64 [B, T]."""
        info = self._onnx.helper.make_tensor_value_info(name, self._onnx.TensorProto.INT64, _SHAPE_BT)
        self._graph.input.append(info)
        return name

    def output(self, name: str, value: str, shape: Sequence[str | int]) -> None:
        """Makes a float32 value an output under that name."""
        self._graph.output.append(self._onnx.helper.make_tensor_value_info(name, self._onnx.TensorProto.FLOAT, shape))
        self.node("Identity", [value], name)

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """Weights or a number. The first call for a name stores it: what is used twice stands in the file once."""
        if name not in self._stored:
            self._stored.add(name)
            self._graph.initializer.append(self._onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def integers(self, *values: int) -> str:
        """int64 [n]: a shape, axes or an index."""
        return self.constant(f"integers/{'_'.join(map(str, values))}", values, np.int64)

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(f"number/{value!r}", value)

    def node(self, operator: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        self._graph.node.append(self._onnx.helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def dense(self, x: str, params: Params, name: str) -> str:
        """``x @ kernel + bias``."""
        product = self.node("MatMul", [x, self.constant(f"{name}/kernel", params["kernel"])], f"{name}/product")
        return self.node("Add", [product, self.constant(f"{name}/bias", params["bias"])], name)

    def norm(self, x: str, params: Params, epsilon: float, name: str) -> str:
        weights = [self.constant(f"{name}/{part}", params[part]) for part in ("scale", "bias")]
        return self.node("LayerNormalization", [x, *weights], name, axis=-1, epsilon=epsilon)

    def activation(self, x: str, kind: str, name: str) -> str:
        """One of bert/architectures/bert.py's ACTIVATIONS, in the forms that runtimes recognise and fuse."""

        def step(operator: str, inputs: Sequence[str], part: str) -> str:
            return self.node(operator, inputs, f"{name}/{part}")

        if kind in ("relu", "tanh"):
            return self.node(kind.capitalize(), [x], name)
        if kind in ("silu", "swish"):
            return self.node("Mul", [x, step("Sigmoid", [x], "sigmoid")], name)
        if kind == "gelu":
            curve = step("Erf", [step("Div", [x, self.number(math.sqrt(2))], "scaled")], "erf")
        else:  # the tanh form, under its three names
            cube = step("Mul", [step("Pow", [x, self.number(3)], "cube"), self.number(0.044715)], "cubic_term")
            inner = step("Mul", [step("Add", [x, cube], "polynomial"), self.number(math.sqrt(2 / math.pi))], "scaled")
            curve = step("Tanh", [inner], "tanh")
        share = step("Mul", [x, step("Add", [curve, self.number(1)], "share")], "twice")
        return self.node("Mul", [share, self.number(0.5)], name)


def _add_bert(graph: _Graph, config: Any, encoder: Params, token_ids: str, mask: str, type_ids: str) -> str:
    """Hidden states of BERT."""
    x_BTD = _add_embeddings(graph, config, encoder["embeddings"], token_ids, type_ids)
    # [B, 1, 1, S]: 0 at real keys, -1e30 at padding. Added to a score it gives -1e30 exactly, so that a row of nothing
    # but padding gets equal weights and no NaN.
    padding = graph.node("Equal", [mask, graph.integers(0)], "encoder/mask/padding")
    chosen = graph.node("Where", [padding, graph.number(-1e30), graph.number(0)], "encoder/mask/chosen")
    added_B11S = graph.node("Unsqueeze", [chosen, graph.integers(1, 2)], "encoder/mask")
    for i in range(config.num_layers):
        layer = jax.tree.map(lambda stacked, i=i: stacked[i], encoder["blocks"])
        x_BTD = _add_block(graph, config, layer, x_BTD, added_B11S, f"encoder/layer_{i}")
    return x_BTD


_ENCODERS = {"bert": _add_bert}  # model_type -> what adds its encoder


def _add_embeddings(graph: _Graph, config: ModelConfig, params: Params, token_ids: str, type_ids: str) -> str:
    """Sum of token, position and type embeddings, normalised."""
    name = "encoder/embeddings"

    def table(part: str) -> str:
        return graph.constant(f"{name}/{part}/embedding", params[part]["embedding"])

    tokens = graph.node("Gather", [table("token"), token_ids], f"{name}/token")
    types = graph.node("Gather", [table("type"), type_ids], f"{name}/type")
    length = graph.node("Shape", [token_ids], f"{name}/length", start=1, end=2)
    # Slice stops at the table's end without a word. The sum then fails, as it must for more tokens than positions; not
    # every runtime checks the indices of a Gather.
    positions = graph.node("Slice", [table("position"), graph.integers(0), length], f"{name}/position")
    placed = graph.node("Add", [tokens, positions], f"{name}/token_and_position")
    summed = graph.node("Add", [placed, types], f"{name}/sum")
    return graph.norm(summed, params["norm"], config.layer_norm_eps, f"{name}/norm")


def _add_block(graph: _Graph, config: ModelConfig, params: Params, x_BTD: str, added_B11S: str, name: str) -> str:
    """One post-norm block."""
    mixed = _add_attention(graph, config, params["attention"], x_BTD, added_B11S, f"{name}/attention")
    summed = graph.node("Add", [mixed, x_BTD], f"{name}/attention_sum")
    x_BTD = graph.norm(summed, params["attention_norm"], config.layer_norm_eps, f"{name}/attention_norm")
    up = graph.dense(x_BTD, params["feed_forward"]["up"], f"{name}/feed_forward/up")
    active = graph.activation(up, config.hidden_act, f"{name}/feed_forward/activation")
    down = graph.dense(active, params["feed_forward"]["down"], f"{name}/feed_forward/down")
    summed = graph.node("Add", [down, x_BTD], f"{name}/feed_forward_sum")
    return graph.norm(summed, params["feed_forward_norm"], config.layer_norm_eps, f"{name}/feed_forward_norm")


def _add_attention(graph: _Graph, config: Any, params: Params, x_BTD: str, added_B11S: str, name: str) -> str:
    """Multi-head self-attention with its output projection."""
    width = config.hidden_size // config.num_heads
    split = graph.integers(0, 0, config.num_heads, width)  # 0: as in the input

    def heads(part: str, order: tuple[int, ...]) -> str:
        projected = graph.dense(x_BTD, params[part], f"{name}/{part}")
        parts = graph.node("Reshape", [projected, split], f"{name}/{part}/split")
        return graph.node("Transpose", [parts], f"{name}/{part}/heads", perm=order)

    q_BNTH, k_BNHS, v_BNSH = (
        heads(part, order) for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
    )
    products = graph.node("MatMul", [q_BNTH, k_BNHS], f"{name}/products")
    scores = graph.node("Mul", [products, graph.number(width**-0.5)], f"{name}/scores")
    masked = graph.node("Add", [scores, added_B11S], f"{name}/masked")
    weights = graph.node("Softmax", [masked], f"{name}/weights", axis=-1)
    mixed = graph.node("MatMul", [weights, v_BNSH], f"{name}/mixed")
    mixed = graph.node("Transpose", [mixed], f"{name}/mixed/positions", perm=(0, 2, 1, 3))
    joined = graph.node("Reshape", [mixed, graph.integers(0, 0, config.hidden_size)], f"{name}/joined")
    return graph.dense(joined, params["output"], f"{name}/output")


def _add_heads(graph: _Graph, config: ModelConfig, params: Params, x_BTD: str) -> None:
    """Every output that bert/model/forward.py computes from the same parts."""
    head = params.get("head", {})
    names = output_names(head)
    if "pooled_output" in names or "sequence_logits" in names:
        read = graph.node("Gather", [x_BTD, graph.constant("index/0", 0, np.int64)], "head/first", axis=1)
        if "pooled_output" in names:
            read = graph.node("Tanh", [graph.dense(read, head["pooler"], "head/pooler")], "head/pooler/tanh")
            graph.output(names["pooled_output"], read, (_SHAPE_BT[0], config.hidden_size))
        for part, name in (("next_sentence", "nsp_logits"), ("sequence_classifier", "sequence_logits")):
            if name in names:
                classes = len(head[part]["bias"])
                graph.output(names[name], graph.dense(read, head[part], f"head/{part}"), (_SHAPE_BT[0], classes))
    if "token_logits" in names:
        scores = graph.dense(x_BTD, head["token_classifier"], "head/token_classifier")
        graph.output(names["token_logits"], scores, (*_SHAPE_BT, len(head["token_classifier"]["bias"])))
    if "start_logits" in names:
        span = graph.dense(x_BTD, head["span"], "head/span")
        for i, name in enumerate(("start_logits", "end_logits")):
            index = graph.constant(f"index/{i}", i, np.int64)
            graph.output(name, graph.node("Gather", [span, index], f"head/span/{i}", axis=2), _SHAPE_BT)
    if "mlm_logits" in names:
        graph.output(
            names["mlm_logits"], _add_masked_words(graph, config, params, x_BTD), (*_SHAPE_BT, config.vocab_size)
        )


def _add_masked_words(graph: _Graph, config: ModelConfig, params: Params, x_BTD: str) -> str:
    """Scores of every vocabulary entry at every position, [B, T, V]."""
    mlm, name = params["head"]["mlm"], "head/mlm"
    dense = graph.dense(x_BTD, mlm["transform"], f"{name}/transform")
    active = graph.activation(dense, config.hidden_act, f"{name}/activation")
    transformed = graph.norm(active, mlm["norm"], config.layer_norm_eps, f"{name}/norm")
    # The encoder's own table, transposed where it is used. A runtime may fold that into a second copy in memory.
    table = params["encoder"]["embeddings"]["token"]["embedding"]
    stored = graph.constant("encoder/embeddings/token/embedding", table)
    columns = graph.node("Transpose", [stored], f"{name}/table", perm=(1, 0))
    products = graph.node("MatMul", [transformed, columns], f"{name}/products")
    return graph.node("Add", [products, graph.constant(f"{name}/bias", mlm["bias"])], name)
