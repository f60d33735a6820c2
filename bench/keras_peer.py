"""The pretraining step without next-sentence prediction, by Keras Hub on JAX.

python -m bench.keras_peer --size=mini --batch=32 --length=128

Its masked-word head reads only the masked positions, as ours does.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import keras_hub

from bench import turns, work


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "").parse_args())
    if workload.dtype == "bfloat16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    config = workload.config
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=workload.dropout,
        max_sequence_length=config.max_position_embeddings,
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01),
        jit_compile=True,
    )
    arrays = workload.arrays()
    inputs = {
        "token_ids": arrays["token_ids"],
        "segment_ids": arrays["type_ids"],
        "padding_mask": arrays["example_ids"],
        "mask_positions": arrays["masked_positions"],
    }
    versions = {"name": "keras", "keras_hub": keras_hub.__version__, "keras": keras.__version__, "jax": jax.__version__}
    versions["device"] = jax.devices()[0].device_kind
    turns.serve(lambda: model.train_on_batch(inputs, arrays["masked_ids"]), lambda: None, versions, turns.resident)


if __name__ == "__main__":
    main()
