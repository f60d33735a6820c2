"""Generation: the greedy texts of transformers, the cache against a full computation, and what is drawn."""

import json
import re

import jax
import numpy as np
import pytest

import bert
from bert.architectures.gpt import GPT2Config
from bert.errors import InputError
from bert.model import decoding
from bert.prediction.generation import GenerationSettings, continued_ids
from tests.bert.conftest import TINY

FAMILIES = ("openai_gpt", "gpt2", "bert_causal")


def continued(model, prompts, **settings):
    how = GenerationSettings(**settings)
    return continued_ids(model.on_device, model.config, prompts, how, words=model.config.vocab_size)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, shared):
    folder = shared / "golden2" / "families" / request.param
    return folder, bert.load(folder / "causal_lm")


def test_greedy_texts_are_those_of_transformers_and_of_a_full_computation(family):
    """With cache, in one batch of prompts of three lengths; without cache, token by token."""
    folder, model = family
    wanted = json.loads((folder / "summary.json").read_text())["greedy_10_new_tokens_no_eos"]
    prompts = [text["prompt"] for text in wanted]
    assert [p + c for p, c in zip(prompts, continued(model, prompts, max_new_tokens=10), strict=True)] == [
        text["output"] for text in wanted
    ]
    ids = list(prompts[1])
    for _ in range(10):
        ids.append(int(model.outputs([ids])["mlm_logits"][0, -1].argmax()))
    assert ids == wanted[1]["output"]


@pytest.fixture(scope="module")
def gpt2(shared):
    return bert.load(shared / "golden2" / "families" / "gpt2" / "causal_lm")


def test_neighbours_and_sizes_of_batches_do_not_matter(gpt2):
    """What is drawn depends on the prompt, its place in the list and the seed."""
    settings = {"max_new_tokens": 8, "temperature": 1.0, "seed": 3}
    alone = continued(gpt2, [[5, 7, 9], [11]], **settings)
    others = continued(gpt2, [[5, 7, 9], [11], *([[i, i + 1, 3, 4, 5] for i in range(12)])], **settings)
    assert others[:2] == alone
    assert continued(gpt2, [[5, 7, 9]], **settings | {"seed": 4}) != alone[:1]


def test_a_text_ends_with_the_token_that_ends_it(gpt2):
    greedy = continued(gpt2, [[283, 189, 206]], max_new_tokens=10)[0]
    ended = continued_ids(
        gpt2.on_device, gpt2.config, [[283, 189, 206], [5]], GenerationSettings(10), words=301, stop=greedy[2]
    )
    assert ended[0] == greedy[: greedy.index(greedy[2]) + 1]
    assert ended[1] == continued(gpt2, [[5]], max_new_tokens=10)[0][: len(ended[1])]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 3, 1.0), (1.0, 0, 0.7), (1.0, 4, 0.8)]
)
def test_what_is_drawn_has_the_shares_of_the_softmax(temperature, top_k, top_p):
    """20,000 draws: within 4 standard deviations of the shares, and never what top-k and top-p leave out."""
    logits = np.array([0.3, 2.0, -1.0, 1.5, 0.0, 1.5, -3.0], np.float32)
    shares = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    order = np.argsort(-shares, kind="stable")
    kept = order[: top_k or None]
    if top_p < 1:
        sums = np.cumsum(shares[kept] / shares[kept].sum())
        kept = kept[: int(np.searchsorted(sums, top_p) + 1)]
    wanted = np.zeros_like(shares)
    wanted[kept] = shares[kept] / shares[kept].sum()
    sampling = {"temperature": np.float32(temperature), "top_k": np.int32(top_k), "top_p": np.float32(top_p)}
    keys = jax.random.split(jax.random.key(0), 20_000)
    ids = jax.jit(jax.vmap(decoding.drawn, (0, None, None)))(keys, logits, sampling)
    got = np.bincount(ids, minlength=7) / len(keys)
    assert (np.abs(got - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / len(keys))).all()


def test_what_cannot_be_continued_is_refused_in_a_line(gpt2):
    for prompts, words in (
        ([[1], []], "text 1 is empty"),
        ([[1] * 60], "text 0 has 60 tokens.*70.*64 positions.*max_new_tokens"),
    ):
        with pytest.raises(InputError, match=words):
            continued(gpt2, prompts, max_new_tokens=10)
    for wrong, words in (
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": 1e-46}, "temperature is 1e-46.*or 0"),
        ({"top_k": 1 << 31, "temperature": 1}, "top_k is 2147483648"),
        ({"top_p": 0.0, "temperature": 1}, "top_p is 0"),
        ({"top_k": 5}, "top_k is 5.*temperature 0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
    ):
        with pytest.raises(InputError, match=re.escape(words).replace(r"\.\*", ".*")):
            GenerationSettings(**wrong)


def test_a_model_of_masked_words_continues_nothing_and_a_causal_one_fills_no_mask(shared):
    with pytest.raises(InputError, match=r"'mlm' model.*objective=causal"):
        bert.load(TINY).generate("the movie")
    model = bert.load(shared / "golden2" / "families" / "bert_causal" / "causal_lm")
    for refused in (model.fill_mask, model.fill, lambda text: model.pseudo_log_likelihoods([text])):
        with pytest.raises(InputError, match="causal model"):
            refused("a [MASK] text")
    with pytest.raises(InputError, match=r"'beams'.*top_k"):
        model.generate("a text", beams=3)


def test_rows_of_the_table_beyond_the_vocabulary_are_never_chosen(gpt2):
    """The most probable token of all is row 300 here."""
    params = jax.tree.map(np.array, gpt2.params)
    params["encoder"]["embeddings"]["token"]["embedding"][300] *= 50
    model = bert.from_params(gpt2.config, params, None)
    assert isinstance(model.config, GPT2Config)
    prompts = [[i] for i in range(8)]
    how = GenerationSettings(max_new_tokens=4)
    everything = continued_ids(model.on_device, model.config, prompts, how, words=301)
    assert any(300 in ids for ids in everything)
    fewer = continued_ids(model.on_device, model.config, prompts, how, words=300)
    assert not any(300 in ids for ids in fewer)
