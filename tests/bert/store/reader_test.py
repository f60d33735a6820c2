import json

import numpy as np
import pytest

from bert.errors import InputError
from bert.store.manifest import sealed
from bert.store.reader import Store
from bert.store.writer import StoreWriter, finish
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL, write_store

DOCUMENTS = [[[5, 6], [5]], [[6, 6, 6], [5, 5]], [[]], [[5]]]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_vocab([*SPECIAL, "a", "##a"])


@pytest.fixture(params=[3, 1000], ids=["three shards", "one shard"])
def folder(request, tmp_path, tokenizer):
    write_store(tmp_path / "store", tokenizer, {"train": DOCUMENTS}, shard_tokens=request.param)
    return tmp_path / "store"


def set_bytes(path, offset, value):
    content = bytearray(path.read_bytes())
    content[offset : offset + len(value)] = value
    path.write_bytes(bytes(content))


def test_counts_and_boundaries_of_what_was_written(folder):
    """Empty documents leave no trace; ends are counted within the shard; no document crosses shards."""
    store = Store.open(folder, verify=True)
    assert (store.num_documents, store.num_sentences, store.num_tokens) == (3, 5, 9)
    documents = []
    for shard in store.shards:
        start = 0
        for end in shard.document_ends:
            sentence_ends = [int(e) for e in shard.sentence_ends if start < e <= end]
            starts = [start, *sentence_ends[:-1]]
            documents.append([shard.tokens[s:e].tolist() for s, e in zip(starts, sentence_ends, strict=True)])
            start = int(end)
        assert start == len(shard.tokens)
    assert documents == [DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[3]]


def test_ranges_are_read_from_any_shard_in_the_order_asked(folder):
    """Positions count the tokens of the whole split; the answer does not depend on where shards end."""
    store = Store.open(folder)
    tokens = store.read([3, 8, 0, 4], [2, 1, 3, 0])
    assert tokens.dtype == np.int32
    assert tokens.tolist() == [6, 6, 5, 5, 6, 5]
    continues = store.read_continues([3, 8, 0], [2, 1, 3])
    assert continues.dtype == bool
    assert continues.tolist() == [True, True, False, False, True, False]
    assert store.read([], []).tolist() == []


def test_given_word_boundaries_replace_those_of_the_pieces(tmp_path, tokenizer):
    """Where words were given, they decide what continues a word, not the ## of the pieces."""
    flags = {"train": [[[False, False], [False]], [[False, True, True], [False, True]], [[]], [[False]]]}
    write_store(tmp_path / "store", tokenizer, {"train": DOCUMENTS}, continues=flags, shard_tokens=3)
    store = Store.open(tmp_path / "store", verify=True)
    assert store.read_continues([0, 3], [3, 5]).tolist() == [False, False, False, False, True, True, False, True]


def test_a_split_without_documents_opens_empty(folder):
    store = Store.open(folder, "validation")
    assert (store.num_documents, store.num_tokens, store.shards) == (0, 0, [])
    assert store.read([], []).tolist() == []
    with pytest.raises(InputError, match="'test'; it has train"):
        Store.open(folder, "test")


def test_the_tokenizer_travels_with_the_tokens(folder, tokenizer):
    """The folder's tokenizer is the one that made the ids; a changed one is refused."""
    assert Store.open(folder).tokenizer.fingerprint == tokenizer.fingerprint
    WordPiece.from_vocab([*SPECIAL, "a", "##a"], max_word_chars=7).save(folder)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        _ = Store.open(folder).tokenizer
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        manifest["files"][name]["bytes"] = (folder / name).stat().st_size
    (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(InputError, match="the tokenizer was changed"):
        _ = Store.open(folder).tokenizer


def test_fingerprint_follows_the_data_and_nothing_else(tmp_path, tokenizer):
    """The same tokens in another folder have the same fingerprint; one other token, boundary or rule has not."""
    other = WordPiece.from_vocab([*SPECIAL, "a", "##a"], max_word_chars=7)
    moved = [[[5], [6, 5]], *DOCUMENTS[1:]]
    changed = [[[5, 5], [5]], *DOCUMENTS[1:]]
    made = [
        (tokenizer, DOCUMENTS),
        (tokenizer, DOCUMENTS),
        (tokenizer, moved),
        (tokenizer, changed),
        (other, DOCUMENTS),
    ]
    for number, (rules, documents) in enumerate(made):
        write_store(tmp_path / str(number), rules, {"train": documents})
    first, second, *others = (Store.open(tmp_path / str(number)).fingerprint for number in range(len(made)))
    assert first == second
    assert len({first, *others}) == 4


def test_label_convention_is_recorded_and_another_is_refused(folder):
    """0 = is_next and 1 = random stand in the manifest; data with flipped labels must not be trained on."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["labels"] == {"next_sentence": {"0": "is_next", "1": "random"}}
    manifest["labels"] = {"next_sentence": {"0": "random", "1": "is_next"}}
    path.write_text(json.dumps(sealed(manifest)))
    with pytest.raises(InputError, match=r"labels .*random.* differ from"):
        Store.open(folder)


def test_an_unfinished_folder_is_never_opened(folder, tmp_path):
    """Without a manifest nothing is finished; a broken manifest or another format is named."""
    (folder / "manifest.json").rename(folder / "manifest.json.partial")
    with pytest.raises(InputError, match=r"no manifest.json"):
        Store.open(folder)
    (folder / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="format 99, this version reads 1"):
        Store.open(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest.json:1: not JSON .*again"):
        Store.open(folder)
    with pytest.raises(InputError, match="no such folder"):
        Store.open(tmp_path / "none")


def test_an_id_outside_the_vocabulary_is_named_by_record(tmp_path, tokenizer):
    """A corrupt id is found when it is read, and by the full check, with file, document, token and value."""
    write_store(tmp_path, tokenizer, {"train": DOCUMENTS}, shard_tokens=3)
    set_bytes(tmp_path / "train-00001.tokens", 4, (40).to_bytes(2, "little"))
    message = r"train-00001.tokens, document 0, token 2: id 40 is not below the vocabulary's size 7"
    store = Store.open(tmp_path)
    assert store.read([0, 3, 6, 8], [3, 2, 2, 1]).tolist() == [5, 6, 5, 6, 6, 5, 5, 5]
    with pytest.raises(InputError, match=message):
        store.read([0, 4], [3, 2])
    with pytest.raises(InputError, match="checksum differs"):
        Store.open(tmp_path, verify=True)


def test_full_check_finds_ids_even_where_the_checksum_was_made_afterwards(tmp_path, tokenizer):
    """Files written wrongly from the start are found by their ids."""
    writer = StoreWriter(tmp_path, "train", vocab_size=7, word_boundaries=False, shard_tokens=100)
    writer.add(np.array([5, 99]), np.array([2]))
    empty = StoreWriter(tmp_path, "validation", vocab_size=7, word_boundaries=False, shard_tokens=100)
    finish(tmp_path, tokenizer, {"train": writer, "validation": empty}, settings={}, report={})
    with pytest.raises(InputError, match="document 0, token 1: id 99"):
        Store.open(tmp_path, verify=True)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("documents", [7, 9], "documents, record 0: ends inside a sentence"),
        ("sentences", [2, 2, 6, 8, 9], "sentences, record 1: ends at token 2, not after the record before it"),
        ("sentences", [2, 3, 6, 8, 10], "sentences, record 5: ends at token 10 of 9"),
    ],
)
def test_impossible_boundaries_are_named_by_record(tmp_path, tokenizer, name, values, message):
    """Ends that go backwards, leave the tokens, or cut a sentence are found when the folder is opened."""
    documents = [[[5, 6], [5], [6, 6, 6], [5, 5]], [[5]]]  # sentences end at 2, 3, 6, 8, 9; documents at 8, 9
    write_store(tmp_path, tokenizer, {"train": documents})
    (tmp_path / f"train-00000.{name}").write_bytes(np.array(values, "<i8").tobytes())
    with pytest.raises(InputError, match=message):
        Store.open(tmp_path)


def test_missing_and_shortened_files_are_named(folder):
    """A file that is gone or cut short is noticed by its size, without reading it."""
    path = folder / "train-00000.tokens"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(InputError, match=r"train-00000.tokens: \d+ bytes"):
        Store.open(folder)
    path.unlink()
    with pytest.raises(InputError, match=r"train-00000.tokens: missing"):
        Store.open(folder)


def test_wide_ids_for_large_vocabularies(tmp_path):
    """Above 65,536 entries ids take four bytes and survive."""
    tokenizer = WordPiece.from_vocab([*SPECIAL, *(f"w{i}" for i in range(70_000))])
    write_store(tmp_path, tokenizer, {"train": [[[70_000, 5]]]})
    store = Store.open(tmp_path, verify=True)
    assert store.shards[0].tokens.dtype == np.uint32
    assert store.read([0], [2]).tolist() == [70_000, 5]
