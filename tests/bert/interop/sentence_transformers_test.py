"""Directories of sentence_transformers: embedded as they declare, written again alike, refused by name otherwise."""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

import bert
from bert.interop import sources
from bert.sentences import similarity
from tests.bert.interop.every_head import assert_same_params
from tests.bert.interop.sentence_directory import TINY, WIDTH, dense, make, write
from tests.bert.refusals import refused

TEXTS = ["the cat sat on the book", "paris", "", "who is the dog of new york ? " * 9]


@pytest.fixture(scope="module")
def tiny():
    return bert.load(TINY)


def states(model, text, longest=64):
    """Hidden states [T, D] of a text cut to so many tokens, by the model without any declaration."""
    ids = [2, *model.tokenizer.encode(text).ids[: longest - 2], 3]
    return model.outputs([ids])["sequence_output"][0]


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_the_declared_steps_are_those_of_the_formulas(tiny, tmp_path):
    """Two modes in the order of old files, two dense layers, unit length, at most 16 tokens; the report tells it."""
    first, second = dense(2 * WIDTH, 8, "activation.GELU"), dense(8, 5, "linear.Identity", bias=False, seed=1)
    pooling = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
    model = bert.load(make(tmp_path / "d", pooling, (first, second, "Normalize"), texts={"max_seq_length": 16}))
    want = []
    for text in TEXTS:
        x = states(tiny, text, 16)
        x = np.concatenate([x[0], x.mean(0)]) @ first[1]["linear.weight"].T + first[1]["linear.bias"]
        x = x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
        want.append(unit(x @ second[1]["linear.weight"].T))
    got = model.embed(TEXTS)
    close(got, np.stack(want))
    assert got.dtype == np.float32
    assert "2_Dense/linear.weight" in model.report.used
    note = next(note for note in model.report.notes if "modules.json" in note)
    assert "cls + mean, dense 64 to 8 (gelu), dense 8 to 5 (identity), made one long; of at most 16 tokens" in note
    assert "cls + mean" in model.summary()


def test_the_caller_may_choose_otherwise(tiny, tmp_path):
    """Another pooling is the states alone; the last normalisation can be left out, or added."""
    model = bert.load(make(tmp_path / "d", {"pooling_mode": "cls"}, ("Normalize",)))
    cls = np.stack([states(tiny, text)[0] for text in TEXTS])
    close(model.embed(TEXTS), unit(cls))
    close(model.embed(TEXTS, normalize=False), cls)
    close(model.embed(TEXTS, "mean"), tiny.embed(TEXTS))
    joined = tiny.embed(TEXTS, ("max", "cls"))
    close(model.embed(TEXTS, ("max", "cls"), normalize=True), unit(joined))
    close(joined[:, WIDTH:], cls)


def test_the_old_layout(tiny, tmp_path):
    """The encoder in 0_Transformer/ with its own settings; texts are lower-cased for a tokenizer that is not."""
    folder = make(tmp_path / "d", {}, encoder="0_Transformer", texts={"max_seq_length": None, "do_lower_case": True})
    write(folder / "config.json", {"__version__": "0.2.5"})  # of the package, in those days
    values = json.loads((TINY / "tokenizer_config.json").read_text())
    write(folder / "0_Transformer" / "tokenizer_config.json", values | {"do_lower_case": False, "model_max_length": 20})
    model = bert.load(folder)
    assert (model.tokenizer.lower_case, model.sentences.lower_case, model.sentences.max_length) == (False, True, 20)
    close(
        model.embed(["The CAT sat", TEXTS[3]]),
        [states(tiny, "the cat sat").mean(0), states(tiny, TEXTS[3], 20).mean(0)],
    )
    alone = bert.load(folder / "0_Transformer")
    assert alone.sentences is None
    assert any(str(folder) in note for note in alone.report.notes)
    (folder / "modules.json").unlink()
    (folder / "config.json").unlink()
    with refused(str(folder), "0_Transformer", "name that folder"):
        bert.load(folder)


def test_prompts(tiny, tmp_path):
    """Put in front by default or by name; pooled, too, or left out of the pooling with [CLS], as in the package."""
    settings = {
        "prompts": {"query": "who is ", "none": ""},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
    }
    model = bert.load(make(tmp_path / "a", settings=settings))
    text = "the cat"
    close(model.embed([text]), tiny.embed(["who is the cat"]))
    close(model.embed([text], prompt="none"), tiny.embed([text]))
    assert any("query is put in front of every text" in note for note in model.report.notes)
    with refused("'passage'", "query, none"):
        model.embed([text], prompt="passage")
    asked = bert.load(make(tmp_path / "q", settings=settings | {"default_prompt_name": None}))
    close(asked.embed([text]), tiny.embed([text]))
    corpus = tiny.embed([text, "who is the cat", "paris"])
    assert asked.search(text, corpus) == similarity.search(tiny.embed(["who is the cat"])[0], corpus, name="dot")
    close(asked.similarity(corpus, corpus), corpus @ corpus.T)
    apart = bert.load(make(tmp_path / "b", {"include_prompt": False}, settings=settings, texts={"max_seq_length": 6}))
    skipped = 1 + len(tiny.tokenizer.encode("who is ").ids)
    close(apart.embed([text]), [states(tiny, "who is the cat")[skipped:].mean(0)])
    close(apart.embed([text], "cls"), [states(tiny, "who is the cat")[skipped]])
    close(apart.embed([text], "pooler"), tiny.embed(["who is the cat"], "pooler"))  # it reads [CLS] alone
    apart = bert.load(make(tmp_path / "c", {"include_prompt": False}, settings=settings, texts={"max_seq_length": 4}))
    with refused("'who is '", "4 tokens"):
        apart.embed([text])


def test_written_again_it_declares_the_same(tmp_path):
    """Saved, saved over, loaded: equal vectors and settings; a plain model on top of it leaves no declaration."""
    prompts = {"prompts": {"query": "who is "}, "default_prompt_name": "query"}
    settings, texts = prompts | {"similarity_fn_name": "euclidean"}, {"max_seq_length": 12, "do_lower_case": True}
    for i, mode in enumerate(({"pooling_mode": ["mean", "cls"]}, {"pooling_mode_max_tokens": True})):
        layers = (dense(WIDTH * (2 - i), 6, bias=False), "Normalize")
        mode["include_prompt"] = False
        given = bert.load(make(tmp_path / f"in{i}", mode, layers, texts=texts, settings=settings))
        out = bert.save(given, bert.save(given, tmp_path / "out"))
        found = bert.load(out)
        without_arrays = [dataclasses.replace(model.sentences, dense=()) for model in (found, given)]
        assert without_arrays[0] == without_arrays[1]
        assert (found.sentences.lower_case, found.sentences.include_prompt) == (True, False)
        np.testing.assert_array_equal(found.embed(TEXTS), given.embed(TEXTS))
        assert_same_params(found.params, given.params)
    assert (out / "2_Dense" / "model.safetensors").stat().st_mode == (out / "config.json").stat().st_mode
    (out / "1_Pooling" / "notes.txt").write_text("theirs")
    with refused("1_Pooling/notes.txt", "other files"):
        bert.save(given, out)
    (out / "1_Pooling" / "notes.txt").unlink()
    (out / "modules.json").rename(tmp_path / "modules.json")
    with refused("1_Pooling/config.json", "other files"):  # it belongs to nothing here
        bert.save(given, out)
    (tmp_path / "modules.json").rename(out / "modules.json")
    plain = bert.save(bert.load(TINY), out)
    assert not (plain / "modules.json").exists()
    assert bert.load(plain).sentences is None


def test_a_fine_tuned_model_declares_nothing(tmp_path):
    """New parts for training: the declaration is not that of the model to come."""
    folder = make(tmp_path / "d", {"pooling_mode": "cls"})
    model = sources.read(folder, fresh=("token_classifier",), labels=("a", "b"))
    assert model.sentences is not None
    out = bert.save(
        bert.from_params(model.config, model.params, model.tokenizer, labels=model.labels), tmp_path / "out"
    )
    assert bert.load(out).sentences is None


def change(path, **values):
    write(path, json.loads(path.read_text()) | values)


def changed(file, **values):
    return lambda folder: change(folder / file, **values)


def module(index, **values):
    return lambda folder: write(folder / "modules.json", entries(folder, index, values))


DENSE = dense(WIDTH, 4)
NO_NUMBER = DENSE[1] | {"linear.bias": np.full(4, np.nan, np.float32)}
PACKAGE = "sentence_transformers.models."
POOLED, DENSELY, TEXT = "1_Pooling/config.json", "2_Dense/config.json", "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"
MISH = "torch.nn.modules.activation.Mish"
REFUSED = {
    "a module": (module(2, type=PACKAGE + "LSTM"), ("modules.json", "LSTM")),
    "a program of its own": (module(1, type="my.Pooling"), ("modules.json", "my.Pooling", "executed")),
    "no pooling": (module(1, type=PACKAGE + "Normalize"), ("modules.json", "no Pooling")),
    "another encoder": (module(0, type=PACKAGE + "BoW"), ("modules.json", "BoW")),
    "a folder elsewhere": (module(2, path="../other"), ("modules.json", "'../other'", "beside")),
    "a mode": (changed(POOLED, pooling_mode="median"), (POOLED, "'median'", "mean")),
    "an old mode": (changed(POOLED, pooling_mode_x=True), (POOLED, "pooling_mode_x")),
    "a width": (changed(POOLED, word_embedding_dimension=9), (POOLED, "is 9", "width of 32")),
    "a flag": (changed(POOLED, include_prompt="no"), (POOLED, "include_prompt", "'no'", "true")),
    "an activation": (changed(DENSELY, activation_function=MISH), (DENSELY, "Mish", "tanh")),
    "a residual": (changed(DENSELY, use_residual=True), (DENSELY, "use_residual", "True")),
    "tokens": (changed(DENSELY, module_input_name="token_embeddings"), (DENSELY, "module_input_name")),
    "what comes in": (changed(DENSELY, in_features=9), (DENSELY, "in_features", "is 9", "32")),
    "what comes out": (changed(DENSELY, out_features=5), ("linear.weight", "[4, 32]", "[5, 32]")),
    "nothing comes out": (lambda f: write(f / DENSELY, {"in_features": WIDTH}), (DENSELY, "out_features is None")),
    "another bias": (changed(DENSELY, bias=False), ("linear.bias", "another module")),
    "no number": (lambda f: save_file(NO_NUMBER, f / "2_Dense/model.safetensors"), ("linear.bias", "nan", "finite")),
    "no weights": (lambda folder: (folder / "2_Dense/model.safetensors").unlink(), ("2_Dense", "model.safetensors")),
    "a task": (changed(TEXT, transformer_task="fill-mask"), (TEXT, "transformer_task", "fill-mask")),
    "a length": (changed(TEXT, max_seq_length=2), (TEXT, "max_seq_length", "2", "at least 3")),
    "a similarity": (changed(SETTINGS, similarity_fn_name="maxsim"), (SETTINGS, "'maxsim'", "cosine")),
    "modalities": (changed(TEXT, modality_config=["text"]), (TEXT, "modality_config", "['text']")),
    "an output": (changed(TEXT, modality_config={"text": {"method_output_name": "pooled"}}), (TEXT, "modality_config")),
    "a prompt without a name": (
        changed(SETTINGS, default_prompt_name=["q"]),
        (SETTINGS, "['q']", "none of the prompts"),
    ),
    "a default prompt": (changed(SETTINGS, default_prompt_name="q"), (SETTINGS, "'q'", "none of the prompts")),
    "a kind of model": (changed(SETTINGS, model_type="SparseEncoder"), (SETTINGS, "'SparseEncoder'")),
    "no list": (lambda folder: write(folder / "modules.json", {}), ("modules.json", "list")),
}


def entries(folder, index, values):
    """Those of modules.json, one of them changed."""
    modules = json.loads((folder / "modules.json").read_text())
    modules[index] |= values
    return modules


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make(tmp_path_factory.mktemp("whole") / "d", {}, (DENSE,), texts={}, settings={})


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_computed_is_refused_by_name(whole, tmp_path, case):
    folder = shutil.copytree(whole, tmp_path / "d")
    spoil, words = REFUSED[case]
    spoil(folder)
    with refused(str(folder), *words):
        bert.load(folder)


def test_what_has_no_effect_is_told(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "d")
    change(folder / "sentence_bert_config.json", max_seq_length=512, sparkle=1)
    change(folder / "config_sentence_transformers.json", truncate_dim=3)
    model = bert.load(folder)
    told = "\n".join(model.report.notes)
    for words in ("512 is cut to the model's 64", "without effect: sparkle", "without effect: truncate_dim"):
        assert words in told
    assert model.sentences.max_length == 64


def test_a_cross_encoder_is_a_plain_model(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "d")
    change(folder / "config_sentence_transformers.json", model_type="CrossEncoder")
    model = bert.load(folder)
    assert model.sentences is None
    assert any("CrossEncoder" in note for note in model.report.notes)


def test_a_program_says_that_it_lacks_the_vectors(whole, tmp_path, caplog):
    bert.save(bert.load(whole), tmp_path / "out", format="stablehlo")
    assert any("dense 32 to 4" in message for message in caplog.messages)
    assert not (tmp_path / "out" / "modules.json").exists()
