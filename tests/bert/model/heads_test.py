"""The pretraining head: which positions it reads, which table it scores with, and that both classes count."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import heads, losses
from bert.model.heads import Model, PretrainingHead


def test_words_are_scored_at_the_masked_positions_only(tiny, make_batch, examples):
    """Logits follow ``masked_positions`` in any order and number, and no others are computed."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    del batch["masked_ids"]  # there are as many as positions; without them, words are scored and nothing is lost
    everywhere = batch | {"masked_positions": np.tile(np.arange(16, dtype=np.int32), (4, 1))}
    all_BTV = tiny.outputs(everywhere)["mlm_logits"]
    some = batch | {"masked_positions": np.array([[4, 1, 1], [0, 3, 2], [15, 8, 0], [7, 7, 9]], np.int32)}
    some_BPV = tiny.outputs(some)["mlm_logits"]
    assert some_BPV.shape == (4, 3, 64)
    for b, row in enumerate(some["masked_positions"]):
        np.testing.assert_allclose(some_BPV[b], all_BTV[b, row], rtol=0, atol=1e-5)


def test_what_words_cost_agrees_with_their_scores(tiny, make_batch, examples):
    """Nats and hits of ``masked_ids`` are those of the logits beside them."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    first = tiny.outputs(batch)
    batch["masked_ids"][0, 0] = first["mlm_logits"][0, 0].argmax()
    outputs = tiny.outputs(batch)
    loss_BP = losses.cross_entropy(outputs["mlm_logits"], batch["masked_ids"])
    np.testing.assert_allclose(outputs["mlm_cross_entropy"], loss_BP, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(outputs["mlm_correct"], outputs["mlm_logits"].argmax(-1) == batch["masked_ids"])
    assert outputs["mlm_correct"][0, 0] == 1


def test_the_token_table_is_shared(tiny, make_batch, examples):
    """Input and output use one table: there is no second one, and a token that never goes in has a gradient."""
    assert [x.shape for x in jax.tree.leaves(tiny.params)].count((64, 16)) == 1
    _, gradients = tiny.loss_and_gradients(make_batch([[examples[0]], [], [], []], 16))
    unused = sorted(set(range(64)) - {0, *examples[0]})
    table_VD = np.asarray(gradients["encoder"]["embeddings"]["token"]["embedding"])
    assert (np.abs(table_VD[unused]).max(-1) > 0).all()


@pytest.mark.parametrize("label", [0, 1])
def test_both_next_sentence_classes_are_learned(tiny, make_batch, examples, label):
    """A batch in which every pair has the same label, 0 or 1, gives a loss, and gradients down to the embeddings."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    batch["next_sentence_labels"][:], batch["masked_weights"][:] = label, 0
    loss, gradients = tiny.loss_and_gradients(batch)
    logits_BEC = tiny.outputs(batch)["nsp_logits"]
    assert float(loss) == pytest.approx(-float(jax.nn.log_softmax(logits_BEC)[:, 0, label].mean()), abs=1e-5)
    assert float(loss) > 0.01
    for part in (gradients["head"]["next_sentence"]["bias"], gradients["encoder"]["embeddings"]["token"]["embedding"]):
        assert float(jnp.abs(part).max()) > 1e-3


def test_each_example_of_a_row_has_its_own_answer(tiny, make_batch, examples):
    """The relation of an example is read at its own [CLS], wherever in the row that lies."""
    packed = tiny.outputs(make_batch([examples[:3], [], [], []], 32))["nsp_logits"][0]
    alone = tiny.outputs(make_batch([[e] for e in examples[:4]], 32))["nsp_logits"][:3, 0]
    np.testing.assert_allclose(packed, alone, rtol=0, atol=1e-5)
    assert np.abs(np.diff(alone, axis=0)).max() > 0.1


def test_empty_slots_and_unlabelled_pairs_weigh_nothing(tiny, make_batch, examples, assert_trees_close):
    """Other ids and labels where the weight is 0: the same loss and gradients, bit by bit."""
    batch = make_batch([examples[:3], examples[3:4], [], []], 32)
    other = {k: v.copy() for k, v in batch.items()}
    other["masked_ids"][batch["masked_weights"] == 0] = 17
    other["masked_positions"][batch["masked_weights"] == 0] = 5
    other["next_sentence_labels"][batch["next_sentence_weights"] == 0] = 1
    assert_trees_close(tiny.loss_and_gradients(other), tiny.loss_and_gradients(batch), 0)


def test_a_wrong_id_that_counts_makes_the_loss_loud(tiny, make_batch, examples):
    """A masked id beyond the vocabulary, or a third class: NaN, at which a training step is skipped and counted."""
    for name, wrong in (("masked_ids", 64), ("next_sentence_labels", 2)):
        batch = make_batch([examples[:3], examples[3:4], [], []], 32)
        batch[name][0, 0] = wrong
        assert np.isnan(tiny.loss_and_gradients(batch)[0]), name


def test_without_next_sentence(tiny, make_batch, examples):
    """Masked words alone: no pooler among the parameters, the same word scores."""
    model = Model(tiny.config, PretrainingHead(tiny.config, with_next_sentence=False))
    batch = make_batch([[e] for e in examples[:4]], 16)
    assert set(jax.eval_shape(model.init, jax.random.key(0), batch)["params"]["head"]) == {"mlm"}
    params = {"encoder": tiny.params["encoder"], "head": {"mlm": tiny.params["head"]["mlm"]}}
    outputs = jax.jit(model.apply)({"params": params}, batch)
    assert set(outputs) == {"mlm_logits", "mlm_cross_entropy", "mlm_correct"}
    np.testing.assert_allclose(outputs["mlm_logits"], tiny.outputs(batch)["mlm_logits"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_outputs_are_float32(tiny, make_batch, examples, dtype):
    """Whatever the products run in, losses and users get float32 with all of its digits."""
    params = jax.tree.map(lambda x: x, tiny.params)
    # Added in float32, a bias would hide a sum that was rounded before.
    for biased in (params["head"]["mlm"], params["head"]["pooler"], params["head"]["next_sentence"]):
        biased["bias"] *= 0
    outputs = dataclasses.replace(tiny, params=params).outputs(make_batch([[e] for e in examples[:4]], 16), dtype=dtype)
    for name in ("mlm_logits", "mlm_cross_entropy", "pooled_output", "nsp_logits"):
        assert outputs[name].dtype == jnp.float32, name
        assert (outputs[name] != outputs[name].astype("bfloat16").astype("float32")).mean() > 0.9, name


def test_the_tanh_of_the_pooler_keeps_float32_digits(tiny):
    """tanh of sums that bfloat16 cannot tell apart differs, with bfloat16 products, too."""
    pooler = heads.part("pooler", dataclasses.replace(tiny.config, dtype="bfloat16"))
    kernel = {"kernel": np.full((16, 16), 1 / 16, np.float32), "bias": np.zeros(16, np.float32)}
    first_ED = np.ones((2, 16), np.float32)
    first_ED[1, 0] = 1 + 2**-7  # one bfloat16 step: the sum of 16 such terms moves by a sixteenth of one
    one, other = heads.pooled(functools.partial(pooler.apply, {"params": kernel}), first_ED)[:, 0]
    assert float(one) == pytest.approx(np.tanh(1), abs=1e-6)
    assert float(other) == pytest.approx(np.tanh(1 + 2**-11), abs=1e-6)


def test_head_uses_the_activation_of_the_config(tiny, make_batch, examples):
    """Where the blocks' own activation is silenced (its output projection is 0), the word scores still change."""
    params = jax.tree.map(lambda x: x, tiny.params)
    down = params["encoder"]["blocks"]["feed_forward"]["down"]
    params["encoder"]["blocks"]["feed_forward"]["down"] = {"kernel": down["kernel"] * 0, "bias": down["bias"]}
    muted = dataclasses.replace(tiny, params=params)
    batch = make_batch([[e] for e in examples[:4]], 16)
    np.testing.assert_array_equal(muted.hidden(batch), muted.hidden(batch, hidden_act="relu"))
    difference = muted.outputs(batch)["mlm_logits"] - muted.outputs(batch, hidden_act="relu")["mlm_logits"]
    assert np.abs(difference).max() > 0.1
