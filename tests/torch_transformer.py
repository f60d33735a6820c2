"""Parameters of an `EncoderDecoder` made of the tensors of torch.nn.Transformer."""

import jax
import numpy as np

_PARTS = {"self_attn": "attention", "multihead_attn": "memory_attention"}
_NORMS = {
    "encoder": {"norm1": "attention_norm", "norm2": "feed_forward_norm"},
    "decoder": {"norm1": "attention_norm", "norm2": "memory_norm", "norm3": "feed_forward_norm"},
}


def block_of(tensors: dict[str, np.ndarray], stack: str, layer: int) -> dict:
    """A block's parameters, of torch's tensors."""
    prefix = f"{stack}.layers.{layer}."

    def dense(name):
        return {"kernel": tensors[f"{prefix}{name}.weight"].T, "bias": tensors[f"{prefix}{name}.bias"]}

    block = {
        ours: {"scale": tensors[f"{prefix}{theirs}.weight"], "bias": tensors[f"{prefix}{theirs}.bias"]}
        for theirs, ours in _NORMS[stack].items()
    }
    block["feed_forward"] = {"up": dense("linear1"), "down": dense("linear2")}
    for theirs, ours in _PARTS.items():
        if f"{prefix}{theirs}.in_proj_weight" not in tensors:
            continue
        weights, biases = (np.split(tensors[f"{prefix}{theirs}.in_proj_{kind}"], 3) for kind in ("weight", "bias"))
        block[ours] = {"output": dense(f"{theirs}.out_proj")}
        for name, kernel, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            block[ours][name] = {"kernel": kernel.T, "bias": bias}
    return block


def tree_of(tensors: dict[str, np.ndarray]) -> dict:
    stacks = {
        stack: jax.tree.map(lambda *x: np.stack(x), *(block_of(tensors, stack, layer) for layer in range(2)))
        for stack in ("encoder", "decoder")
    }
    table = {"token": {"embedding": tensors["embedding"]}}
    return {
        "encoder": {
            "source": {"embeddings": table, "blocks": stacks["encoder"]},
            "decoder": {"blocks": stacks["decoder"]},
        }
    }
