"""Settings of `prepare`, and their checks."""

import dataclasses

from bert.corpus.corpus import CorpusSettings
from bert.errors import check_choice, check_range


@dataclasses.dataclass(frozen=True)
class PrepareSettings:
    """What decides the bytes of a prepared folder, with the texts and what ``vocab`` names.

    The order of the fields is that of the manifest.
    """

    # The text: a folder, a file, a pattern ('texts/**/*.txt'), a folder saved by `datasets`, an address (s3://, gs://,
    # hf://), several of these separated by commas, or installed-docs (the documentation inside the Python packages of
    # this machine).
    corpus: str = "installed-docs"
    # The vocabulary: a vocab.txt, a folder with tokenizer.json, or '' to learn one from the text. For a second text for
    # the same model, name the first prepared folder here.
    vocab: str = ""
    vocab_size: int = 8192  # entries, if learnt; BERT has 30522 for 3,300 M words, which is too many for small text
    vocab_megabytes: int = 100  # text to learn it from, chosen evenly over the corpus; 100 MB take about a minute
    lower_case: bool | None = None  # not set: as the vocabulary suggests; yes for a learnt one
    strip_accents: bool | None = None  # not set = as lower_case (the released models)
    # Characters; longer words are [UNK]. Not set = as the folder in vocab has it (200 in one of Google's, which has
    # bert_config.json beside vocab.txt), else 100, as in transformers.
    max_word_chars: int | None = None
    # Tokens that are never split, with commas ([E1],<URL>) or @FILE with one a line; they come behind the vocabulary.
    add_tokens: str = ""
    encoding: str = ""  # '' = UTF-8; a name (latin-1); or 'GLOB=NAME,GLOB=NAME' for some of the files
    text_column: str = "text"  # column of .jsonl, .parquet and saved data sets; a text or a list of sentences
    documents: str = "auto"  # .txt: blank_lines (Google's format), file, or auto = the first if lines are sentences
    # lines (a line is a sentence), split (lines are paragraphs), wrapped (lines are broken at a width, blank lines
    # separate paragraphs), or auto = what the text looks like; the report says what that was.
    sentences: str = "auto"
    language: str = "en"  # two letters, for abbreviations when sentences are split
    word_boundaries: str = ""  # 'whitespace': blanks separate words for whole-word masking (Chinese)
    special_tokens_in_text: bool = False  # True = a literal [MASK] or [SEP] in the text is that token
    validation_share: float = 0.01  # of the documents, chosen by a hash of their text, so equal ones stay together
    deduplicate: bool = True  # drop documents, and parts of 100,000 characters of long ones, that repeat earlier ones
    seed: int = 0  # chooses the validation part
    shard_tokens: int = 1 << 26  # tokens in a file before the next one begins; 128 MiB of 2-byte ids

    def __post_init__(self) -> None:
        check_range("validation_share", self.validation_share, at_least=0, below=1)
        check_choice("word_boundaries", self.word_boundaries, ("", "whitespace"), hint=" (or empty)")
        for name in ("vocab_size", "vocab_megabytes", "max_word_chars", "shard_tokens"):
            if (value := getattr(self, name)) is not None:
                check_range(name, value, at_least=1, whole=True)

    def corpus_settings(self) -> CorpusSettings:
        return CorpusSettings(self.encoding, self.text_column, self.documents, self.sentences, self.language)
