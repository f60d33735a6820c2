import pytest

from bert.store.prepare_report import PrepareReport, group_sources, remarks_on_lines
from bert.store.prepare_settings import PrepareSettings
from bert.store.tokenize_sections import LostText

SETTINGS = PrepareSettings("texts")
UNHELD = PrepareSettings("texts", validation_share=0)


def test_notices_tell_what_will_hurt():
    """One-sentence documents, a single document, no validation part, and many unknown tokens are each told."""
    report = PrepareReport(
        read=8, kept=8, one_sentence=6, sentences=26, tokens=100, unknown_tokens=2, next_held_out=0.2034
    )
    first, second, third = report.notices(SETTINGS)
    assert first == "6 of 8 documents have one sentence and are unusable for true pairs; NSP needs two"
    assert "raise validation_share to 0.204 or more" in second
    assert "2.0 % of the tokens are unknown" in third
    (only,) = PrepareReport(kept=1, tokens=9, sentences=3).notices(UNHELD)
    assert "there is one document" in only
    assert "examples.objective=sop or none" in only


def test_nothing_is_advised_that_cannot_help():
    """The only document always trains, so no share holds anything out; one sentence has no order, either."""
    one, share = PrepareReport(kept=1, one_sentence=1, tokens=9).notices(SETTINGS)[1:]
    assert one.endswith("examples.objective=none")
    assert "raise" not in share
    assert "train without validation" in share


def test_the_way_out_of_one_sentence_documents_is_named_where_there_is_one():
    """Where blank lines made the documents of several files, another rule may help; of one file it would make one
    document; where rows or docstrings did, nothing can."""
    note = {"bytes": 1, "documents": 6, "one document is": "a block between blank lines"}
    several, single = group_sources({"a.txt": note, "b.txt": note}), group_sources({"a.txt": note})
    rows = group_sources({"a.jsonl": {"bytes": 1, "documents": 6, "one document is": "a row"}})
    found = [
        PrepareReport(kept=6, one_sentence=6, tokens=9, sources=sources).notices(UNHELD)[0]
        for sources in (several, single, rows)
    ]
    assert [notice.endswith("set documents to file") for notice in found] == [True, False, False]
    assert ["blank lines" in notice for notice in found] == [True, True, False]


def test_no_notice_where_all_is_well():
    report = PrepareReport(
        kept=100, one_sentence=9, tokens=1000, unknown_tokens=10, validation_documents=1, characters=4000
    )
    assert report.notices(SETTINGS) == []


@pytest.mark.parametrize(
    ("lost", "vocab", "way_out"),
    [
        (LostText(1000, 3, 390, 390, 130), "", "set max_word_chars to 130"),
        (LostText(1000, 3, 390, 390, 5000), "", "put blanks into such words"),
        (LostText(1000, 3, 390, 390, 130), "FOLDER", "vocab.txt as vocab, and set max_word_chars to 130"),
        (LostText(1000, 30, 30, 0, 1), "", "raise vocab_size"),
        (LostText(1000, 30, 30, 0, 1), "some.txt", "set vocab to '' to learn one"),
    ],
)
def test_lost_characters_have_their_share_and_the_setting_that_cures_it(tmp_path, lost, vocab, way_out):
    """Three tokens of a thousand can be two fifths of the text."""
    report = PrepareReport(kept=9, tokens=1000)
    report.add_lost(lost)
    (notice,) = report.notices(PrepareSettings("x", vocab.replace("FOLDER", str(tmp_path)), validation_share=0))
    assert f"{lost.in_words / 10:.1f} % of the characters" in notice
    assert way_out in notice
    assert f"{lost.in_words / 10:.2f} %" in report.table()


def test_lines_that_end_inside_sentences_are_told_by_file():
    notes = {"a.txt": {"inside sentences": 0.4}, "b.txt": {"inside sentences": 0.1}, "c.jsonl": {}}
    (remark,) = remarks_on_lines(notes)
    assert "40 % of the lines of 1 file(s)" in remark
    assert "a.txt" in remark
    assert "b.txt" not in remark
    assert "set sentences to wrapped" in remark


def test_table_shows_every_count_with_its_share():
    text = PrepareReport(read=1234, tokens=2_000_000, unknown_tokens=1000).table()
    assert "1,234" in text
    assert "0.05 %" in text


def test_files_read_in_the_same_way_are_one_line():
    note = {"bytes": 5, "encoding": "utf-8", "layout": "wrapped", "one document is": "the file", "documents": 2}
    notes = {f"{name}.txt": note for name in "abcd"} | {"e.txt": note | {"encoding": "cp1252"}}
    first, second = group_sources(notes)
    assert (first["files"], first["bytes"], first["documents"]) == (4, 20, 8)
    assert first["names"] == ["a.txt", "b.txt", "c.txt"]
    assert (second["files"], second["encoding"]) == (1, "cp1252")
    assert "a.txt, b.txt, c.txt, ..." in PrepareReport(sources=[first, second]).table()


def test_a_name_makes_no_line_of_its_own():
    note = {"bytes": 5, "encoding": "utf-8", "layout": "wrapped", "one document is": "the file", "documents": 2}
    plain, odd = (
        PrepareReport(sources=group_sources({name: note})).table().splitlines() for name in ("a", "a\n\x1b[2J")
    )
    assert len(odd) == len(plain)
    assert r"a\n\x1b[2J" in odd[0]
