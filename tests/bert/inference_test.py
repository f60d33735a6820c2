"""A loaded model: equal to the reference everywhere, whatever the batch, and clear about what it cannot do."""

import pathlib
import shutil
import socket

import jax
import numpy as np
import pytest
import safetensors.numpy

import bert
from bert import inference
from bert.errors import InputError
from bert.model import forward, pooling

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
TINY = GOLDEN / "tiny_bert"
WORDS = (TINY / "vocab.txt").read_text().split()[75:116]  # "deep" to "book"


@pytest.fixture(scope="module")
def tiny():
    return bert.load(TINY)


@pytest.fixture(scope="module")
def golden():
    return np.load(GOLDEN / "pretrain.npz")


def texts(count: int, longest: int = 12) -> list[str]:
    rng = np.random.default_rng(11)
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)]


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=atol)


# ---- the same numbers ----


def test_outputs_equal_the_reference_at_every_position(tiny, golden):
    """All arrays, padding positions included: hidden states, attention, pooled state and the logits of both heads."""
    found = tiny.outputs(golden["input_ids"], golden["token_type_ids"], golden["attention_mask"], look_inside=True)
    names = {"sequence_output", "pooled_output", "nsp_logits", "mlm_logits", "hidden_states", "attentions"}
    assert found.keys() == names
    for name in names:
        assert found[name].dtype == np.float32
        close(found[name], golden[name])


def test_outputs_without_mask_and_types(tiny, golden):
    found = tiny.outputs(golden["input_ids"])
    close(found["sequence_output"], golden["default_args_sequence_output"])
    close(found["mlm_logits"][..., :16], golden["default_args_mlm_logits"])


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh"])
def test_outputs_with_each_activation(variant, golden, activation):
    found = variant(hidden_act=activation).outputs(
        golden["input_ids"], golden["token_type_ids"], golden["attention_mask"]
    )
    close(found["sequence_output"], golden[f"act_{activation}_sequence_output"])
    close(found["mlm_logits"][..., :16], golden[f"act_{activation}_mlm_logits"])


def test_half_precision_weights_stay_near(tiny, variant, golden):
    """A float16 checkpoint: float32 in memory, logits within 1e-2."""
    weights = safetensors.numpy.load_file(TINY / "model.safetensors")
    half = variant(tensors={name: tensor.astype(np.float16) for name, tensor in weights.items()})
    found = half.outputs(golden["input_ids"], golden["token_type_ids"], golden["attention_mask"])
    close(found["mlm_logits"], golden["mlm_logits"], atol=1e-2)
    assert np.abs(found["mlm_logits"] - golden["mlm_logits"]).max() > 1e-5, "the weights were rounded, after all"


def test_saved_and_loaded_again_it_is_the_same_model(tiny, golden, tmp_path):
    again = bert.load(bert.save(tiny, tmp_path / "out"))
    arguments = (golden["input_ids"], golden["token_type_ids"], golden["attention_mask"])
    want, got = tiny.outputs(*arguments), again.outputs(*arguments)
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


# ---- batches change nothing ----


@pytest.mark.parametrize("length", [16, 32, 64])
@pytest.mark.parametrize("rows", [1, 8])
def test_outputs_of_a_row_depend_on_neither_padding_nor_neighbours(tiny, length, rows):
    """One sentence alone, in a batch of 8, padded to 16, 32, 64: hidden states and logits within 1e-5."""
    row = [2, *range(90, 99), 3]
    ids = np.random.default_rng(1).integers(5, 128, (rows, length))
    mask = np.ones_like(ids)
    ids[-1, :11], mask[-1, 11:] = row, 0
    alone, found = tiny.outputs([row]), tiny.outputs(ids, mask=mask)
    close(found["sequence_output"][-1, :11], alone["sequence_output"][0])
    close(found["mlm_logits"][-1, :11], alone["mlm_logits"][0])
    close(found["nsp_logits"][-1], alone["nsp_logits"][0])


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_embeddings_keep_order_and_do_not_depend_on_the_batch(tiny, pooling):
    """100 texts of mixed length with 1, 7 and 32 rows at a time: equal to 1e-5, and equal to `outputs` of each."""
    many = [*texts(96, longest=40), "", "fun", "  ", "cat " * 50]
    found_ND = {size: tiny.embed(many, pooling, batch_size=size) for size in (1, 7, 32)}
    close(found_ND[7], found_ND[1])
    close(found_ND[32], found_ND[1])
    assert found_ND[1].dtype == np.float32
    for i in (0, 50, 96, 99):
        ids = [2, *tiny.tokenizer.encode(many[i]).ids, 3]
        out = tiny.outputs([ids])
        want = {"mean": out["sequence_output"][0].mean(0), "cls": out["sequence_output"][0, 0]}
        close(found_ND[32][i], want.get(pooling, out["pooled_output"][0]))


def test_no_texts_give_no_rows(tiny):
    assert tiny.embed([]).shape == (0, 32)


def test_new_texts_compile_nothing_new(tiny):
    """At most one compilation for rows of each length, and none once that was seen."""
    compiled = pooling.compiled_vectors("float32")
    compiled.clear_cache()  # type: ignore[attr-defined]
    tiny.embed(texts(200, longest=60))
    lengths = compiled._cache_size()  # type: ignore[attr-defined]
    assert lengths <= 4
    tiny.embed(texts(333, longest=60))
    assert compiled._cache_size() == lengths  # type: ignore[attr-defined]
    compiled = forward.compiled_outputs("float32")
    compiled.clear_cache()  # type: ignore[attr-defined]
    tiny.fill_mask("the cat [MASK]")
    seen = compiled._cache_size()  # type: ignore[attr-defined]
    tiny.fill_mask("who is the [MASK] of new york ?")
    tiny.outputs([[2, 90, 3]])
    outputs = compiled._cache_size()  # type: ignore[attr-defined]
    tiny.outputs([[2, 90, 91, 92, 3]])
    assert (seen, outputs) == (1, 2)
    assert compiled._cache_size() == outputs  # type: ignore[attr-defined]


# ---- sentences ----


def test_long_texts_are_cut_with_one_warning_and_a_count(tiny, caplog):
    long = "cat " * 700
    vectors_ND = tiny.embed([long, "the cat", long + "dog"])
    assert caplog.messages[0].startswith("2 of 3 texts are longer than the model's 64 positions")
    np.testing.assert_array_equal(vectors_ND[0], vectors_ND[2])
    caplog.clear()
    assert tiny.predict_next_sentence(long, "the dog") == tiny.predict_next_sentence(long + long, "the dog")
    assert caplog.messages == ["1 pair is longer than the model's 64 positions and was cut"] * 2


def test_attention_of_a_layer(tiny):
    """Weights are those of the reference model, scores are what the softmax was taken of; a pair has two segments."""
    found = tiny.attention("the cat sat", layer=1, pair="on the [MASK]")
    assert found.pieces == ["[CLS]", "the", "cat", "sat", "[SEP]", "on", "the", "[MASK]", "[SEP]"]
    ids = [tiny.tokenizer.vocab.index(piece) for piece in found.pieces]
    out = tiny.outputs([ids], [[0] * 5 + [1] * 4], look_inside=True)
    close(found.weights, out["attentions"][1, 0])
    assert found.scores.shape == (4, 9, 9)
    close(np.asarray(jax.nn.softmax(found.scores, axis=-1)), found.weights)
    first = tiny.attention("the cat sat", layer=0)
    assert not np.allclose(first.scores, tiny.attention("the cat sat", layer=1).scores)
    with pytest.raises(InputError, match=r"layer is 2; .*0 to 1"):
        tiny.attention("the cat", layer=2)


# ---- what cannot be done is said ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[2, 40], [3, 128]],), r"token_ids: row 1, position 1 holds 128; it must be from 0 to 127"),
        (([[2, -1]],), r"token_ids: row 0, position 1 holds -1; it must be from 0 to 127"),
        (
            ([[2, 3]], [[0, 2]]),
            r"type_ids: row 0, position 1 holds 2; it must be from 0 to 1 \(the model has 2 segment",
        ),
        (([[2, 3]], None, [[1, 7]]), r"mask: row 0, position 1 holds 7; it must be from 0 to 1"),
        (([[2, 3]], [[0]]), r"type_ids has shape \[1, 1\]; it must be \[1, 2\], as token_ids"),
        (([2, 3],), r"token_ids has shape \[2\]; it must be \[B, T\] with at least one token"),
        (([[2, 3], [2]],), r"token_ids has rows of different lengths; pad them with 0 and give a mask"),
        (([[2.0, 3.0]],), r"token_ids holds float64; it must hold whole numbers"),
        (([[5] * 65],), r"token_ids has 65 positions in a row, the model 64; cut the rows to 64"),
        ((np.zeros((0, 4), int),), r"token_ids has shape \[0, 4\]"),
    ],
)
def test_ids_that_the_model_has_no_rows_for_are_refused(tiny, arguments, message):
    """Out of range, a compiled lookup would raise nothing; so every id is checked, and the first wrong one is named."""
    with pytest.raises(InputError, match=message):
        tiny.outputs(*arguments)


def test_wrong_arguments_of_embed(tiny):
    with pytest.raises(InputError, match=r"texts is one text; .*list"):
        tiny.embed("one text")
    for missing in (None, float("nan"), 5):
        with pytest.raises(InputError, match="is no text; leave out"):
            tiny.embed(["a", missing])
    with pytest.raises(InputError, match="None is no text"):
        tiny.fill_mask(None)
    with pytest.raises(InputError, match="second is None, which is no text"):
        tiny.predict_next_sentence("a", None)
    with pytest.raises(InputError, match=r"pooling is 'maxi'; .*lasttoken, pooler; did you mean 'max'"):
        tiny.embed(["a"], pooling="maxi")
    with pytest.raises(InputError, match=r"prompt is 'query', .*declares none"):
        tiny.embed(["a"], prompt="query")
    with pytest.raises(InputError, match="batch_size is 0"):
        tiny.embed(["a"], batch_size=0)


def test_without_a_vocabulary_only_ids_can_be_given(tmp_path):
    shutil.copytree(TINY, tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").unlink()
    model = bert.load(tmp_path / "model")
    assert model.outputs([[2, 3]])["sequence_output"].shape == (1, 2, 32)
    with pytest.raises(InputError, match=r"no tokenizer.json .*outputs\(\)"):
        model.embed(["a"])


def test_a_model_says_what_it_is(tiny, variant):
    """Sizes, heads, and whether letter case counts, which may have been inferred from the vocabulary alone."""
    assert tiny.summary() == (
        f"{TINY}: 2 layers of width 32, 64 positions; parts: encoder, pooler, mlm, next_sentence; "
        "vocabulary: 128 entries, lower-case: yes"
    )
    cased = (TINY / "vocab.txt").read_text().replace("paris", "Paris").split("\n")[:128]
    model = variant(vocabulary=cased, drop=["cls."])
    (pathlib.Path(model.source) / "tokenizer_config.json").unlink()
    model = bert.load(model.source)
    assert repr(model).endswith("parts: encoder, pooler; vocabulary: 128 entries, lower-case: no>")
    model.tokenizer = None
    assert model.summary().endswith("vocabulary: none")


def test_a_model_of_parameters_in_memory(tiny):
    model = inference.from_params(tiny.config, tiny.params, tiny.tokenizer)
    assert model.fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")


def test_no_network_is_touched(monkeypatch, tmp_path):
    """Loading, filling, embedding and saving work where every connection attempt fails."""

    def refuse(*_, **__):
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    model = bert.load(TINY)
    model.fill_mask("the [MASK]")
    model.embed(["the cat"])
    bert.load(bert.save(model, tmp_path / "out"))


def test_what_is_public():
    """Exactly the names of the interface, each with a docstring."""
    names = {"BertConfig", "Encoder", "InputError", "LoadedModel", "from_params", "heads", "load", "losses", "save"}
    names |= {"merge_query_key", "split_query_key"}
    assert set(bert.__all__) == names
    for name in bert.__all__:
        assert getattr(bert, name).__doc__, name
        assert name in dir(bert)
    with pytest.raises(AttributeError, match=r"attribute 'nothing'; .*BertConfig"):
        _ = bert.nothing


@pytest.mark.parametrize(
    ("name", "parts", "pairs"),
    [
        ("tiny_seqcls", ("sequence_logits",), {"sequence_logits": "seqcls_logits"}),
        ("tiny_tokcls", ("token_logits",), {"token_logits": "tokcls_logits"}),
        ("tiny_qa", ("start_logits", "end_logits"), {"start_logits": "qa_start_logits", "end_logits": "qa_end_logits"}),
    ],
)
def test_outputs_of_other_heads(name, parts, pairs):
    """A loaded classifier, tagger or answerer gives the reference's scores within 1e-5, and names for its classes."""
    golden = TINY.parent
    model = bert.load(golden / name)
    with np.load(golden / "heads.npz") as want, np.load(golden / "pretrain.npz") as inputs:
        got = model.outputs(inputs["input_ids"], inputs["token_type_ids"], inputs["attention_mask"])
        for ours, theirs in pairs.items():
            np.testing.assert_allclose(got[ours], want[theirs], rtol=0, atol=1e-5)
    heads = {"pooled_output"} if "pooler" in model.parts else set()
    assert set(got) == {"sequence_output", *heads, *parts}
    assert model.labels == {"tiny_seqcls": ("entailment", "neutral", "contradiction"), "tiny_tokcls": tuple("BIO")}.get(
        name, ()
    )


def test_a_model_in_memory_carries_its_labels_and_settings(tmp_path):
    """What `from_params` is given is what the saved directory says."""
    found = bert.load(TINY.parent / "tiny_seqcls")
    model = inference.from_params(
        found.config, found.params, found.tokenizer, labels=("a", "b", "c"), extra={"text": "review"}
    )
    back = bert.load(bert.save(model, tmp_path / "out"))
    assert (back.labels, back.extra) == (("a", "b", "c"), {"text": "review"})
