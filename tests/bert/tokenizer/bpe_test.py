"""BPE of GPT and GPT-2: ids, offsets and texts of the reference, folders that are written again, texts of a model."""

import json
import shutil

import pytest

import bert
from bert.errors import InputError
from bert.tokenizer.backends import load_tokenizer


@pytest.fixture(params=["openai_gpt", "gpt2"])
def folder(request, shared):
    return shared / "golden2" / "families" / request.param


def test_ids_offsets_and_texts_are_those_of_the_reference(folder, tmp_path):
    """Read from the folder, and from what was written of it."""
    wanted = json.loads((folder / "tokenization.json").read_text())
    load_tokenizer(folder).save(tmp_path)
    for tokenizer in (load_tokenizer(folder), load_tokenizer(tmp_path)):
        encodings = tokenizer.encode_batch(wanted["strings"])
        assert [e.ids for e in encodings] == [single["ids_without_special"] for single in wanted["single"]]
        assert [[list(o) for o in e.offsets] for e in encodings] == [single["offsets"] for single in wanted["single"]]
        decoded = [tokenizer.decode(e.ids, skip_special=True) for e in encodings]
        assert decoded == wanted["decoded_without_special"]
    assert load_tokenizer(folder).fingerprint == load_tokenizer(tmp_path).fingerprint


def test_letter_case_and_the_end_of_a_text_are_those_of_the_files(folder):
    tokenizer, is_gpt2 = load_tokenizer(folder), folder.name == "gpt2"
    assert tokenizer.lower_case != is_gpt2
    ids, _ = tokenizer.template.join([5, 6], [7])
    assert ids == ([5, 6, 300, 7, 300] if is_gpt2 else [5, 6, 7])
    assert tokenizer.special_ids == ((300,) if is_gpt2 else (0,))
    assert not set(tokenizer.special_ids) & set(tokenizer.replacement_ids.tolist())


def test_a_model_with_such_a_tokenizer_continues_texts_and_is_written_whole(folder, tmp_path):
    shutil.copytree(folder / "causal_lm", tmp_path / "model")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, tmp_path / "model")
    model = bert.load(tmp_path / "model")
    text = model.generate("Deep learning", max_new_tokens=5)
    assert text.startswith("Deep learning")
    for _ in range(2):  # the second time it replaces the first
        again = bert.load(bert.save(model, tmp_path / "again"))
    assert again.generate("Deep learning", max_new_tokens=5) == text
    assert again.tokenizer.fingerprint == model.tokenizer.fingerprint


def test_a_damaged_file_is_refused_in_a_line(folder, tmp_path):
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["merges"] = [["no", "entry"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"tokenizer.json: no tokenizer"):
        load_tokenizer(tmp_path)
    shutil.copy(folder / "tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": "long"}')
    with pytest.raises(InputError, match=r"model_max_length is 'long'"):
        load_tokenizer(tmp_path)
