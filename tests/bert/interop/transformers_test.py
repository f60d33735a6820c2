"""Exports as transformers sees them: tokenizer and configuration always, outputs (slow) where torch is installed."""

import json
import re
import shutil

import numpy as np
import pytest
import transformers  # one of our development packages; it works without torch as far as ids and settings go

import bert
from bert import architectures, inference
from bert.interop import sources, warm_start
from bert.interop.added_rows import with_tokenizer
from bert.interop.export import check_replaceable, save_model_directory
from bert.interop.hugging_face import load_model_directory
from bert.model import vocabulary
from bert.model.decoders import words_before
from bert.prediction import translation
from bert.tokenizer.added_words import words_of
from tests.bert.refusals import refused
from tests.torch_package import import_torch

TEXTS = [
    "The cat sat on the mat.", "DEEP learning is fun!", "who ran in paris, france?", "", "  new\tyork\ncity ",
    "Naïve café", "中国 and 가", "play playing plays played", "[MASK] is not [SEP]", "zzz" * 40, "a", "x-y (z)",
    "john smith and mary", "bad movie, great book", "not good. awful", "where to read", "what? when! why'", "01234567",
    "the " * 20, "capital of new york",
]  # fmt: skip


@pytest.fixture(scope="module")
def exported(tiny_directory, tmp_path_factory):
    return bert.save(bert.load(tiny_directory), tmp_path_factory.mktemp("export") / "model")


@pytest.mark.parametrize("lower_case", [True, False])
def test_the_tokenizer_gives_the_same_ids(tiny_directory, tmp_path, lower_case):
    """20 texts, special tokens written in them included; letter case, accents and longest input survive."""
    tiny = load_model_directory(tiny_directory)
    tokenizer = type(tiny.tokenizer).from_vocab(tiny.tokenizer.vocab, lower_case=lower_case, model_max_length=48)
    theirs = transformers.AutoTokenizer.from_pretrained(
        save_model_directory(tmp_path / "out", tiny.config, tiny.params, tokenizer)
    )
    for text in TEXTS:
        ids = [tokenizer.cls_id, *tokenizer.encode(text, special_in_text=True).ids, tokenizer.sep_id]
        assert theirs(text)["input_ids"] == ids, text
    assert theirs.model_max_length == 48
    assert theirs.get_vocab() == {entry: i for i, entry in enumerate(tokenizer.vocab)}


def test_the_configuration_says_the_same(exported, tiny_directory):
    ours = bert.load(exported).config
    theirs = transformers.AutoConfig.from_pretrained(exported)
    assert theirs.architectures == ["BertForPreTraining"]
    for name, value in ours.to_json().items():
        assert getattr(theirs, name) == value, name
    before = transformers.AutoConfig.from_pretrained(tiny_directory).to_dict()
    assert {**theirs.to_dict(), "_name_or_path": "", "transformers_version": ""} == {
        **before, "_name_or_path": "", "transformers_version": "", "written_by": "bert-jax"
    }  # fmt: skip


def test_what_transformers_saves_again_is_not_ours_to_replace(exported, tmp_path):
    """It carries our settings along, the mark of an export among them."""
    shutil.copytree(exported, tmp_path / "tuned")
    transformers.AutoConfig.from_pretrained(tmp_path / "tuned").save_pretrained(tmp_path / "tuned")
    assert json.loads((tmp_path / "tuned" / "config.json").read_text())["written_by"] == "bert-jax"
    with refused("tuned", "export of ours"):
        check_replaceable(tmp_path / "tuned")


def test_names_of_labels_survive(tiny_directory, tmp_path):
    tiny = load_model_directory(tiny_directory)
    labels = ("no", "yes", "perhaps")
    folder = save_model_directory(tmp_path / "out", tiny.config, tiny.params, tiny.tokenizer, labels=labels)
    theirs = transformers.AutoConfig.from_pretrained(folder)
    assert theirs.id2label == {0: "no", 1: "yes", 2: "perhaps"}
    assert theirs.num_labels == 3
    assert theirs.label2id == {"no": 0, "yes": 1, "perhaps": 2}
    assert load_model_directory(folder).labels == labels


PRETRAINING = ("pooler", "mlm", "next_sentence")
# model directory, its parts that are exported, the class that loads them, our output -> theirs
HEADS = [
    ("tiny_bert", PRETRAINING, "PreTraining",
     {"mlm_logits": "prediction_logits", "nsp_logits": "seq_relationship_logits"}),
    ("tiny_bert", ("mlm",), "MaskedLM", {"mlm_logits": "logits"}),
    ("tiny_bert", ("pooler", "next_sentence"), "NextSentencePrediction", {"nsp_logits": "logits"}),
    ("tiny_bert", ("pooler",), "", {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}),
    ("tiny_seqcls", ("pooler", "sequence_classifier"), "SequenceClassification", {"sequence_logits": "logits"}),
    ("tiny_regression", ("pooler", "sequence_classifier"), "SequenceClassification", {"sequence_logits": "logits"}),
    ("tiny_tokcls", ("token_classifier",), "TokenClassification", {"token_logits": "logits"}),
    ("tiny_qa", ("span",), "QuestionAnswering", {"start_logits": "start_logits", "end_logits": "end_logits"}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("added", ["", "[E1],<URL>"])
@pytest.mark.parametrize("largest_file", [10**9, 20_000], ids=["one file", "shards"])
@pytest.mark.parametrize(
    ("base", "kept", "class_name", "names"), HEADS, ids=[f"{h[2] or 'encoder'} {h[0]}" for h in HEADS]
)
def test_outputs_equal_those_of_torch(golden, tmp_path, base, kept, class_name, names, largest_file, added):
    """Our export, loaded by transformers: every weight found, labels' names, the outputs within 1e-5 on 20 texts; also
    with added tokens."""
    torch = import_torch()
    found = load_model_directory(golden / base)
    found = with_tokenizer(found, found.tokenizer.add_words(words_of(added)), "pieces")
    params = {"encoder": found.params["encoder"], "head": {part: found.params["head"][part] for part in kept}}
    folder = save_model_directory(
        *(tmp_path / "out", found.config, params, found.tokenizer),
        **{"labels": found.labels, "extra": found.extra, "largest_file": largest_file},
    )
    loader = getattr(transformers, f"AutoModelFor{class_name}" if class_name else "AutoModel")
    theirs, loading = loader.from_pretrained(folder, output_loading_info=True)
    assert {name: list(what) for name, what in loading.items() if what} == {}
    ours, tokenizer = bert.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    if ours.labels:
        assert tuple(theirs.config.id2label.values()) == ours.labels
    padded = tokenizer([*TEXTS, "[E1] ran, <url>"], padding=True, return_tensors="np")
    got = ours.outputs(padded["input_ids"], padded["token_type_ids"], padded["attention_mask"])
    with torch.no_grad():
        want = theirs.eval()(**{name: torch.tensor(value) for name, value in padded.items()})
    for name, their_name in names.items():
        np.testing.assert_allclose(got[name], want[their_name].numpy(), rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["bert2bert", "bertshare"])
def test_an_encoder_decoder_of_a_bert_scores_and_writes_as_in_torch(golden, tmp_path, monkeypatch, variant):
    """Our export, loaded by transformers: nothing misses but a pooler that is not in use; the card's code."""
    torch = import_torch()
    made = warm_start.encoder_decoder(sources.read(golden / "tiny_bert"), warm_start.WarmStart(variant), 0)
    model = inference.LoadedModel(made._replace(extra={"translation": {}}))
    folder = bert.save(model, tmp_path / "out")
    theirs, loading = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert {name for what in loading.values() for name in what} <= {
        "encoder.pooler.dense.weight",
        "encoder.pooler.dense.bias",
    }
    pairs = [("the cat sat on the mat.", "paris"), ("who ran?", "john read a book")]
    encoded = translation.encode_pairs(model.tokenizer, *([*side] for side in zip(*pairs, strict=True)))
    batch = encoded.assembled([np.array([0]), np.array([1])], 16, 2, 1)
    encoder = {"params": model.params["encoder"]}
    module = architectures.build(model.config)
    memory = module.apply(encoder, batch, method="memory")
    states_BUD = module.apply(encoder, memory, batch, method="teacher_forced")
    table_VD, bias_V = module.apply(encoder, method="output_projection")
    got = vocabulary.logits(states_BUD, table_VD, bias_V, "float32")
    before = np.asarray(words_before(batch, model.tokenizer.cls_id))
    inputs = {"input_ids": batch["token_ids"], "attention_mask": batch["example_ids"], "decoder_input_ids": before}
    with torch.no_grad():
        want = theirs.eval()(**{name: torch.tensor(value.astype(np.int64)) for name, value in inputs.items()}).logits
    real = batch["target_example_ids"] > 0
    np.testing.assert_allclose(got[real], want.numpy()[real], rtol=0, atol=2e-5)
    (code,) = re.findall(r"```python\n(import torch.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code, {})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_smaller_files_load_in_torch(tiny_directory, tmp_path, dtype):
    """An export in 16 bits says so, and holds our weights rounded."""
    torch = import_torch()
    folder = bert.save(bert.load(tiny_directory), tmp_path / "out", dtype=dtype)
    theirs = transformers.AutoModelForPreTraining.from_pretrained(folder)
    assert theirs.dtype == getattr(torch, dtype)
    table = bert.load(tiny_directory).params["encoder"]["embeddings"]["token"]["embedding"]
    got = theirs.bert.embeddings.word_embeddings.weight.detach().float().numpy()
    np.testing.assert_array_equal(got, torch.tensor(table).to(getattr(torch, dtype)).float().numpy())
