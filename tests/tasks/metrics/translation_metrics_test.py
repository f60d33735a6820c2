"""Scores of translations: letter case, lengths of sources, and the comparison of two systems."""

import numpy as np
import pytest

from bert.errors import InputError
from tasks.metrics import translation_metrics
from tasks.metrics.translation_metrics import by_length, compared, scores

pytest.importorskip("sacrebleu", reason="needs the package sacrebleu")
REFERENCES = [
    "Zwei junge weiße Männer sind im Freien .", "Mehrere Männer bedienen ein Hebelsystem .", "Ein Hund läuft .",
]  # fmt: skip


def test_bleu_lower_is_bleu_of_lower_case():
    """As published numbers have it; the cased one is lower, and each says its case."""
    texts = [text.lower() for text in REFERENCES]
    found = scores(texts, REFERENCES)
    assert found["bleu_lower"].value == pytest.approx(100)
    assert found["bleu"].value < 90
    assert "case:lc" in found["bleu_lower"].reason
    assert "case:mixed" in found["bleu"].reason
    texts = ["zwei weiße Männer sind im Freien .", "mehrere bedienen ein System .", "ein Hund ."]
    lowered = scores([text.lower() for text in texts], [text.lower() for text in REFERENCES])
    assert scores(texts, REFERENCES)["bleu_lower"].value == pytest.approx(lowered["bleu"].value)


def test_each_pair_is_in_the_row_of_its_length():
    """Sources of 8, 9, 12, 13, 16, 17 and 40 words; BLEU and nats of a row are those of its pairs alone."""
    lengths = [8, 9, 12, 13, 16, 17, 40]
    sources = ["word " * length for length in lengths]
    references = [REFERENCES[i % 3] for i in range(7)]
    texts = [references[0], "Ein Hund läuft nicht .", *references[2:5], "nichts .", references[6]]
    rows = by_length(sources, texts, references, np.arange(7.0), np.full(7, 2))
    assert [(row.words, row.pairs) for row in rows] == [("1-8", 1), ("9-12", 2), ("13-16", 2), ("17+", 2)]
    assert [row.nll for row in rows] == [0, (1 + 2) / 4, (3 + 4) / 4, (5 + 6) / 4]
    assert [row.bleu for row in rows] == [scores(texts[i:j], references[i:j])["bleu"].value
                                          for i, j in ((0, 1), (1, 3), (3, 5), (5, 7))]  # fmt: skip
    assert by_length(sources[:1], texts[:1], references[:1], np.ones(1), np.ones(1))[3] == ("17+", 0, None, None)


def test_tokenized_texts_are_said_once(caplog):
    texts = [f"text {i} ends here ." for i in range(120)]
    scores(texts, texts)
    assert sum("forgot" in record.getMessage() for record in caplog.records) == 1
    caplog.clear()
    by_length(texts, texts, texts, np.ones(120), np.ones(120))
    compared(texts, texts, texts)
    assert not any("forgot" in record.getMessage() for record in caplog.records)


def test_two_systems_are_compared():
    """BLEU is that of all pairs, inside its interval; a much better system has a small p, an equal one 1."""
    rng, references = np.random.default_rng(0), REFERENCES * 40
    worse = [" ".join(rng.permutation(text.split())) for text in references]
    found = compared(references, worse, references)
    assert found.model.value == pytest.approx(100)
    assert found.other.value == pytest.approx(scores(worse, references)["bleu"].value)
    assert abs(found.other.value - found.other.mean) < found.other.half_width
    assert found.p < 0.01
    assert "bs:1000" in found.signature
    assert compared(references, worse, references) == found
    same = compared(worse, worse, references)
    assert same.model == same.other
    assert same.p == 1


def test_without_the_package_the_rows_have_no_bleu(monkeypatch):
    monkeypatch.setattr(translation_metrics, "is_installed", lambda: False)
    rows = by_length(["a b"], ["c"], ["c"], np.ones(1), np.ones(1))
    assert (rows[0].pairs, rows[0].bleu, rows[0].nll) == (1, None, 1.0)


def test_exact_is_the_share_of_equal_texts_blanks_apart(monkeypatch):
    texts, references = (
        ["a red circle", " a  blue square", "A cat", ""],
        ["a red circle", "a blue square ", "a cat", "a"],
    )
    assert translation_metrics.scores(texts, references)["exact"].value == 0.5
    monkeypatch.setattr(translation_metrics, "is_installed", lambda: False)
    without = translation_metrics.scores(texts, references)
    assert without["exact"].value == 0.5
    assert without["bleu"].value is None
    assert translation_metrics.of_texts(["nll", "exact"])
    translation_metrics.check_installed(["exact"], "config.metrics")
    with pytest.raises(InputError, match=r"config.metrics names chrf.*install"):
        translation_metrics.check_installed(["exact", "chrf"], "config.metrics")
