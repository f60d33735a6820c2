"""The pretraining step by transformers 4.57, the last version with Flax, as shipped: vocabulary at every position.

python -m bench.flax_peer --size=base --batch=8 --length=128
"""

import functools

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import transformers

from bench import turns, work
from bench.work import Work


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "").parse_args())
    transformers.logging.set_verbosity_error()
    config = transformers.BertConfig.from_dict(workload.config.to_json())
    model = transformers.FlaxBertForPreTraining(config, (1, workload.length), dtype=jnp.dtype(workload.dtype))  # type: ignore[attr-defined]  # gone in 5
    optimizer = optax.adamw(1e-4, weight_decay=0.01)
    batch = {name: jnp.asarray(value) for name, value in batch_of(workload).items()}
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels

    def loss(params, key):
        inputs = (batch["token_ids"], batch["mask"], batch["type_ids"])
        outputs = model(*inputs, params=params, dropout_rng=key, train=True)
        words = cross_entropy(outputs.prediction_logits.astype(jnp.float32), batch["words"])
        follows = cross_entropy(outputs.seq_relationship_logits.astype(jnp.float32), batch["follows"])
        return (words * batch["masked"]).sum() / batch["masked"].sum() + follows.mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def train_step(params, optimizer_state, key):
        key, step_key = jax.random.split(key)
        value, gradient = jax.value_and_grad(loss)(params, step_key)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        return optax.apply_updates(params, updates), optimizer_state, key, value

    state = (model.params, optimizer.init(model.params), jax.random.key(0))
    value = None

    def step() -> None:
        nonlocal state, value
        *state, value = train_step(*state)

    versions = {"name": "flax", "transformers": transformers.__version__, "flax": flax.__version__}
    versions |= {"jax": jax.__version__, "device": jax.devices()[0].device_kind}
    turns.serve(step, lambda: jax.block_until_ready(value), versions, turns.resident)


def batch_of(workload: Work) -> dict[str, np.ndarray]:
    """The batch with labels at the masked positions [B, T], where ``masked`` is 1."""
    arrays = workload.arrays()
    words_BT = np.zeros_like(arrays["token_ids"])
    masked_BT = np.zeros(words_BT.shape, np.float32)
    np.put_along_axis(words_BT, arrays["masked_positions"], arrays["masked_ids"], 1)
    np.put_along_axis(masked_BT, arrays["masked_positions"], 1.0, 1)
    return {
        "token_ids": arrays["token_ids"],
        "type_ids": arrays["type_ids"],
        "mask": arrays["example_ids"],
        "words": words_BT,
        "masked": masked_BT,
        "follows": arrays["next_sentence_labels"][:, 0],
    }


if __name__ == "__main__":
    main()
