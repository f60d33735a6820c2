"""Questions beside their passages in windows; what is no question is named."""

import numpy as np
import pytest

from bert.data.passages import parts
from bert.errors import InputError
from bert.prediction.questions import Query, WindowSettings, fitted, queries_of, windows_of
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.wordpiece import WordPiece

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return WordPiece.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "?", *WORDS])


def settings(**changes) -> WindowSettings:
    return WindowSettings(**({"max_length": 16, "window_step": 5, "max_question": 4} | changes))


def text(count: int) -> str:
    return "  ".join(WORDS[:count])


def words_of(tokenizer, ids) -> str:
    return " ".join(tokenizer.vocab[i] for i in ids)


def test_a_window_is_the_question_and_a_part_of_the_passage(tokenizer):
    """Segment A is [CLS] question [SEP]; every window of a passage has the question."""
    cut, pieces = windows_of([Query("Who?", text(15), "a"), Query("", "", "b")], tokenizer, settings())
    rows = [words_of(tokenizer, ids) for ids in parts(cut.encoded.token_ids, cut.encoded.starts)]
    assert rows == [
        f"[CLS] who ? [SEP] {' '.join(WORDS[:11])} [SEP]",
        f"[CLS] who ? [SEP] {' '.join(WORDS[5:15])} [SEP]",
        "[CLS] [SEP] [SEP]",
    ]
    assert cut.encoded.a_length_N.tolist() == [4, 4, 2]
    assert [len(one) for one in pieces] == [15, 0]
    assert pieces[0].span_of(3, 5) == (12, 18), "characters of the passage alone"


def test_questions_on_one_passage_read_it_alike(tokenizer):
    asked = [Query("who", text(9), "a"), Query("w7 w8", text(9), "b"), Query("who", text(3), "c")]
    cut, pieces = windows_of(asked, tokenizer, settings())
    assert pieces[0] is pieces[1]
    assert [len(one) for one in pieces] == [9, 9, 3]
    assert np.diff(cut.starts).tolist() == [9, 9, 3]


def test_accents_that_the_vocabulary_lacks_stay_in_the_spans():
    """Lower-casing removes the accent of a decomposed é; it is still of the answer."""
    tokenizer = WordPiece.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe"], lower_case=True)
    _, (pieces,) = windows_of([Query("", "Cafe\u0301 !", "a")], tokenizer, settings())
    assert pieces.span_of(0, 1) == (0, 5)


def test_special_tokens_in_texts_are_text(tokenizer):
    """A question that says [SEP] does not end there."""
    cut, _ = windows_of([Query("who [SEP]", "[MASK] w1", "a")], tokenizer, settings(max_question=8))
    assert (cut.encoded.token_ids == tokenizer.sep_id).sum() == 2
    assert not (cut.encoded.token_ids == tokenizer.mask_id).any()


def test_long_questions_are_cut_with_one_warning(tokenizer, caplog):
    asked = [Query("who", text(3), "a"), Query(text(6), text(3), "q7"), Query(text(9), text(3), "q8")]
    cut, _ = windows_of(asked, tokenizer, settings())
    assert cut.encoded.a_length_N.tolist() == [3, 6, 6]
    assert caplog.messages == ["2 of 3 questions are longer than max_question, 4 tokens, and were cut (first q7)"]


def test_a_question_that_leaves_less_room_than_the_step_is_named(tokenizer):
    """16 tokens with a question of 8: room for 5; a step of 5 goes, a step of 6 would skip tokens."""
    asked = [Query("who", text(30), "questions.json: question q1"), Query(text(8), text(30), "f.json: question q2")]
    windows_of(asked, tokenizer, settings(max_question=8))
    with pytest.raises(InputError, match=r"q2.* 8 tokens .*window_step to 5$"):
        windows_of(asked, tokenizer, settings(max_question=8, window_step=6))
    windows_of(asked, tokenizer, settings(max_question=8, window_step=5))
    with pytest.raises(InputError, match=r"_question to 2 .*_step to 4"):
        windows_of(asked, tokenizer, settings(max_length=9, max_question=8))
    windows_of(asked, tokenizer, settings(max_length=9, max_question=2, window_step=4))
    with pytest.raises(InputError, match=r"raise max_length$"):
        windows_of(asked, tokenizer, settings(max_length=3, max_question=8))


@pytest.mark.parametrize("name", ["max_length", "window_step", "max_question"])
@pytest.mark.parametrize("value", [0, -1])
def test_sizes_below_one_are_refused(name, value):
    """-1 would cut the last token off each question."""
    with pytest.raises(InputError, match=f"^{name} is {value}; .*1$"):
        settings(**{name: value})


def test_rows_are_mappings_or_pairs():
    assert queries_of([{"question": "Who?", "context": "x", "id": 3}, ("When?", ""), ["a", "b"]]) == [
        Query("Who?", "x", "row 0"), Query("When?", "", "row 1"), Query("a", "b", "row 2"),
    ]  # fmt: skip
    assert queries_of([]) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("Who?", r"^rows is one text or one row; give a list of them, \[row\] for one$"),
        ({"question": "a", "context": "b"}, r"^rows is one text or one row"),
        ([("a", "b"), "Who?"], r"^row 1 is 'Who\?'; it must hold a question and a context$"),
        ([("a",)], r"^row 0 is \('a',\); it must hold a question and a context$"),
        ([7], r"^row 0 is 7; it must hold a question and a context$"),
        ([{"question": "a"}], r"^row 0: context is None; it must be a text$"),
        ([(1.5, "b")], r"^row 0: question is 1.5; it must be a text$"),
    ],
)
def test_other_rows_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        queries_of(rows)


def test_a_message_does_not_hold_a_whole_passage():
    with pytest.raises(InputError) as error:
        queries_of(["the passage alone " * 1000])
    assert len(str(error.value)) < 100


def test_a_finished_model_answers_any_question(tokenizer):
    """Settings under which a long question leaves no room are refused in training, and fitted afterwards."""
    tight = WindowSettings(max_length=64, window_step=16, max_question=62)
    assert fitted(tight, tokenizer) == WindowSettings(max_length=64, window_step=16, max_question=45)
    usual = WindowSettings()
    assert fitted(usual, tokenizer) == usual
