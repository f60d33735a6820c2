import gzip
import json
import os

import pytest

from bert.corpus import corpus_files, installed_docs, text_files
from bert.corpus.corpus import Corpus, CorpusSettings
from bert.corpus.layout import split_sentences
from bert.errors import InputError
from bert.store.prepare_report import PrepareReport, group_sources


def read(spec, **settings):
    """(name, sentences) of each document, its sections put together."""
    found = []
    for section in Corpus(spec, CorpusSettings(**settings)).sections():
        if section.first:
            found.append((section.name, []))
        found[-1][1].extend(split_sentences(section.text, section.layout, settings.get("language", "en")))
    return found


def sentences_of(spec, **settings):
    return [sentences for _, sentences in read(str(spec), **settings)]


def test_blank_lines_separate_documents_in_googles_format(write):
    """A line is a sentence, a blank line (blanks in it or not) ends a document; names are file and line."""
    path = write("a.txt", "\n\nOne.\nTwo.\n \t\nThree.\n\n\n")
    found = read(str(path))
    assert [sentences for _, sentences in found] == [["One.", "Two."], ["Three."]]
    assert [name for name, _ in found] == [f"{path}:3", f"{path}:6"]


def test_documents_and_sentences_can_be_set(write):
    """The settings override what the text looks like."""
    path = write("a.txt", "One. Two.\n\nThree. Four.\n")
    assert sentences_of(path) == [["One.", "Two.", "Three.", "Four."]]
    assert sentences_of(path, documents="blank_lines") == [["One.", "Two."], ["Three.", "Four."]]
    assert sentences_of(path, sentences="lines") == [["One. Two."], ["Three. Four."]]
    assert sentences_of(path, sentences="lines", documents="file") == [["One. Two.", "Three. Four."]]
    assert sentences_of(write("b.txt", "One\ntwo. Three\nfour."), sentences="wrapped") == [["One two.", "Three four."]]
    with pytest.raises(InputError, match=r"documents is 'page'.* auto"):
        sentences_of(path, documents="page")


def test_short_files_of_a_folder_share_a_layout(write, tmp_path):
    """Among speeches with paragraphs on lines, one with short paragraphs is not taken for Google's format."""
    for name in "abcd":
        write(f"{name}.txt", "A first sentence. A second one.\n\nA third sentence. A fourth one.\n" * 5)
    write("e.txt", "A single sentence.\n\nAnother single sentence.\n")
    assert len(sentences_of(tmp_path)) == 5
    assert len(sentences_of(tmp_path / "e.txt")) == 2


def test_line_ends_of_all_systems_give_the_same(write):
    expected = [["One.", "Two."], ["Three."]]
    for end in ("\n", "\r\n", "\r"):
        assert sentences_of(write("a.txt", end.join(["One.", "Two.", "", "Three."]))) == expected


def test_line_end_cut_by_a_block_of_reading(write):
    """A carriage return that is the last byte of one block and a newline that is the first of the next are one."""
    text = "x" * ((1 << 20) - 1) + "\r\nend of it\r\n"
    assert sentences_of(write("a.txt", text), sentences="lines")[0][-1] == "end of it"


def test_byte_order_mark_is_taken_off(write):
    assert sentences_of(write("a.txt", b"\xef\xbb\xbfOne.\n")) == [["One."]]
    assert sentences_of(write("a.jsonl", b'\xef\xbb\xbf{"text": "One."}\n')) == [["One."]]


def test_wrong_encoding_is_told_by_file_byte_and_line_with_the_way_out(write, tmp_path):
    """Bytes that are not UTF-8 are refused at their place; all files with the fault are named at once."""
    write("a.txt", "Gr\u00fc\u00dfe.\nAus K\u00f6ln.\n".encode("latin-1"))
    write("b.txt", "fine\n")
    write("c.txt", "caf\u00e9\n".encode("latin-1"))
    message = r"a.txt, byte 2 \(line 1\): 0xFC is not UTF-8; set encoding .* 'a.txt=cp1252'; the same is true of c.txt$"
    with pytest.raises(InputError, match=message):
        sentences_of(tmp_path)
    named = sentences_of(tmp_path, encoding="[ac].txt=latin-1", sentences="lines")
    assert named == [["Gr\u00fc\u00dfe.", "Aus K\u00f6ln."], ["fine"], ["caf\u00e9"]]
    with pytest.raises(InputError, match=r"encoding 'latin-99' .* is unknown"):
        sentences_of(tmp_path, encoding="latin-99")


def test_position_of_a_wrong_byte_far_into_a_file(write):
    """Byte and line count from the beginning of the file, across blocks and characters cut by them."""
    good = ("\u00e9" * 99 + "\n").encode() * 8000
    assert len(good) > 1 << 20
    with pytest.raises(InputError, match=rf"byte {len(good) + 3} \(.*8001.*0xFF"):
        sentences_of(write("a.txt", good + b"abc\xff\n"))
    with pytest.raises(InputError, match=rf"byte {len(good)} \(.*8001.*0xC3"):
        sentences_of(write("a.txt", good + b"\xc3"))


def test_one_encoding_for_all_and_some_for_the_rest(write, tmp_path):
    """A plain name is for every file; GLOB=NAME parts come first, a plain part is for the rest."""
    write("a.txt", "caf\u00e9\n".encode("utf-16"))
    write("b.txt", "caf\u00e9\n".encode("cp1252"))
    assert sentences_of(tmp_path / "b.txt", encoding="cp1252") == [["caf\u00e9"]]
    assert sentences_of(tmp_path, encoding="a.*=utf-16,cp1252") == [["caf\u00e9"], ["caf\u00e9"]]


def test_packed_files(write, tmp_path):
    """.gz files are read as what is in them; a damaged one is named."""
    packed = gzip.compress(b"One.\nTwo.\n" * 100)
    write("a.txt.gz", packed)
    write("b.jsonl.gz", gzip.compress(b'{"text": "Three."}\n'))
    assert sentences_of(tmp_path) == [["One.", "Two."] * 100, ["Three."]]
    path = write("c.txt.gz", packed[:-20])
    with pytest.raises(InputError, match=r"c.txt.gz: damaged .gz file"):
        sentences_of(path)


def test_json_lines(write):
    """A row is a document: a text, a list of sentences, or nothing; blank lines are skipped."""
    rows = [{"text": "One. Two."}, {"text": ["One. Two.", "Three\nfour."]}, {"text": None}, {"text": "a\r\nb"}]
    path = write("a.jsonl", "\n\n".join(json.dumps(row) for row in rows))
    found = read(str(path))
    assert [sentences for _, sentences in found] == [["One.", "Two."], ["One. Two.", "Three four."], [], ["a", "b"]]
    assert [name for name, _ in found] == [f"{path}:{line}" for line in (1, 3, 5, 7)]


def test_unpaired_surrogates_of_json_are_replaced_and_counted(write):
    """One becomes U+FFFD; two that form a pair are their character."""
    path = write("a.jsonl", '{"text": "The \\ud800 cat sat. It ran."}\n{"text": "\\ud83d\\ude00 One."}\n')
    assert sentences_of(path) == [["The \ufffd cat sat.", "It ran."], ["\U0001f600 One."]]
    corpus = Corpus(str(path))
    list(corpus.sections())
    (group,) = group_sources(corpus.notes)
    assert group["half characters"] == 1
    assert "unpaired surrogates replaced by U+FFFD, texts: 1" in PrepareReport(sources=[group]).table()


@pytest.mark.parametrize("encoding", ["base64", "rot13", "hex", "undefined", "utf-9"])
def test_what_is_no_encoding_of_texts_is_refused(write, encoding):
    with pytest.raises(InputError, match=f"'{encoding}' .*unknown"):
        sentences_of(write("a.txt", "One.\n"), encoding=encoding)


@pytest.mark.parametrize(
    ("data", "what"),
    [(gzip.compress(b"One.\n"), "packed by gzip; add .gz"), (b"PK\x03\x04...", "a zip archive")],
    ids=["gzip", "zip"],  # packed bytes hold the time
)
def test_packed_files_under_another_name_are_no_text(write, data, what):
    """As latin-1 they would be read, and trained on."""
    with pytest.raises(InputError, match=rf"a\.txt: is {what}"):
        sentences_of(write("a.txt", data), encoding="latin-1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'text': 1}", "line 2: not JSON"),
        ('["x"]', "line 2: has a list, not an object"),
        ('{"body": "x", "id": 1}', r"line 2: has the columns body, id; set text_column to .* \(now 'text'\)"),
        pytest.param('{"text": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 2: not JSON", id="deep"),
        ('{"text": 5}', "2: column 'text' holds a int; a text or a list of texts is needed"),
    ],
)
def test_wrong_rows_are_told_by_line(write, line, message):
    path = write("a.jsonl", '{"text": "fine"}\n' + line + "\n")
    with pytest.raises(InputError, match=message):
        read(str(path))


def test_parquet_and_saved_data_sets(tmp_path):
    """Both are read by column, row by row; a wrong column name is answered with those there are."""
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"body": ["One. Two.", "Three."], "id": [1, 2]})
    data.to_parquet(str(tmp_path / "a.parquet"))
    data.save_to_disk(str(tmp_path / "saved"))
    datasets.DatasetDict({"train": data}).save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(str(tmp_path / "two"))
    for name in ("a.parquet", "saved", "one", "two/test"):
        assert sentences_of(tmp_path / name, text_column="body") == [["One.", "Two."], ["Three."]], name
        with pytest.raises(InputError, match=r"body, id; set text_column"):
            sentences_of(tmp_path / name)
    with pytest.raises(InputError, match="splits test, train; name one"):
        sentences_of(tmp_path / "two", text_column="body")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"a.parquet: cannot be read"):
        sentences_of(tmp_path / "a.parquet")


def test_folders_patterns_lists_and_names(write, tmp_path):
    """Folders are read with all below but what is hidden, in the order of paths; a file that is met twice once."""
    write("b/2.txt", "Two.\n")
    write("a.txt", "One.\n")
    write("b/3.text", "Three.\n")
    write("c,d.txt", "Four.\n")
    write(".hidden.txt", "Five.\n")
    write(".trash/6.txt", "Six.\n")
    assert sentences_of(tmp_path) == [["One."], ["Two."], ["Four."]]
    assert sentences_of(f"{tmp_path}/b/*") == [["Two."], ["Three."]]
    assert sentences_of(f"{tmp_path}/**/*.txt") == [["One."], ["Two."], ["Four."]]
    assert sentences_of(f"{tmp_path}/b/2.txt, {tmp_path}/**/*.txt") == [["Two."], ["One."], ["Four."]]
    assert sentences_of(tmp_path / "c,d.txt") == [["Four."]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/*.txt", "no such file, folder or match of a pattern"),
        ("empty", r"no file in this folder ends in one of \.txt, \.jsonl"),
        ("a.zip", r"\.zip files are not read; unpack it first"),
        ("a.csv", r"\.csv files are not read; convert it"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(tmp_path, write, name, message):
    (tmp_path / "empty").mkdir()
    write("a.zip", b"PK")
    write("a.csv", "x")
    with pytest.raises(InputError, match=message):
        Corpus(str(tmp_path / name))
    with pytest.raises(InputError, match="corpus is empty"):
        Corpus("")


def test_long_documents_come_in_sections_that_lose_nothing(write):
    """A document of a megabyte, with or without line ends, is read in parts whose words are those of the file."""
    words = [f"word{i}" for i in range(150_000)]
    for text in ("\n".join(words), " ".join(words), json.dumps({"text": " ".join(words)})):
        path = write("a.jsonl" if text.startswith("{") else "a.txt", text)
        sections = list(Corpus(str(path), CorpusSettings(sentences="lines")).sections())
        assert " ".join(section.text for section in sections).split() == words
        assert [section.first for section in sections] == [True] + [False] * (len(sections) - 1)
        assert len(sections) >= 5


def test_signature_follows_the_files(write, tmp_path):
    """Adding, changing or renaming a file changes the signature; reading does not."""
    write("a.txt", "One.\n")
    seen = {Corpus(str(tmp_path)).signature()}
    sentences_of(tmp_path)
    assert Corpus(str(tmp_path)).signature() in seen
    write("b.txt", "Two.\n")
    seen.add(Corpus(str(tmp_path)).signature())
    os.utime(write("b.txt", "Six.\n"), (1, 1))  # as long as before
    seen.add(Corpus(str(tmp_path)).signature())
    (tmp_path / "b.txt").rename(tmp_path / "c.txt")
    seen.add(Corpus(str(tmp_path)).signature())
    assert len(seen) == 4


def test_notes_say_how_each_file_was_read(write, tmp_path):
    write("a.txt", "caf\u00e9.\nTwo.\n\nThree.\n".encode("latin-1"))
    write("b.jsonl", '{"text": "One."}\n')
    corpus = Corpus(str(tmp_path), CorpusSettings(encoding="a.txt=latin-1"))
    list(corpus.sections())
    first, second = corpus.notes.values()
    assert (first["encoding"], first["layout"], first["documents"]) == ("iso8859-1", "sentences", 2)
    assert (second["encoding"], second["one document is"], second["documents"]) == ("utf-8", "a row", 1)


def test_installed_documentation_is_read_once(monkeypatch):
    """The second reading, for which the first is kept, gives the same; a reading that was broken off is not kept."""
    calls = []

    def documents(workers):
        calls.append(workers)
        yield from [("a:1", "One text."), ("b:1", "Another text.")]

    monkeypatch.setattr(installed_docs, "documents", documents)
    corpus = Corpus("installed-docs", workers=3)
    next(corpus.sections())
    first, second = list(corpus.sections()), list(corpus.sections())
    assert [section.text for section in first] == ["One text.", "Another text."]
    assert first == second
    assert calls == [3, 3]
    assert corpus.notes["installed-docs"]["bytes"] == len("One text.Another text.")


def test_a_pattern_names_packed_files_too_and_utf_16_is_recognised(tmp_path):
    """'*-8.txt=latin-1' is also meant for a.-8.txt.gz; a file that begins with UTF-16's mark is not called cp1252."""
    assert text_files.encoding_of(tmp_path / "a-8.txt.gz", "*-8.txt=latin-1") == "iso8859-1"
    (tmp_path / "b.txt").write_bytes("text".encode("utf-16"))
    with pytest.raises(InputError, match=r"'b\.txt=utf-16'"):
        list(text_files.read_lines(tmp_path / "b.txt", "utf-8"))


def test_lines_that_end_inside_sentences_are_noted(write, tmp_path):
    """Of a file, of short ones in a folder together, and of the rows of a table; not where lines are joined."""
    verse = "A lamp,\nA stair,\n" * 10
    write("a.txt", verse)
    write("b.txt", "One.\nTwo.\n" * 10)
    write("c.jsonl", f"{json.dumps({'text': verse})}\n" + json.dumps({"text": "One. Two."}))
    for sentences, expected in (("auto", [0.5, 0.5, 1.0]), ("wrapped", [0.0, 0.0, 0.0])):
        corpus = Corpus(str(tmp_path), CorpusSettings(sentences=sentences))
        list(corpus.sections())
        shares = [note["inside sentences"] for note in corpus.notes.values()]
        assert shares == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    "text", ["The caf\u00e9 is here.\nIt is old.\n", "\u0414\u043e\u043c \u0441\u0442\u043e\u0438\u0442.\n" * 9]
)
def test_utf_16_without_a_mark_is_refused_with_its_name(write, text):
    """Its bytes can be UTF-8 as well, or any other encoding, with zeros between the letters; so can UTF-32's."""
    for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        path = write("a.txt", text.encode(name))
        for wrong in ("", "latin-1", "utf-16", "utf-16-be" if name == "utf-16-le" else "utf-16-le"):
            with pytest.raises(InputError, match=rf"zero bytes.*'a\.txt={name}'"):
                sentences_of(path, encoding=wrong)
        right = sentences_of(path, encoding=name, sentences="lines", documents="file")
        assert right == [text.strip().split("\n")]
    for name in ("utf-16", "utf-32"):
        path = write("a.txt", text.encode(name))
        assert sentences_of(path, encoding=name, sentences="lines", documents="file") == right
    path = write("a.txt", ("\ufeff" + text).encode("utf-32-be"))
    assert sentences_of(path, encoding="utf-32", sentences="lines", documents="file") == right
    with pytest.raises(InputError, match=r"UTF-16.*'a\.txt=utf-16-le'"):
        sentences_of(write("a.txt", "\u4e2d\u56fd".encode("utf-16-le")), encoding="utf-16")
    assert sentences_of(write("a.txt", b"a\0b\0c d e.\n"), sentences="lines") == [["a\0b\0c d e."]]


def test_a_row_that_would_not_fit_into_memory_is_refused_by_line(write, monkeypatch):
    """As text the same line comes in parts; JSON must be held as a whole."""
    monkeypatch.setattr(corpus_files, "LONGEST_ROW", 1000)
    path = write("a.jsonl.gz", gzip.compress(b'{"text": "fine"}\n{"text": "' + b"long " * 300 + b'"}\n'))
    with pytest.raises(InputError, match=r"a\.jsonl\.gz, line 2: .* 1,000"):
        read(str(path))


def test_of_many_columns_some_are_named(write):
    path = write("a.jsonl", json.dumps({f"name {i}" + "x" * 200: i for i in range(3000)}))
    with pytest.raises(InputError, match=r"name 19x+\.\.\. and 2,980 more") as error:
        read(str(path))
    assert len(str(error.value)) < 3000


def test_a_name_that_is_not_utf_8_is_noted_in_letters(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(path, "wb") as handle:
        handle.write(b"One.\n")
    corpus = Corpus(str(tmp_path))
    assert [section.text for section in corpus.sections()] == ["One.\n"]
    (name,) = corpus.notes
    assert name.endswith("caf\\udce9.txt")
