"""Learns the vocabulary of a corpus from a part of its text, and remarks on what its rules would do to the text."""

from collections.abc import Callable, Iterator

from bert.corpus.corpus import Corpus
from bert.store.prepare_settings import PrepareSettings
from bert.store.text_hashes import fraction
from bert.tokenizer import letter_case
from bert.tokenizer.added_words import words_of
from bert.tokenizer.backends import train_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

# Called now and then with (step, bytes of text so far, of all where known).
Progress = Callable[[str, int, int | None], None]


class _VocabularyTexts:
    """About `vocab_megabytes` of the corpus, chosen evenly by a hash of each section; can be read several times."""

    def __init__(self, corpus: Corpus, settings: PrepareSettings, progress: Progress):
        self.corpus, self.settings, self.progress = corpus, settings, progress
        self.sample: list[str] = []  # of the last reading, up to letter_case.SAMPLE_CHARS
        self.stopped = False  # before the end, for packed files held far more than expected

    def __iter__(self) -> Iterator[str]:
        size = sum(source.bytes * (4 if source.path.suffix == ".gz" else 1) for source in self.corpus.sources)
        wanted = self.settings.vocab_megabytes * 1e6
        done, self.sample, text = 0, [], ""
        for section in self.corpus.sections():
            text = section.text
            if wanted < size and fraction(text.encode("utf-8", "surrogatepass"), self.settings.seed) >= wanted / size:
                continue
            if done < letter_case.SAMPLE_CHARS:
                self.sample.append(text)
            yield text
            done += len(text)
            self.progress("vocabulary", done, None)
            if done >= 2 * wanted:
                self.stopped = True
                return
        if not done:  # of equal sections all or none are chosen
            yield text


def learn_vocabulary(corpus: Corpus, settings: PrepareSettings, progress: Progress) -> tuple[Tokenizer, list[str]]:
    """A tokenizer learnt from the corpus, with the tokens to add, and remarks for the report.

    The same for the same files and settings. Raises InputError where no word is found.
    """
    remarks: list[str] = []
    texts = _VocabularyTexts(corpus, settings, progress)
    tokenizer = train_tokenizer(
        texts, vocab_size=settings.vocab_size, lower_case=settings.lower_case is not False,
        strip_accents=settings.strip_accents, max_word_chars=settings.max_word_chars,
        source=f"corpus {settings.corpus!r}",
    )  # fmt: skip
    if texts.stopped:
        remarks.append(
            f"the vocabulary was learnt from the first {2 * settings.vocab_megabytes} MB alone, for packed files "
            "hold more than four times their size; raise vocab_megabytes for more"
        )
    if merged := letter_case.merged_by_lower_case(texts.sample) if settings.lower_case is None else []:
        pairs = ", ".join(f"{first} and {second}" for first, second in merged[:3])
        remarks.append(
            f"lower-casing makes {len(merged)} frequent pairs of words equal ({pairs}); if letter case tells them "
            "apart, set lower_case to False"
        )
    by_default = settings.strip_accents is None and tokenizer.lower_case
    if by_default and (marks := letter_case.lost_marks(texts.sample)) >= letter_case.MANY_MARKS:
        remarks.append(
            f"removing accents drops {100 * marks:.0f} % of the characters, marks that belong to the words of this "
            "script; set strip_accents to False to keep them"
        )
    return tokenizer.add_words(words_of(settings.add_tokens)), remarks
