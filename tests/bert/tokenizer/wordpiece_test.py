import json
import random
import unicodedata

import numpy as np
import pytest

from bert.errors import InputError
from bert.tokenizer.added_words import protected_word, words_of
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def uncased(entries):
    return WordPiece.from_vocab([entry for entry in entries if entry not in ("A", "E")], lower_case=True)


@pytest.fixture(scope="module")
def lower(entries):
    """Lower-casing over all entries, so that ids are those of the list."""
    return WordPiece.from_vocab(entries, lower_case=True)


@pytest.fixture(scope="module")
def cased(entries):
    return WordPiece.from_vocab(entries)


def is_private(text):
    return any(unicodedata.category(character) == "Co" for character in text)


def has_long_word(text):
    return any(len(word) > 100 for word in text.split())


def has_final_sigma(text):
    return "\N{GREEK CAPITAL LETTER SIGMA}" in text


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "tokenization.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=["uncased", "cased"])
def released(request, shared):
    """(kind, Tokenizer) for each of Google's two English vocabularies; letter case is found out from the entries."""
    return request.param, WordPiece.from_vocab(shared / "golden" / "vocab" / f"bert-base-{request.param}-vocab.txt")


def test_ids_are_those_of_the_original_code_except_in_three_known_cases(golden, released):
    """Differences from Google's tokenizer are exactly: words above 100 characters, private-use characters, and (where
    text is lower-cased) a capital sigma at a word's end."""
    kind, tokenizer = released
    differing, explained = set(), set()
    for row in golden["rows"]:
        text = row["text"]
        if tokenizer.encode(text).ids != row[kind]["ids"]:
            differing.add(text)
        sigma = kind == "uncased" and has_final_sigma(text) and row[kind].get("hf_fast_ids") is not None
        if is_private(text) or sigma or (has_long_word(text) and "hf_fast_ids" in row[kind]):
            explained.add(text)
    assert differing == explained
    assert len(differing) >= 7


def test_200_characters_a_word_give_the_original_answer(golden, shared):
    """With the original limit, rows with long words give Google's ids as well."""
    path = shared / "golden" / "vocab" / "bert-base-uncased-vocab.txt"
    tokenizer = WordPiece.from_vocab(path, max_word_chars=200)
    rows = [row for row in golden["rows"] if has_long_word(row["text"])]
    assert len(rows) >= 7
    for row in rows:
        assert tokenizer.encode(row["text"]).ids == row["uncased"]["ids"]


def test_ids_and_offsets_are_those_of_transformers(golden, released):
    """With special tokens read from the text, ids and offsets equal transformers' fast tokenizer on every row."""
    kind, tokenizer = released
    for row in golden["rows"]:
        found = tokenizer.encode(row["text"], special_in_text=True)
        assert found.ids == row[kind].get("hf_fast_ids", row[kind]["ids"]), row["text"]
        assert [list(span) for span in found.offsets] == row[kind]["hf_fast_offsets"], row["text"]


def test_decoding_joins_pieces_as_transformers_does(golden, shared):
    """Decoded texts equal the reference, with and without special tokens."""
    tokenizer = WordPiece.from_vocab(shared / "golden" / "vocab" / "bert-base-uncased-vocab.txt")
    ids = {entry: index for index, entry in enumerate(tokenizer.vocab)}
    for row in golden["decode_uncased"]:
        numbers = [ids[token] for token in row["tokens"]]
        assert tokenizer.decode(numbers) == row["decoded"]
        assert tokenizer.decode(numbers, skip_special=True) == row["decoded_skip_special"]


def test_mask_written_in_the_text(lower):
    """[MASK] is the mask only where that is asked for and only in upper case; else it is split as text."""
    assert lower.encode("Hello [MASK] world", special_in_text=True).ids == [5, 4, 6]
    assert lower.encode("Hello [mask] world", special_in_text=True).ids == [5, 11, 13, 12, 6]
    assert lower.encode("Hello [MASK] world").ids == [5, 11, 13, 12, 6]


def test_protected_words_stay_whole_also_after_saving(lower, tmp_path):
    """Added words are never split, the longest wins, lower-casing does not hide them, and a saved folder keeps them;
    the word "graft" is not cut out of "grafting"."""
    tokenizer = lower.add_words(map(protected_word, ["[E1]", "graft", "grafts"]))
    assert tokenizer.vocab[-3:] == ("[E1]", "graft", "grafts")
    tokenizer.save(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        pieces = [one.vocab[i] for i in one.encode("my [E1] Graft and grafts.").ids]
        assert pieces == ["[UNK]", "[E1]", "graft", "[UNK]", "grafts", "."]
        assert [one.vocab[i] for i in one.encode("grafting").ids] == ["[UNK]"]
        assert one.fingerprint == tokenizer.fingerprint


def test_protecting_a_word_of_the_vocabulary_keeps_its_id(lower):
    """A word that is there already gets no second id."""
    tokenizer = lower.add_words([protected_word("notebook")])
    assert tokenizer.vocab == lower.vocab
    assert tokenizer.encode("Notebook").ids == [25]
    assert tokenizer.add_words([protected_word("notebook")]).fingerprint == tokenizer.fingerprint


def test_a_special_token_is_not_added_and_what_was_added_is_found_out(lower):
    with pytest.raises(InputError, match=r"'\[MASK\]' is a special token"):
        lower.add_words(words_of("[E1],[MASK]"))
    more = lower.add_words([*words_of("[E1],notebook,elsewhere"), protected_word("graft")])
    assert more.extends(lower)
    assert not any((more.extends(more), lower.extends(more), lower.extends(lower)))
    assert not more.extends(WordPiece.from_vocab([*lower.vocab, "other"], lower_case=True))


def test_accents_have_a_switch_of_their_own(entries, tmp_path):
    """Lower-casing strips accents unless it is told not to, and the choice is stored with the vocabulary."""
    assert WordPiece.from_vocab(entries, lower_case=True).encode("HAC\u00cdA").ids == [49]
    keeps = WordPiece.from_vocab(entries, lower_case=True, strip_accents=False)
    assert keeps.encode("HAC\u00cdA").ids == [50]
    assert WordPiece.from_vocab(entries).encode("na\u00efve").ids == [18]
    keeps.save(tmp_path)
    assert load_tokenizer(tmp_path).encode("HAC\u00cdA").ids == [50]
    (tmp_path / "tokenizer.json").unlink()
    assert load_tokenizer(tmp_path).encode("HAC\u00cdA").ids == [50]


def test_a_cased_vocabulary_is_not_lower_cased_unasked(entries, tmp_path, caplog):
    """A folder with nothing but a vocabulary with upper-case entries is cased; asking for lower-casing warns once."""
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "Hello", "New"]), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    assert not tokenizer.lower_case
    assert tokenizer.encode("Hello").ids == [5]
    assert not caplog.records
    assert WordPiece.from_vocab(entries, lower_case=True).lower_case
    assert len(caplog.records) == 1
    assert "such as 'A', 'E'" in caplog.text


def test_marks_and_letters_without_lower_case_do_not_make_a_vocabulary_cased(shared):
    """Upper-case names in brackets, and letters that lower-casing leaves alone, do not count as upper case."""
    assert WordPiece.from_vocab([*SPECIAL, "[unused1]", "<S>", "\u211d", "a"]).lower_case
    assert WordPiece.from_vocab(shared / "golden" / "vocab" / "bert-base-uncased-vocab.txt").lower_case
    assert not WordPiece.from_vocab(shared / "golden" / "vocab" / "bert-base-cased-vocab.txt").lower_case


def test_korean_syllables_and_combining_marks(lower, cased):
    """Stripping accents decomposes syllables, cased text keeps them; offsets point to the one character in both. A
    letter with a combining accent is not the same entry as the composed letter."""
    assert lower.encode("\uac00") == ([31], [(0, 1)], [0])
    assert cased.encode("\uac00") == ([30], [(0, 1)], [0])
    assert cased.encode("a\u0301").ids == [37]
    assert cased.encode("\u00e1").ids == [38]


def test_offsets_refer_to_the_original_text(lower):
    """Offsets count code points of the text as given: accents, ideographs and line ends change nothing."""
    assert lower.encode("Na\u00efve caf\u00e9").offsets == [(0, 5), (6, 10)]
    assert lower.encode("\u4e2d\u56fdhello").offsets == [(0, 1), (1, 2), (2, 7)]
    assert lower.encode("one\nline").offsets == [(0, 3), (4, 8)]


def test_offsets_cut_any_text_into_slices_that_join_to_it(lower):
    """For 1,000 random Unicode texts, slices lie in the text, do not overlap, and with the gaps make up the text."""
    rng = random.Random(0)
    pools = [range(0x20, 0x7F), range(0xA0, 0x250), range(0x300, 0x370), range(0x4E00, 0x4F00), range(0xAC00, 0xAD00)]
    pools += [range(0x1F300, 0x1F400), range(0x2000, 0x2070), range(0, 0x20), range(0xE00, 0xE60)]
    for _ in range(1000):
        text = "".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randrange(30)))
        found = lower.encode(text)
        end = 0
        for start, stop in found.offsets:
            assert end <= start <= stop <= len(text)
            end = stop
        assert len(found.ids) == len(found.offsets) == len(found.word_ids)


def test_control_and_odd_white_space(lower):
    """Line ends separate words, zero-width and control characters vanish, wide blanks are blanks, nothing crashes."""
    assert lower.encode("note\nbook").ids == [23, 24]
    for joined in ("note\u200bbook", "note\x00book", "note\ufffdbook"):
        assert lower.encode(joined).ids == [25]
    for blank in ("hello\u00a0world", "hello\u3000world"):
        assert lower.encode(blank).ids == [5, 6]
    for empty in ("\u200b", "   ", ""):
        assert lower.encode(empty) == ([], [], [])
    assert lower.encode_batch([]) == []


def test_an_unpaired_surrogate_is_dropped(lower):
    """JSON may smuggle in code units that are no characters; they vanish and offsets still count them."""
    assert lower.encode("note\ud83dbook hello") == ([25, 5], [(0, 9), (10, 15)], [0, 1])


def test_words_of_100_and_101_characters():
    """100 characters are cut into pieces, 101 are one unknown token that covers the word; the limit can be set."""
    entries = [*SPECIAL, "a", "##a"]
    tokenizer = WordPiece.from_vocab(entries)
    assert tokenizer.encode("a" * 100).ids == [5] + [6] * 99
    assert tokenizer.encode("a" * 101) == ([1], [(0, 101)], [0])
    assert WordPiece.from_vocab(entries, max_word_chars=200).encode("a" * 101).ids == [5] + [6] * 100


def test_word_ids_follow_words_and_punctuation(lower):
    """Pieces of one word share a number, punctuation marks have their own."""
    assert lower.encode("unaffable, lush").word_ids == [0, 0, 0, 1, 2]


def test_saved_folder_is_read_equally_by_transformers(lower, cased, tmp_path):
    """AutoTokenizer gives our ids and offsets, and knows the special tokens and the longest input."""
    transformers = pytest.importorskip("transformers")
    texts = [
        "Hello [MASK] world!",
        "Na\u00efve caf\u00e9 \u4e2d\u56fd",
        "don't A E a",
        "\uac00 HAC\u00cdA x" + "a" * 101,
    ]
    for name, tokenizer in (("lower", lower), ("cased", cased)):
        tokenizer.save(tmp_path / name)
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / name)
        for text in texts:
            other = theirs(text, return_offsets_mapping=True)
            ours = tokenizer.encode(text, special_in_text=True)
            assert other["input_ids"] == [tokenizer.cls_id, *ours.ids, tokenizer.sep_id]
            assert other["offset_mapping"][1:-1] == ours.offsets
        assert (theirs.mask_token_id, theirs.pad_token_id) == (tokenizer.mask_id, tokenizer.pad_id)
        assert theirs.model_max_length == tokenizer.model_max_length


def test_folders_saved_by_transformers_are_read(lower, tmp_path):
    """The round trip through transformers keeps vocabulary and rules."""
    transformers = pytest.importorskip("transformers")
    lower.save(tmp_path / "ours")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    again = load_tokenizer(tmp_path / "theirs")
    assert again.fingerprint == lower.fingerprint
    assert again.model_max_length == lower.model_max_length


def test_another_mask_symbol(tmp_path):
    """A vocabulary with other names for its special tokens uses those, also after saving."""
    entries = ["<pad>", "[UNK]", "[CLS]", "[SEP]", "<mask>", "hello", "[MASK]"]
    names = {"mask": "<mask>", "pad": "<pad>"}
    tokenizer = WordPiece.from_vocab(entries, special_tokens=names)
    tokenizer.save(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        assert (one.mask_id, one.pad_id) == (4, 0)
        assert one.encode("hello <mask>", special_in_text=True).ids == [5, 4]
        assert 4 not in one.replacement_ids
        assert 6 in one.replacement_ids


def test_replacements_are_entries_that_stand_for_text():
    """Random replacements never draw a special token or an unused entry."""
    tokenizer = WordPiece.from_vocab([*SPECIAL, "[unused0]", "a", "##a", "[unused1]", "[x]"])
    np.testing.assert_array_equal(tokenizer.replacement_ids, [6, 7, 9])
    np.testing.assert_array_equal(np.flatnonzero(tokenizer.continues_word_V), [7])


def test_training_learns_pieces_of_the_texts():
    """A learnt vocabulary starts with the special tokens, keeps to its size and knows the words that it saw."""
    texts = ["the lazy dog sleeps", "the quick dog jumps", "dogs jump"] * 20
    tokenizer = WordPiece.train(texts, vocab_size=60)
    assert tokenizer.vocab[:5] == tuple(SPECIAL)
    assert tokenizer.vocab_size <= 60
    assert tokenizer.unk_id not in tokenizer.encode("The LAZY dog jumps").ids
    assert tokenizer.decode(tokenizer.encode("the lazy dog").ids) == "the lazy dog"


def test_training_refuses_nothing_to_learn_from():
    with pytest.raises(InputError, match="hold no word"):
        WordPiece.train(["", "  "], vocab_size=100)
    with pytest.raises(InputError, match="vocab_size 5 must be above 5"):
        WordPiece.train(["a"], vocab_size=5)


def test_fingerprint_depends_on_everything_that_decides_ids(entries):
    """Other entries, letter case, accents or word limits are another tokenizer; the longest input is not."""
    made = [
        WordPiece.from_vocab(entries),
        WordPiece.from_vocab(entries[:-1]),
        WordPiece.from_vocab(entries, strip_accents=True),
        WordPiece.from_vocab(entries, max_word_chars=200),
        WordPiece.from_vocab(entries).add_words([protected_word("book")]),
    ]
    assert len({one.fingerprint for one in made}) == len(made)
    assert WordPiece.from_vocab(entries, model_max_length=64).fingerprint == made[0].fingerprint


def test_a_learnt_vocabulary_has_no_entry_that_lower_casing_could_never_meet():
    """Texts that name special tokens, as documentation does: their upper-case letters are no entries."""
    texts = ["the [CLS] token and the [MASK] token", "pads are [PAD] and [PAD]"] * 5
    learnt = WordPiece.train(texts, vocab_size=60)
    assert not [entry for entry in learnt.vocab[5:] if entry != entry.lower()]
    assert "c" in learnt.vocab
