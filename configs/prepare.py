"""Settings of `python -m launch.prepare`: which text, which vocabulary, how it is cut into sentences and documents."""

from ml_collections import ConfigDict, config_dict


def get_config() -> ConfigDict:
    config = ConfigDict()

    # The text: a folder, a file, a pattern ('texts/**/*.txt'), a folder saved by `datasets`, several of these separated
    # by commas, or installed-docs (the documentation inside the Python packages of this machine).
    config.corpus = "installed-docs"
    config.encoding = ""  # '' = UTF-8; a name (latin-1); or 'GLOB=NAME,GLOB=NAME' for some of the files
    config.text_column = "text"  # column of .jsonl, .parquet and saved data sets; a text or a list of sentences
    config.documents = "auto"  # .txt: blank_lines (Google's format), file, or auto = the first if lines are sentences
    # lines (a line is a sentence), split (lines are paragraphs), wrapped (lines are broken at a width, blank lines
    # separate paragraphs), or auto = what the text looks like; the report says what that was.
    config.sentences = "auto"
    config.language = "en"  # two letters, for abbreviations when sentences are split
    config.word_boundaries = ""  # 'whitespace' = blanks in the text bound words for whole-word masking (Chinese)
    config.special_tokens_in_text = False  # True = a literal [MASK] or [SEP] in the text is that token

    # The vocabulary: a vocab.txt, a folder with tokenizer.json, or '' to learn one from the text.
    # Learning twice gives vocabularies that differ in a few entries (the trainer breaks ties in the order of a hash
    # table), and so other ids: to prepare the same bytes again, or a second text for the same model, name the first
    # prepared folder here.
    config.vocab = ""
    config.vocab_size = 8192  # entries, if learnt; BERT has 30522 for 3,300 M words, which is too many for small text
    config.vocab_megabytes = 100  # text to learn it from, chosen evenly over the corpus; 100 MB take about a minute
    config.lower_case = config_dict.placeholder(bool)  # not set = as the vocabulary looks; yes for a learnt one
    config.strip_accents = config_dict.placeholder(bool)  # not set = as lower_case (the released models)
    # Characters; longer words are [UNK]. Not set = as the folder in vocab has it (200 in one of Google's, which has
    # bert_config.json beside vocab.txt), else 100, as in transformers.
    config.max_word_chars = config_dict.placeholder(int)

    config.validation_share = 0.01  # of the documents, chosen by a hash of their text, so equal ones stay together
    config.deduplicate = True  # drop documents, and parts of 100,000 characters of long ones, that were there before
    config.seed = 0  # chooses the validation part
    config.shard_tokens = 1 << 26  # tokens in a file before the next one begins; 128 MiB of 2-byte ids
    config.workers = 0  # processes; 0 = one for each core. The result is the same for any number
    config.overwrite = False  # replace a folder that was prepared with other settings or texts
    return config
