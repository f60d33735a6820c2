import pathlib

import pytest

import bert
from bert import hub_names
from bert.errors import InputError
from bert.tokenizer.backends import open_vocabulary

MODELS = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "google-bert/bert-base-cased": "google-bert/bert-base-cased",
    "bert-large-uncased-whole-word-masking": "google-bert/bert-large-uncased-whole-word-masking",
    "bert-base-multilingual-cased": "google-bert/bert-base-multilingual-cased",
    "bert-base-chinese": "google-bert/bert-base-chinese",
    "sentence-transformers/all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "dslim/bert-base-NER": "dslim/bert-base-NER",
    "deepset/bert-base-cased-squad2": "deepset/bert-base-cased-squad2",
    "dmis-lab/biobert-v1.1": "dmis-lab/biobert-v1.1",
    "biobert-v1.1": "OWNER/biobert-v1.1",
    "allenai/scibert_scivocab_uncased": "allenai/scibert_scivocab_uncased",
    "emilyalsentzer/Bio_ClinicalBERT": "emilyalsentzer/Bio_ClinicalBERT",
    "BAAI/bge-small-en-v1.5": "BAAI/bge-small-en-v1.5",
    "hf://google-bert/bert-base-uncased": "google-bert/bert-base-uncased",
    "https://huggingface.co/dslim/bert-base-NER/tree/main": "dslim/bert-base-NER",
    "huggingface.co/someone/thing": "someone/thing",
    "gpt2": "openai-community/gpt2",
    "openai-gpt": "openai-community/openai-gpt",
    "distilbert/distilgpt2": "distilbert/distilgpt2",
}
OTHERS = {
    "roberta-base": "RoBERTa",
    "FacebookAI/roberta-large": "RoBERTa",
    "FacebookAI/xlm-roberta-base": "XLM-RoBERTa",
    "intfloat/multilingual-e5-small": "XLM-RoBERTa",
    "distilbert-base-uncased": "DistilBERT",
    "distilbert/distilroberta-base": "RoBERTa",
    "albert-base-v2": "ALBERT",
    "microsoft/deberta-v3-base": "DeBERTa",
    "google/electra-small-discriminator": "ELECTRA",
    "answerdotai/ModernBERT-base": "ModernBERT",
    "sentence-transformers/all-mpnet-base-v2": "MPNet",
    "t5-small": "T5",
    "google/flan-t5-base": "T5",
    "EleutherAI/gpt-neo-125m": "no encoder",
    "https://huggingface.co/facebook/bart-base": "no encoder",
}
PATHS = [
    *("nowhere", "mine", "runs/bert", "./runs/mine", "/models/bert-base-uncased", "a/b/bert-base", "here/bert-base"),
    *("~/bert-base-uncased", "../bert", "bert-vocab.txt", "some/vocab.txt", "", ".", "bert base", "team/Bert/"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "team").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_names_of_the_hub_are_answered_where_a_model_is_expected(name):
    """In one line that starts with the name: how to get it, or why not to."""
    with pytest.raises(InputError, match="no such directory; ") as caught:
        bert.load(name)
    message = str(caught.value)
    assert message.startswith(f"{name}: no such directory; ")
    assert "\n" not in message
    if name in MODELS:
        assert f" hf download {MODELS[name]} --local-dir DIR, then pass DIR" in message
    else:
        assert OTHERS[name] in message
        assert "cannot be loaded" in message
        assert "download" not in message


def test_names_of_the_hub_are_answered_where_a_vocabulary_is_expected():
    with pytest.raises(InputError, match=r"^bert-base-cased: no such file; .*hf download google-bert/bert-base-cased "):
        open_vocabulary("bert-base-cased")
    with pytest.raises(InputError, match=r"^vocab\.txt: no such file"):
        open_vocabulary("vocab.txt")


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_not_taken_for_names(path):
    """A path of several folders, from a place, or into a folder that is there is a mistyped path."""
    assert hub_names.advice(path) == ""
    assert hub_names.advice(pathlib.Path(path)) == ""


def test_a_folder_of_a_models_name_is_loaded(tmp_path):
    """A folder that is there counts, whatever it is called."""
    (tmp_path / "bert-base-uncased").mkdir()
    with pytest.raises(InputError, match=r"^bert-base-uncased/.*no such file"):
        bert.load("bert-base-uncased")
