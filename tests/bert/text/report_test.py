from bert.text.report import Report, group_sources


def test_notices_tell_what_will_hurt():
    """One-sentence documents, a single document, no validation part, and many unknown tokens are each told."""
    report = Report(read=8, kept=8, one_sentence=6, sentences=26, tokens=100, unknown_tokens=2)
    first, second, third = report.notices(0.01)
    assert first == "6 of 8 documents have one sentence and are unusable for true pairs; NSP needs two"
    assert "no document fell into the validation part" in second
    assert "2.0 % of the tokens are unknown" in third
    (only,) = Report(kept=1, tokens=9).notices(0.0)
    assert "there is one document" in only


def test_the_way_out_of_one_sentence_documents_is_named_where_there_is_one():
    """Where blank lines made the documents, another rule may help; where rows or docstrings did, it cannot."""
    blocks = group_sources({"a.txt": {"bytes": 1, "documents": 6, "one document is": "a block between blank lines"}})
    rows = group_sources({"a.jsonl": {"bytes": 1, "documents": 6, "one document is": "a row"}})
    told = [Report(kept=6, one_sentence=6, tokens=9, sources=sources).notices(0)[0] for sources in (blocks, rows)]
    assert [notice.endswith("set documents to file") for notice in told] == [True, False]


def test_no_notice_where_all_is_well():
    report = Report(kept=100, one_sentence=9, tokens=1000, unknown_tokens=10, validation_documents=1)
    assert report.notices(0.01) == []


def test_table_shows_every_count_with_its_share():
    text = Report(read=1234, tokens=2_000_000, unknown_tokens=1000).table()
    assert "1,234" in text
    assert "0.05 %" in text


def test_files_read_in_the_same_way_are_one_line():
    note = {"bytes": 5, "encoding": "utf-8", "layout": "wrapped", "one document is": "the file", "documents": 2}
    notes = {f"{name}.txt": note for name in "abcd"} | {"e.txt": note | {"encoding": "cp1252"}}
    first, second = group_sources(notes)
    assert (first["files"], first["bytes"], first["documents"], first["names"]) == (
        4,
        20,
        8,
        ["a.txt", "b.txt", "c.txt"],
    )
    assert (second["files"], second["encoding"]) == (1, "cp1252")
    assert "a.txt, b.txt, c.txt, ..." in Report(sources=[first, second]).table()


def test_a_name_makes_no_line_of_its_own():
    note = {"bytes": 5, "encoding": "utf-8", "layout": "wrapped", "one document is": "the file", "documents": 2}
    plain, odd = (Report(sources=group_sources({name: note})).table().splitlines() for name in ("a", "a\n\x1b[2J"))
    assert len(odd) == len(plain)
    assert r"a\n\x1b[2J" in odd[0]
