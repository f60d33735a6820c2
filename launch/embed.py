"""Writes a vector for each text of a file, for search, clustering or as features.

bert embed --model=DIR --input=texts.txt --output=vectors.npy
bert embed --model=DIR --input=table.csv --text=title --output=vectors.parquet
bert embed --model=DIR --input=texts.txt --output=vectors.npy --pooling=mean --normalize=yes
"""

import pathlib
import time

import bert
from bert.errors import printable
from launch import flags
from tasks.files.outputs import check_other_file
from tasks.files.records import TableSettings

OPTIONS = {
    "model": "model directory or run directory",
    "input": "a .txt file with a text on each line, or a table: csv, tsv, jsonl, json, parquet, a saved data set",
    "output": "file to write: .npy, float32 [texts, width]; or .parquet, with the input's columns but the text",
    "text": "of a table: the column with the texts (text where not given)",
    "pooling": "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, several with commas, or pooler; as the "
    "model declares where not given, else mean",
    "normalize": "yes: vectors of length one; no: as they are; as the model declares where not given, else no",
    "prompt": "the name of a prompt that the model declares, to put in front of each text",
    "batch_size": "rows of tokens computed at a time (16 where not given; GPUs and TPUs are faster with more)",
    "delimiter": "of a table: between the columns",
    "columns": "of a table without a header: the names of its columns, with commas",
    "quoting": "of a table: yes, no or auto",
    "encoding": "of the file, such as latin-1",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model", "input", "output"))
    output, batch_size = pathlib.Path(options.output), options.whole_number("batch_size", 16)
    pooling, normalize = options.names("pooling"), options.yes_no_or_unset("normalize")
    # JAX is slow to import, and --help needs none.
    from bert.model.sentence_encoder import SentenceEncoder
    from bert.progress import progress, waiting
    from launch import runtime
    from tasks import text_vectors

    SentenceEncoder().changed(pooling, normalize)  # refuses what is no pooling, before anything is read
    text_vectors.check_output(output)
    check_other_file("--output", output, options.input)
    named = {name: options[name] for name in ("delimiter", "quoting", "encoding") if options[name] is not None}
    settings = TableSettings(columns=options.names("columns") or (), **named)
    runtime.start(allocator="keep", cache=runtime.user_cache(), options={})
    with waiting(f"reading {options.input}"):
        texts = text_vectors.read(options.input, options.text, settings)
    print(printable(str(texts), lines=True), flush=True)
    with waiting(f"reading {options.model}"):
        model = bert.load(options.model)
    embedder = model.embedder(pooling, normalize=normalize, prompt=options.prompt, batch_size=batch_size)
    print(printable(f"vectors of {embedder.width}: {embedder.encoder}"), flush=True)
    started = time.monotonic()
    with progress(texts.count, "text") as done:
        text_vectors.write(output, texts, embedder, done)
    rate = texts.count / (time.monotonic() - started)
    print(printable(f"wrote {output}: {texts.count:,} vectors of {embedder.width}, {rate:,.0f}/s"))


if __name__ == "__main__":
    flags.main(run)
