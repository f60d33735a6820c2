"""Tags of words: one for each word whatever becomes of it, decoding, entities in texts, models that others trained."""

import dataclasses
import itertools

import numpy as np
import pytest

import bert
from bert import bio_tags
from bert.errors import InputError
from bert.prediction import tagging
from bert.prediction.tagging import TaggingOptions
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.prediction.table_model import GOLDEN, tagger

TOKENIZER = load_tokenizer(GOLDEN / "tiny_tokcls")
BIO = ("O", "B", "I")
TYPED = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
SMALL = TaggingOptions(max_length=16, window_step=6)
PLACES = {"new": "B-LOC", "york": "I-LOC", "paris": "B-LOC", "john": "B-PER", "smith": "I-PER"}


@pytest.fixture(scope="module")
def tiny():
    return bert.load(GOLDEN / "tiny_tokcls")


@pytest.fixture(scope="module")
def namer():
    """Knows a few names in typed tags, by their first pieces."""
    return tagger(TYPED, PLACES, extra=SMALL.to_json())


def random_words(count: int, seed: int = 0) -> list[str]:
    """Words, dates, signs, other scripts, words of nothing that can be seen, and very long ones."""
    rng = np.random.default_rng(seed)
    odd = ["\u200b", "\u00ad", "9/7/1992", "U.S.", "--", "[SEP]", "##ing", "e\u0301", "🤗", "東京", "x" * 101, "\u00a0"]
    letters = list("abcdefghijklmnopqrstuvwxyzABC0123456789/.,-'()äßЖ")
    made = ["".join(rng.choice(letters, rng.integers(1, 9))) for _ in range(count)]
    return [str(rng.choice(odd)) if rng.random() < 0.1 else word for word in made]


# ---- every word has one tag ----


def test_ten_thousand_words_have_ten_thousand_tags():
    """Each is that of the word's first piece, found in sentences of any length by where the word stands, not by ##."""
    words = random_words(10_000)
    bounds = np.unique(np.concatenate([[0, len(words)], np.random.default_rng(1).integers(0, len(words), 200)]))
    rows = [words[a:b] for a, b in itertools.pairwise(bounds)]
    labels = ("O", *"abcdefghijklmnopqrstuvwxyz0123456789", "unknown")
    tags = {entry: entry for entry in TOKENIZER.vocab if entry in labels} | {"[UNK]": "unknown"}
    found = tagger(labels, tags, extra=SMALL.to_json()).predict(rows)
    firsts = [ids[0] if ids else TOKENIZER.unk_id for ids in TOKENIZER.encode_ids(words)]
    wanted = [tags.get(TOKENIZER.vocab[i], "O") for i in firsts]
    assert [one["tokens"] for one in found] == rows
    assert [tag for one in found for tag in one["tags"]] == wanted
    assert len(set(wanted)) > 30


def test_a_date_is_one_word_with_one_tag():
    tokenizer = WordPiece.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "on", "9", "/", "7", "1992", "."])
    sentences = tagging.windows_of([["on", "9/7/1992", "."]], tokenizer, SMALL)
    assert sentences.passages.encoded.token_ids.tolist() == [2, 5, 6, 7, 8, 7, 9, 10, 3]
    assert sentences.place_K.tolist() == [1, 2, 7]


def test_a_word_of_nothing_visible_has_its_tag_in_its_place():
    model = tagger(BIO, {"new": "B", "york": "I"})
    for word in ("\u200b", "\u00ad", "\u00a0", "\u200d\ufe0f"):
        (found,) = model.predict([["new", word, "york"]])
        assert found["tokens"] == ["new", word, "york"]
        assert found["tags"] == ["B", "O", "I"]  # greedy; the tags as they are
    (found,) = tagger(BIO, {"[UNK]": "B"}).predict([["\u200b"]])
    assert (found["tags"], found["entities"]) == (["B"], [{"type": "", "start": 0, "end": 1, "text": "\u200b"}])


@pytest.mark.parametrize("count", [1, 14, 15, 300])
def test_long_sentences_keep_their_tail(count):
    """300 words in windows of 128 tokens, and of 16: a tag each, from a window in which the word has neighbours."""
    words = [str(word) for word in np.random.default_rng(0).choice(["the", "cat", "sat", "kkk", "\u200b"], count)]
    for options in (TaggingOptions(), SMALL):
        sentences = tagging.windows_of([words, ["a"], words], TOKENIZER, options)
        place_K = sentences.place_K
        assert len(set(place_K.tolist())) == len(place_K) == 2 * count + 1
        encoded = sentences.passages.encoded
        assert encoded.length_N.max() <= options.max_length
        firsts = [(ids or [TOKENIZER.unk_id])[0] for ids in TOKENIZER.encode_ids([*words, "a", *words])]
        assert encoded.token_ids[place_K].tolist() == firsts
        found = tagger(BIO, {"cat": "B"}, extra=options.to_json()).predict([words])
        assert found[0]["tags"] == ["B" if word == "cat" else "O" for word in words]


def test_sentences_without_words_and_no_sentences():
    model = tagger(BIO, {"cat": "B"})
    assert model.predict([]) == []
    empty = {"tokens": [], "tags": [], "probabilities": [], "entities": [], "shares": []}
    assert model.predict([[], ["cat"], "", " \u200b\n"], details=True) == [
        empty, model.predict([["cat"]], details=True)[0], empty, empty,
    ]  # fmt: skip


# ---- decoding ----


def likeliest(p_TC, labels, allowed):
    """By trying all sequences."""
    choices = (one for one in itertools.product(range(len(labels)), repeat=len(p_TC)) if allowed(one))
    return max(choices, key=lambda one: np.log(p_TC[range(len(one)), one]).sum())


@pytest.mark.parametrize("labels", [BIO, TYPED])
def test_viterbi_is_the_likeliest_sequence_without_a_stray_i(labels):
    def allowed(chosen):
        tags = ["O", *(labels[i] for i in chosen)]
        return all(b[0] != "I" or (a[0] != "O" and a[1:] == b[1:]) for a, b in itertools.pairwise(tags))

    rng = np.random.default_rng(0)
    lengths = [4, 0, 1, 5, 3]
    p_KC = rng.dirichlet(np.ones(len(labels)) / 2, sum(lengths))
    starts = np.cumsum([0, *lengths])
    found = tagging.tags(p_KC, starts, labels, TaggingOptions())
    for tags, a, b in zip(found, starts, starts[1:], strict=False):
        assert tags == [labels[i] for i in likeliest(p_KC[a:b], labels, allowed)]
    greedy = tagging.tags(p_KC, starts, labels, TaggingOptions(decoding="greedy"))
    assert [tag for tags in greedy for tag in tags] == [labels[i] for i in p_KC.argmax(1)]
    assert greedy != found


def test_other_tags_are_the_likeliest_of_each_word():
    """Tags that are no B, I and O, though some look like it, know no order, and no entities."""
    for labels in (("NN", "VB", "I-N"), ("O", "B_PER", "I-PER"), ("O", "PER", "I-PER"), ("E", "S")):
        assert not bio_tags.are_bio(labels)
        p_KC = np.eye(len(labels))[[1, 0]] * 0.8 + 0.1
        (tags,) = tagging.tags(p_KC, np.array([0, 2]), labels, TaggingOptions())
        assert tags == [labels[1], labels[0]]
        assert "entities" not in tagger(labels, {}, labels[0]).predict([["cat"]])[0]
    assert all(map(bio_tags.are_bio, (BIO, TYPED, ("O",), ("O", "I-a-b"))))


def test_probabilities_are_those_of_the_tags_that_were_chosen(namer):
    """A stray I is made something else by the decoding: its probability is that of what it became."""
    (found,) = namer.predict([["york", "new", "york"]], details=True)
    assert found["tags"] == ["O", "B-LOC", "I-LOC"]
    assert found["probabilities"] == pytest.approx([0.025, 0.9, 0.9], rel=1e-5)
    for shares, tag, probability in zip(found["shares"], found["tags"], found["probabilities"], strict=True):
        assert list(shares) == list(TYPED)
        assert sum(shares.values()) == pytest.approx(1)
        assert shares[tag] == probability
    assert "shares" not in namer.predict([["york"]])[0]


# ---- texts ----


def test_entities_of_words_count_words(namer):
    words = ["in", "New", "York", "john", "smith", ",", "paris"]
    for row in (words, tuple(words), {"tokens": words, "text": "not looked at"}):
        (found,) = namer.predict([row])
        assert found["entities"] == [
            {"type": "LOC", "start": 1, "end": 3, "text": "New York"},
            {"type": "PER", "start": 3, "end": 5, "text": "john smith"},
            {"type": "LOC", "start": 6, "end": 7, "text": "paris"},
        ]


@pytest.mark.parametrize("before", ["", "\ufeff🤗 café ", "e\u0301\r\n\r\n", "東京(", "\u200b \t", "U.S. -- "])
def test_entities_of_texts_are_slices_of_them(namer, before):
    text = f"{before}New \r\n YORK's Paris; John\u00a0 Smith"
    for row in (text, {"text": text}):
        (found,) = namer.predict([row])
        assert [(one["type"], one["text"]) for one in found["entities"]] == [
            ("LOC", "New \r\n YORK"), ("LOC", "Paris"), ("PER", "John\u00a0 Smith"),
        ]  # fmt: skip
        assert all(text[one["start"] : one["end"]] == one["text"] for one in found["entities"])
        assert found["tokens"][-2:] == ["John", "Smith"]
        assert len(found["tags"]) == len(found["tokens"])


def test_words_of_texts_keep_their_accents():
    """Accents that are characters of their own are of the word before them, also where no piece holds them."""
    text = "cafe\u0301 \u0939\u093f\u0928\u094d\u0926\u0941, e\u0301\u0323"
    words = ["cafe\u0301", "\u0939\u093f\u0928\u094d\u0926\u0941", ",", "e\u0301\u0323"]
    model = tagger(BIO, {"c": "B", "e": "B"})
    (found,) = model.predict([text])
    assert found["tokens"] == words
    assert [one["text"] for one in found["entities"]] == [words[0], words[3]]
    cased = WordPiece.from_vocab(list(TOKENIZER.vocab), lower_case=False)
    (found,) = tagger(BIO, {"c": "B"}, tokenizer=cased).predict([text])
    assert found["tokens"] == words
    assert tagger(BIO, {}, tokenizer=cased).predict(["中\u0301"])[0]["tokens"] == ["中\u0301"]


# ---- rows, settings, and models that others trained ----


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a text", "rows is one text or one row; give a list of them"),
        ({"tokens": ["a"]}, "rows is one text or one row"),
        ([["a"], ["b", ""]], "row 1: word 1 is ''; it must be a text that is not empty"),
        ([["a", None]], "row 0: word 1 is None; it must be a text"),
        ([["a", 7]], "row 0: word 1 is 7; it must be a text"),
        (
            [{"words": ["a"]}],
            "row 0 is {'words': \\['a'\\]}; it must be a text, a list of words, or hold one as 'tokens'",
        ),
        ([3], "row 0 is 3; it must be a text, a list of words"),
    ],
)
def test_rows_that_are_no_words_are_refused(namer, rows, message):
    with pytest.raises(InputError, match=message):
        namer.predict(rows)


def test_settings_without_sense_are_refused():
    with pytest.raises(InputError, match=r"decoding is 'best'; .*viterbi"):
        TaggingOptions(decoding="best")
    for step in (0, 15):
        with pytest.raises(InputError, match=f"window_step is {step}; .*1 to 14"):
            TaggingOptions(max_length=16, window_step=step)
    assert TaggingOptions(max_length=16, window_step=14)


def test_the_settings_that_travel_with_a_model_decide(tiny):
    options = TaggingOptions(max_length=32, window_step=9, decoding="greedy")
    assert tagging.options_of(options.to_json(), tiny.config) == options
    model = tagger(TYPED, PLACES, extra=options.to_json())
    assert model.predict([["york"]])[0]["tags"] == ["I-LOC"]
    assert model.predict([["york"]])[0]["entities"] == [{"type": "LOC", "start": 0, "end": 1, "text": "york"}]
    model.extra = TaggingOptions().to_json()
    assert model.predict([["york"]])[0]["tags"] == ["O"]


def test_a_model_that_others_trained_reads_as_far_as_it_has_positions(tiny):
    """Its tags are taken as they are: in IOB1, which many of them know, an I begins an entity."""
    assert tiny.task == "tagging"
    assert tagging.options_of({}, tiny.config) == TaggingOptions(64, 32, "greedy")
    usual = dataclasses.replace(tiny.config, max_position_embeddings=512)
    assert tagging.options_of({}, usual) == TaggingOptions(128, 64, "greedy")
    iob1 = tagger(("O", "B-PER", "I-PER"), {"john": "I-PER", "smith": "I-PER", "mary": "B-PER"})
    (found,) = iob1.predict(["John Smith Mary sat"])
    assert [one["text"] for one in found["entities"]] == ["John Smith", "Mary"]


def test_what_a_model_was_trained_for_decides_how_its_tags_are_read():
    """A reader of passages by B, I and O is no tagger of words, though its head is the same."""
    model = tagger(("B", "I", "O"), {"cat": "B"}, extra={"bio_mrc": {}})
    assert model.task == "bio_mrc"
    assert [span["text"] for span in model.predict([("who", "the cat")])[0]["spans"]] == ["cat"]


def test_scores_are_those_of_the_model_at_the_first_pieces(tiny):
    words = ["the", "cat", "kkk", "\u200b", "sat", "on", "mats"]
    (found,) = tiny.predict([words], details=True)
    pieces = [ids or [TOKENIZER.unk_id] for ids in TOKENIZER.encode_ids(words)]
    ids = [TOKENIZER.cls_id, *itertools.chain(*pieces), TOKENIZER.sep_id]
    logits_TC = tiny.outputs([ids])["token_logits"][0]
    firsts = 1 + np.cumsum([0, *map(len, pieces)])[:-1]
    shares_TC = np.exp(logits_TC[firsts]) / np.exp(logits_TC[firsts]).sum(1, keepdims=True)
    np.testing.assert_allclose([list(one.values()) for one in found["shares"]], shares_TC, atol=1e-5)
    assert [list(one) for one in found["shares"]] == [["B", "I", "O"]] * len(words)


def test_tags_do_not_depend_on_batches_and_packing(tiny):
    """Batches of 1, 7 and 32, several sentences in a row or one, and the order of the sentences."""
    words = random_words(400, seed=3)
    bounds = [0, 1, 3, 10, 25, 25, 60, 140, 400]
    rows = [words[a:b] for a, b in itertools.pairwise(bounds)]
    first = tiny.predict(rows)
    assert [len(one["tags"]) for one in first] == np.diff(bounds).tolist()
    for size, packed in ((1, True), (7, False), (7, True), (1, False)):
        for order in (slice(None), slice(None, None, -1)):
            found = tiny.predict(rows[order], batch_size=size, packed=packed)
            for got, want in zip(found, first[order], strict=True):
                assert got["tags"] == want["tags"]
                np.testing.assert_allclose(got["probabilities"], want["probabilities"], atol=1e-5)
