"""What weights of another model must have in common with the text, and what is said where they have not."""

import itertools
import json
import pathlib
import shutil

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import Store
from configs import pretrain as settings
from launch import starting_point
from launch.commands import CHECKOUT


def write_text(folder: pathlib.Path) -> str:
    (folder / "a.txt").write_text("The keeper climbed.\nThe stairs.\n\nThe keeper.\nAlone.\n")
    return str(folder / "a.txt")


@pytest.fixture
def prepared(tmp_path):
    """prepared(vocab, name) -> folder of a small text in this vocabulary."""

    def make(vocab, name="prepared"):
        return prepare(tmp_path / name, PrepareSettings(write_text(tmp_path), str(vocab), validation_share=0)).directory

    return make


def start(data, source, fresh="", pairs=True, rows="pieces"):
    config = settings.get_config("tiny")
    config.added_rows = rows
    config.data, config.init_from, config.init_fresh = str(data), str(source), fresh
    begun = starting_point.for_pretraining(config, Store.open(data, "train"), data, pairs=pairs)
    return begun.config, begun.params


def refused(*arguments, **options) -> str:
    with pytest.raises(InputError) as caught:
        start(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def google(shared, tmp_path):
    """A TensorFlow 1 checkpoint of Google's layout."""
    folder = shutil.copytree(shared / "golden" / "tf1" / "tiny_bert_tf1", tmp_path / "google")
    (folder / "bert_model_snappy.ckpt.index").unlink()  # of a second checkpoint
    return folder


def test_the_hint_for_a_checkpoint_of_googles_leads_on(google, prepared):
    """Its vocab.txt gives 100 characters a word, its folder 200: the message says so, and what it advises helps,
    for the prefix of the checkpoint's files as for its folder."""
    one = prepared(google / "vocab.txt")
    for source in (google, google / "bert_model.ckpt"):
        said = refused(one, source)
        assert f"{source}: its tokenizer is not that of {one}: max_word_chars (200, not 100); " in said
        assert said.endswith(f"prepare the text again with --config.vocab={google}")
    config, params = start(prepared(google, "again"), google)
    assert params is not None
    assert config.hidden_size == 32


def test_each_difference_is_named(google, prepared, tmp_path):
    """Another vocabulary is told by its size and the first id that differs."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nkeeper\n")
    said = refused(prepared(tmp_path / "vocab.txt"), google)
    assert "vocabulary (" in said
    assert " entries, not 7; different from id 5 on), max_word_chars (200, not 100); prepare" in said


def test_a_model_without_a_vocabulary_is_told_as_that(google, prepared):
    """Preparing again could not help: there is nothing to prepare with."""
    one = prepared(google)
    (google / "vocab.txt").unlink()
    for source in (google, google / "bert_model.ckpt"):
        said = refused(one, source)
        assert said.startswith(f"{source}: has no vocabulary")
        assert str(one) in said
        assert said.endswith(f" {google}")


@pytest.mark.parametrize(
    ("fresh", "wanted"),
    [
        ("", "has no mlm, pooler, next_sentence; start with new ones by --config.init_fresh=mlm,pooler,next_sentence,"),
        ("mlm", "has no pooler, next_sentence; start with new ones by --config.init_fresh=mlm,pooler,next_sentence,"),
        ("mlm,next_sentence", "has no pooler; start with new ones by --config.init_fresh=mlm,next_sentence,pooler,"),
    ],
)
def test_the_list_of_new_parts_is_whole(shared, prepared, fresh, wanted):
    """A classifier of tokens has no pooler: the message names all that must be asked for, and that is then enough."""
    source = shared / "golden" / "tiny_tokcls"
    one = prepared(source)
    said = refused(one, source, fresh)
    assert wanted in said
    head = start(one, source, said.partition("init_fresh=")[2].split(", ")[0])[1]["head"]
    assert set(head) == {"mlm", "pooler", "next_sentence"}
    assert set(start(one, source, "mlm", pairs=False)[1]["head"]) == {"mlm"}


def test_text_with_added_tokens_grows_the_model_it_starts_from(prepared, tmp_path, shared, capsys):
    """Only by tokens behind the model's own: a row for each, started as the settings say; another order is refused."""
    source = shared / "golden" / "tiny_bert"
    settings_ = {"corpus": write_text(tmp_path), "vocab": str(source), "validation_share": 0}
    text = prepare(tmp_path / "more", PrepareSettings(**settings_, add_tokens="[E1],keeper")).directory
    config, params = start(text, source)
    assert "2 new tokens ([E1], keeper): 128 entries become 130" in capsys.readouterr().out
    assert config.vocab_size == Store.open(text).tokenizer.vocab_size == 130
    table = bert.load(source).params["encoder"]["embeddings"]["token"]["embedding"]
    np.testing.assert_array_equal(params["encoder"]["embeddings"]["token"]["embedding"][:128], table)
    assert len(params["head"]["mlm"]["bias"]) == 130
    assert 129 in Store.open(text).shards[0].tokens  # "The keeper"
    plain = prepared(source)
    for rows, beginning in itertools.product(("mean", "pieces"), (source, "")):
        start(plain, beginning, rows=rows)
        assert ("added_rows is 'mean', which has no effect" in capsys.readouterr().out) == (rows == "mean")
    (tmp_path / "vocab.txt").write_text((source / "vocab.txt").read_text() + "keeper\n[E1]\n")
    assert "vocabulary (128 entries, not 130" in refused(prepared(tmp_path / "vocab.txt", "other"), source)


def test_an_exported_checkpoint_of_googles_prepares_text_of_its_own(google, prepared, tmp_path):
    """A setting that was not given follows the folder, so that an export's tokenizer (200) is taken as it is."""
    bert.save(bert.load(google), tmp_path / "export")
    assert json.loads((tmp_path / "export" / "tokenizer.json").read_text())["model"]["max_input_chars_per_word"] == 200
    one = prepared(tmp_path / "export")
    assert start(one, google)[1] is not None
    assert start(one, tmp_path / "export")[1] is not None


@pytest.mark.parametrize(
    ("recipe", "kind", "others"),
    [
        ("birnn", "bert", "config.model.cell, config.model.embedding_size"),
        ("birnn", "dilated", "config.model.cell, config.model.stacks"),
        ("tiny", "birnn", "config.model.attention, .* and 6 more"),
    ],
)
def test_settings_of_another_architecture_are_refused_by_name(prepared, recipe, kind, others):
    """They would have no effect; with weights to start from, too."""
    source = CHECKOUT / "tests" / "golden" / "tiny_bert"
    config, text = settings.get_config(recipe), Store.open(prepared(source), "train")
    config.model.model_type = kind
    for config.init_from in ("", str(source)):
        with pytest.raises(InputError, match=f"model_type is '{kind}'.*{others}.*recipe"):
            starting_point.for_pretraining(config, text, source, pairs=False)
