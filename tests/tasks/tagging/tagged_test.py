"""Tagged sentences of any format: the split, and real data."""

import collections
import functools
import json

import numpy as np
import pytest

from tasks.metrics.entity_metrics import entity_scores
from tasks.tagging.tagged import split
from tests.bert.prediction.table_model import GOLDEN
from tests.tasks.one_line import message_of, says
from tests.tasks.tagging.read_tags import read, refused, sentences


def test_labelled_and_format_are_of_those_known(write):
    path = write("a.txt", "a O\n")
    assert says(refused(path, "yes"), "labelled is 'yes'")
    assert says(refused(path, format="csv"), "format is 'csv' ... columns")


def test_a_split_cuts_no_document_apart(write):
    text = "".join(f"-DOCSTART- O\n\na{n} O\n\n" + "b O\n\n" * (n % 4) for n in range(40))
    rows = read(write("a.txt", text))
    train, validation = split(rows, 0.25, seed=3)
    assert sorted(train.rows + validation.rows) == sorted(rows.rows)
    assert not {row.document for row in train.rows} & {row.document for row in validation.rows}
    assert abs(len(validation.rows) - 25) <= 2  # of 100
    for part in (train, validation):
        lines = [int(row.place.rpartition(":")[2]) for row in part.rows]
        assert lines == sorted(lines)
        report = part.report
        assert (report.read, report.kept, report.dropped) == (100, len(part.rows), {})
        assert sum(report.elsewhere.values()) == 100 - len(part.rows)
    assert split(rows, 0.25, seed=3)[1].rows == validation.rows
    assert split(rows, 0.25, seed=4)[1].rows != validation.rows
    for share in (0.001, 0.999):
        assert all(part.rows for part in split(rows, share, seed=0))
    assert says(message_of(split, rows, 1, 0), "share is 1; ... below 1")
    single = read(write("b.txt", "-DOCSTART- O\n\na O\n\nb O\n"))
    assert [len(part.rows) for part in split(single, 0.5, 0)] == [1, 1]  # its sentences
    one = read(write("c.txt", "-DOCSTART- O\n\na O\n"))
    assert says(message_of(split, one, 0.5, 0), "only one sentence")


def test_equal_sentences_and_equal_documents_stay_in_one_part(write):
    """Sentences that are no document's, and documents; on request as it was before."""
    lines = "".join(f"word{n} O\n{'X' if copy else 'x'} O\n\n" for copy in range(2) for n in range(30))
    documents = "".join(f"-DOCSTART- O\n\na{n} O\n\nsame O\n\n" for n in range(20)) * 2
    for name, text in (("a.txt", lines), ("b.txt", documents)):
        rows = read(write(name, text))
        train, validation = split(rows, 0.2, seed=1)
        seen = [{row.words for row in part.rows if row.words != ("same",)} for part in (train, validation)]
        seen = [{tuple(word.lower() for word in words) for words in part} for part in seen]
        assert seen[1]
        assert not seen[0] & seen[1]
        assert abs(len(validation.rows) - 0.2 * len(rows.rows)) <= 1
        assert any("stay in one part" in note for note in train.report.notes)
        apart = split(rows, 0.2, seed=1, equal_apart=True)
        names = np.unique([row.document for row in rows.rows])
        chosen = names[np.random.default_rng(1).permutation(len(names))[: len(names) // 5]]
        assert {row.document for row in apart[1].rows} == set(chosen)
    single = read(write("c.txt", "-DOCSTART- O\n\na O\n\nA O\n"))
    assert [len(part.rows) for part in split(single, 0.5, 0)] == [1, 1]  # all are equal


def column_file(sentences):
    """The text of a file of columns, from tags with blanks between them."""
    return "\n\n".join("\n".join(f"w{i} {tag}" for i, tag in enumerate(tags.split())) for tags in sentences)


@pytest.mark.parametrize("scheme", ["bioes", "bilou", "bmes", "bmewo"])
@pytest.mark.parametrize("named", [False, True])
def test_entities_of_other_schemes_have_the_strict_scores_of_seqeval(write, scheme, named):
    """Values of seqeval 1.2.2 (tests/golden/README.md); BMES and BMEWO are BIOES in other letters."""
    cases = json.loads((GOLDEN / "entity_schemes.json").read_text())
    case = next(case for case in cases if case["scheme"] == ("bilou" if scheme == "bilou" else "bioes"))
    letters = str.maketrans({"bmes": {"I": "M"}, "bmewo": {"I": "M", "S": "W"}}.get(scheme, {}))
    types = {"PER": "per", "LOC": "loc"}  # in small letters, which the table leaves alone
    parts = {}
    for side in ("gold", "predicted"):
        tags = [functools.reduce(lambda text, name: text.replace(name, types[name]), types, t) for t in case[side]]
        path = write(f"{side}.txt", column_file(text.translate(letters) for text in tags))
        rows = read(path, scheme=scheme.replace("wo", "s") if named else "auto")
        assert says(str(rows.report), f"({scheme.replace('wo', 's').upper()}) ... IOB2")
        assert "break" not in str(rows.report)
        parts[side] = [row.annotations[0][1] for row in rows.rows]
    for rule in ("strict", "lenient"):
        scores = entity_scores(parts["gold"], parts["predicted"], rule)
        for name in ("precision", "recall", "f1", "macro_f1"):
            assert scores[name].value == pytest.approx(case[name], abs=1e-12)


def test_words_that_break_a_scheme_are_in_the_report(write):
    path = write("a.txt", column_file(["O S-X", "B-X I-X", "E-X", "B-X E-X"]))
    rows = read(path)
    assert sentences(rows) == ["w0/O w1/B-X", "w0/B-X w1/I-X", "w0/B-X", "w0/B-X w1/I-X"]
    assert says(str(rows.report), f"2 words break the scheme BIOES (first {path}:4)")


def test_missing_tags_are_counted(write):
    path = write("a.txt", "a O\n\nb O\nc ?\nd ?\n\ne ?\n")
    assert says(str(read(path).report), f"dropped 1: no tags (first {path}:7) ... 2 words have no tag ... {path}:3")
    path = write("b.txt", "a NN\nb _\nc -\nd _\n")
    assert says(str(read(path, scheme="plain").report), f"2 tags are '_' ... empty ... {path}:1 ... 1 tags are '-'")
    assert "tags are" not in str(read(path, scheme="plain", empty="_", tags="1").report).replace("tags are '-'", "")


def test_both_schemes_of_conll_2003_are_one_data_set(shared):
    """eng.testa is the same text as valid.txt, in IOB1."""
    folder = shared / "data" / "conll2003"
    iob2, iob1 = read(folder / "valid.txt.gz"), read(folder / "eng.testa.gz")
    assert says(str(iob1.report), "the scheme is IOB1")
    assert "IOB1" not in str(iob2.report)
    assert [row[:2] for row in iob1.rows] == [row[:2] for row in iob2.rows]
    assert len(iob2.rows) == 3_250
    assert sum(len(row.words) for row in iob2.rows) == 51_362
    assert len({row.document for row in iob2.rows}) == 216
    columns = read(shared / "data" / "crowd_conll_columns" / "dev.bio.gz")
    assert [row.words for row in columns.rows] == [row.words for row in iob2.rows]


def test_the_votes_of_crowd_columns_give_the_published_majority(shared):
    folder = shared / "data" / "crowd_conll_columns" / "small"
    votes, majority, truth = (
        read(folder / name, scheme="plain") for name in ("answers.txt.gz", "mv.txt", "ground_truth.txt")
    )
    assert len(votes.rows) == 2_192
    assert {len(row.annotations) for row in votes.rows} == set(range(2, 9))
    assert len({name for row in votes.rows for name, _ in row.annotations}) == 47
    clear = total = right = 0
    for row, chosen, true in zip(votes.rows, majority.rows, truth.rows, strict=True):
        assert row.words == chosen.words == true.words
        for i, (tag, gold) in enumerate(zip(chosen.annotations[0][1], true.annotations[0][1], strict=True)):
            ranked = [*collections.Counter(tags[i] for _, tags in row.annotations).most_common(2), (None, 0)]
            total, right = total + 1, right + (tag == gold)
            if ranked[0][1] > ranked[1][1]:
                clear += 1
                assert ranked[0][0] == tag
    assert (total, clear) == (30_961, 29_980)
    assert round(right / total, 3) == 0.933  # as the data's description says
