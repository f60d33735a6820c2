"""Sentence-Transformers itself: its directories embedded as it embeds, and ours in it (slow; needs PyTorch)."""

import numpy as np
import pytest

import bert
from tests.bert.interop.sentence_directory import TINY, WIDTH, random_texts

NEEDED = "needs Sentence-Transformers and torch, which are no dependencies: python -m bench.environments"
TEXTS = [*random_texts(60), "", "cat " * 100]
ALL = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
CASES = [
    *((mode, length, False) for mode in ALL for length in (False, True)),
    (("mean", "max"), True, True),
    (ALL, False, True),
]


@pytest.fixture(scope="module")
def package():
    pytest.importorskip("torch", reason=NEEDED)
    return pytest.importorskip("sentence_transformers", reason=NEEDED)


def declared(package, pooling, normalize, dense, **settings):
    """A model of the package: the tiny BERT, at most 20 tokens of a text."""
    import torch
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(0)
    width = WIDTH * (1 if isinstance(pooling, str) else len(pooling))
    modules = [Transformer(str(TINY), max_seq_length=20), Pooling(WIDTH, pooling, settings.pop("include_prompt", True))]
    modules += [Dense(width, 12), Dense(12, 7, bias=False, activation_function=torch.nn.GELU())] if dense else []
    modules += [Normalize()] if normalize else []
    return package.SentenceTransformer(modules=modules, device="cpu", **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("pooling", "normalize", "dense"), CASES, ids=str)
def test_vectors_equal_those_of_the_package(package, tmp_path, pooling, normalize, dense):
    """Its directory here, and ours there, and similarities; longer texts are cut at the declared length."""
    theirs = declared(package, pooling, normalize, dense)
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    want = theirs.encode(TEXTS)
    ours = bert.load(tmp_path / "theirs")
    assert ours.sentences.max_length == 20
    np.testing.assert_allclose(ours.embed(TEXTS), want, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.similarity(want, want[:5]), theirs.similarity(want, want[:5]), rtol=0, atol=1e-5)
    back = package.SentenceTransformer(str(bert.save(ours, tmp_path / "ours")), device="cpu")
    assert back.max_seq_length == 20
    np.testing.assert_allclose(back.encode(TEXTS), want, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompts_are_those_of_the_package(package, tmp_path, include_prompt):
    """The default prompt and the one of queries, pooled and not."""
    settings = {"prompts": {"query": "who is ", "other": "the cat "}, "default_prompt_name": "other"}
    theirs = declared(package, ALL, True, False, include_prompt=include_prompt, **settings)
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    ours = bert.load(bert.save(bert.load(tmp_path / "theirs"), tmp_path / "ours"))
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.embed(TEXTS, prompt="query"), theirs.encode_query(TEXTS), rtol=0, atol=1e-5)
    corpus = ours.embed(TEXTS)
    found = ours.search("the cat", corpus, 3)
    assert found[0][0] == int(theirs.similarity(theirs.encode_query("the cat"), corpus).argmax())
