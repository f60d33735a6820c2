"""Files of sentences and their translations: what is read, kept, dropped and refused, and what a split keeps apart."""

import functools
import json

import numpy as np
import pytest

from tasks.translation.pairs import FILE_SETTINGS, fitting, key_of, others, read_pairs, split
from tests.tasks.one_line import message_of, says

EN, DE = "A man.\nTwo dogs\n\nA man.\n", "Ein Mann.\nZwei Hunde \n\nEin Mann.\n"


def texts(pairs) -> list[tuple]:
    return [(row.source, row.target) for row in pairs.rows]


def test_two_files_and_tables_are_the_same_pairs(write):
    both = f"{write('a.en', EN)},{write('a.de', DE)}"
    pairs = read_pairs(both, FILE_SETTINGS)
    assert texts(pairs) == [("A man.", "Ein Mann."), ("Two dogs", "Zwei Hunde"), ("A man.", "Ein Mann.")]
    assert pairs.report.dropped == {"no text on both sides": (1, f"{both.split(',')[0]}:3")}
    table = write("a.tsv", "en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in texts(pairs)))
    assert texts(read_pairs(table, FILE_SETTINGS)) == texts(pairs)
    rows = [{"id": i, "de": b, "en": a} for i, (a, b) in enumerate(texts(pairs))]
    lines = write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert texts(read_pairs(lines, FILE_SETTINGS | {"text": "en,de"})) == texts(pairs)


def test_sources_alone_are_read_line_by_line(write):
    """An empty line is a text, for its translation has its place."""
    assert texts(read_pairs(write("new.en", EN), FILE_SETTINGS, labelled=False))[1:3] == [
        ("Two dogs", None),
        ("", None),
    ]
    assert len(read_pairs(write("dos.en", EN.replace("\n", "\r\n")), FILE_SETTINGS, labelled=False).rows) == 4
    table = write("new.csv", "en\nA man.\n")
    assert texts(read_pairs(table, FILE_SETTINGS, labelled=False)) == [("A man.", None)]


def test_another_system_s_translations_are_found_by_line(write):
    """A line for each row of the file, also for one that was dropped."""
    pairs = read_pairs(f"{write('a.en', EN)},{write('a.de', DE)}", FILE_SETTINGS)
    assert others(write("other.txt", "eins\nzwei\n\nvier\n"), pairs, "utf-8") == ["eins", "zwei", "vier"]
    short = write("short.txt", "eins\nzwei\n")
    assert says(message_of(others, short, pairs, "utf-8"), "short.txt: 2 lines, but ... has 4; line i")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (EN, "Ein Mann.\n", "a.en: 4 lines ... a.de has 1; line i"),
        (EN, DE.replace("Zwei Hunde ", " "), "a.en:2: a sentence here, but none in ... a.de; write it"),
        (EN.replace("A man.", "", 1), DE, "a.en:1: a sentence in ... a.de, but none here"),
        ("\n", "\n", "a.de: no pair of sentences"),
        (EN.replace("Two dogs", "Two\rdogs"), DE, "a.en:2: ... carriage return ... blank"),
        (EN, DE.replace("\n", "\r"), "a.de:1: ... carriage return ... LF"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(write, source, target, message):
    assert says(message_of(read_pairs, f"{write('a.en', source)},{write('a.de', target)}", FILE_SETTINGS), message)


def test_a_file_without_translations_is_refused(write):
    assert says(message_of(read_pairs, write("a.en", EN), FILE_SETTINGS), "a.en: one text file ... SOURCE,TARGET")
    assert says(message_of(read_pairs, write("a.csv", "en\nA man.\n"), FILE_SETTINGS), "text must name two ... 'en'")
    missing = f"{write('b.en', EN)},nowhere.de"
    assert says(message_of(read_pairs, missing, FILE_SETTINGS), "nowhere.de: no such file")
    numbers = write("n.jsonl", '{"en": "A man.", "de": 3}\n')
    assert says(message_of(read_pairs, numbers, FILE_SETTINGS), "n.jsonl:1: de: 3 must be a text")


def test_what_is_no_pair_of_files_or_columns_is_refused(write, tmp_path):
    """Also where only sources are read, and of another system's translations."""
    en, de = write("a.en", EN), write("a.de", DE)
    assert says(message_of(read_pairs, f"{en},{de},{de}", FILE_SETTINGS), "3 files ... two")
    for both in (f"{tmp_path},{de}", f"{en},{tmp_path}"):
        assert says(message_of(read_pairs, both, FILE_SETTINGS), f"{tmp_path}: is a folder")
    assert says(message_of(others, str(tmp_path), read_pairs(f"{en},{de}", FILE_SETTINGS), "utf-8"), "is a folder")
    sources = functools.partial(read_pairs, labelled=False)
    assert says(message_of(sources, f"{en},nowhere.de", FILE_SETTINGS), "nowhere.de: no such file")
    table = write("t.csv", "id,en,de\n1,A man.,Ein Mann.\n")
    assert says(message_of(read_pairs, table, FILE_SETTINGS | {"text": "en,en"}), "two of the columns 'id', 'en', 'de'")


@pytest.mark.parametrize("labelled", [True, False])
def test_numbers_are_no_texts_unless_somebody_says_so(write, labelled):
    table = write("t.csv", "id,en,de\n1,A man.,Ein Mann.\n2,Two.,Zwei.\n")
    read = functools.partial(read_pairs, labelled=labelled)
    assert says(message_of(read, table, FILE_SETTINGS), "t.csv: 'id' holds numbers ... text ... 'id', 'en', 'de'")
    assert read(table, FILE_SETTINGS | {"text": "id,en"}).rows[1].source == "2"


@pytest.mark.parametrize("name", ["b.csv", "b.jsonl", "b.tsv.gz", "b.parquet"])
def test_a_table_is_no_half_of_a_pair(write, name):
    en, other = write("a.en", EN), write(name, DE)
    for both in (f"{en},{other}", f"{other},{en}"):
        assert says(message_of(read_pairs, both, FILE_SETTINGS), f"{name}: a table ... alone")


def test_the_report_names_columns_that_nobody_chose_and_counts_empty_texts(write):
    table = write("t.csv", "id,en,de\n1,A man.,Ein Mann.\n2,,\n")
    unnamed = read_pairs(write("u.csv", "en,de,id\nA man.,Ein Mann.,1\n"), FILE_SETTINGS)
    assert says(unnamed.report.notes[-1], "u.csv: columns read: 'en', 'de'; text")
    chosen = read_pairs(table, FILE_SETTINGS | {"text": "en,de"}, labelled=False).report.notes
    assert len(chosen) == 1
    assert "rows without a text: 1 (first" in chosen[0]
    assert "t.csv:3)" in chosen[0]


def test_equal_sources_are_in_one_part(write):
    lines = "".join(f"sentence {i % 20}\n" for i in range(60))
    pairs = read_pairs(f"{write('a.en', lines)},{write('a.de', lines.replace('sentence', 'Satz'))}", FILE_SETTINGS)
    train, held = split(pairs, 0.2, 0)
    assert (len(train.rows), len(held.rows)) == (48, 12)
    assert not set(map(key_of, train.rows)) & set(map(key_of, held.rows))
    assert split(pairs, 0.2, 0)[1].rows == held.rows != split(pairs, 0.2, 1)[1].rows


def test_equal_sources_alone_leave_no_validation(write):
    en, de = write("a.en", "the same\nthe same\n"), write("a.de", "eins\nzwei\n")
    pairs = read_pairs(f"{en},{de}", FILE_SETTINGS)
    assert says(message_of(split, pairs, 0.5, 0), "2 rows with 1 different ... 0.5; ... validation")


def test_pairs_without_room_are_counted(write):
    pairs = read_pairs(f"{write('a.en', EN)},{write('a.de', DE)}", FILE_SETTINGS)
    fit = fitting(pairs, np.array([3, 9, 4]), 8)
    assert (fit.kept, fit.left_out, fit.first) == ([0, 2], 1, pairs.rows[1].place)
    assert says(message_of(fitting, pairs, np.array([9, 9, 9]), 8), "a.en:1: 9 tokens ... max_length, 8")
