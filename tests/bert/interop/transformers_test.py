"""Exports as transformers sees them: tokenizer and configuration always, outputs (slow) where torch is installed."""

import numpy as np
import pytest
import transformers  # one of our development packages; it works without torch as far as ids and settings go

import bert
from bert.interop.hugging_face import load_model_directory, save_model_directory

NEEDS_TORCH = (
    "needs torch, which is no dependency: "
    ".venv/bin/python -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
)

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
        **before, "_name_or_path": "", "transformers_version": ""
    }  # fmt: skip


def test_names_of_labels_survive(tiny_directory, tmp_path):
    tiny = load_model_directory(tiny_directory)
    labels = {"id2label": {"0": "no", "1": "yes", "2": "perhaps"}, "label2id": {"no": 0, "yes": 1, "perhaps": 2}}
    folder = save_model_directory(tmp_path / "out", tiny.config, tiny.params, tiny.tokenizer, extra=labels)
    theirs = transformers.AutoConfig.from_pretrained(folder)
    assert theirs.id2label == {0: "no", 1: "yes", 2: "perhaps"}
    assert theirs.num_labels == 3
    assert labels.items() <= load_model_directory(folder).extra.items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "class_name"),
    [
        (("pooler", "mlm", "next_sentence"), "AutoModelForPreTraining"),
        (("mlm",), "AutoModelForMaskedLM"),
        (("pooler",), "AutoModel"),
    ],
)
def test_outputs_equal_those_of_torch(tiny_directory, tmp_path, kept, class_name):
    """Our export, loaded by transformers: every weight found, and the outputs within 1e-5 on 20 texts."""
    torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
    tiny = load_model_directory(tiny_directory)
    head = {part: tiny.params["head"][part] for part in kept}
    folder = save_model_directory(
        tmp_path / "out", tiny.config, {"encoder": tiny.params["encoder"], "head": head}, tiny.tokenizer
    )
    theirs, loading = getattr(transformers, class_name).from_pretrained(folder, output_loading_info=True)
    assert {name: list(names) for name, names in loading.items() if names} == {}
    ours, tokenizer = bert.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    padded = tokenizer(TEXTS, padding=True, return_tensors="np")
    got = ours.outputs(padded["input_ids"], padded["token_type_ids"], padded["attention_mask"])
    with torch.no_grad():
        want = theirs.eval()(**{name: torch.tensor(value) for name, value in padded.items()})
    pairs = {
        "mlm_logits": want.get("prediction_logits", want.get("logits")),
        "nsp_logits": want.get("seq_relationship_logits"),
        "sequence_output": want.get("last_hidden_state"),
        "pooled_output": want.get("pooler_output"),
    }
    differences = {
        name: float(np.abs(got[name] - value.numpy()).max()) for name, value in pairs.items() if value is not None
    }
    assert differences
    assert max(differences.values()) <= 1e-5, differences
