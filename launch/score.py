"""Scores a pretrained model on text: masked words, and next sentences where the model has a head for them.

bert score --model=runs/mine --data='texts/new/*.txt'
bert score --model=DIR --data=texts/new --out=scores.json --seed=1
bert score --model=DIR --data=new.txt --per_sentence=sentences.jsonl

The text is read as by bert prepare, and masked as in pretraining: with the settings of a run directory, else those of
the BERT paper. --per_sentence also masks each token of a sentence in turn (pseudo-log-likelihood, Salazar et al. 2020),
which takes a run of the model for each token.
"""

import json
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert.errors import InputError, printable
from launch import console, flags
from tasks.files.outputs import check_other_file, json_lines, write_whole

if TYPE_CHECKING:
    from bert.data.settings import BatchSettings
    from bert.inference import LoadedModel

OPTIONS = {
    "model": "model directory or run directory, with a head for masked words",
    "data": "text: a folder, files or patterns, as config.corpus of bert prepare",
    "out": "JSON file to write: the scores, and how the text was masked",
    "per_sentence": "JSON lines to write: place, text, tokens and pseudo-log-likelihood of each sentence",
    "seed": "of the masks (where not given, that of the run, or 0)",
    "max_length": "tokens of a row (where not given, that of the run, or 128)",
    "batch_size": "rows computed at a time (32 where not given)",
}
_OF_TEXT = {
    "text_column": "of tables: the column with the text",
    "encoding": "of the text: a name, such as latin-1, or by pattern",
    "documents": "in .txt: blank_lines, file or auto",
    "word_boundaries": "whitespace where blanks bound the words of a run with whole_words (Chinese)",
    "sentences": "in .txt: lines, split, wrapped or auto",
    "language": "two letters, for abbreviations where sentences are split",
}
OPTIONS |= _OF_TEXT
_OF_MASKS = ("objective", "mask_rate", "mask_share", "random_share", "whole_words", "max_length", "seed")


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model", "data"))
    batch_size = options.whole_number("batch_size", 32)
    named = {
        name: options.whole_number(name, 0, least=least)
        for name, least in (("seed", 0), ("max_length", 8))
        if options[name] is not None
    }
    # JAX is slow to import, and --help needs none.
    import bert
    from bert import text_scores
    from bert.corpus import corpus_files
    from bert.progress import progress, waiting
    from bert.store.prepare_settings import PrepareSettings
    from launch import runtime

    outputs = {name: options[name] for name in ("out", "per_sentence") if options[name]}
    if len({os.path.realpath(path) for path in outputs.values()}) < len(outputs):
        raise InputError(f"--per_sentence={options.per_sentence}: is also the file of --out; choose another name")
    for source in corpus_files.find_sources(options.data):
        for name, path in outputs.items():
            check_other_file(f"--{name}", path, str(source.path))
    of_text = {name: options[name] for name in _OF_TEXT if options[name] is not None}
    text = PrepareSettings(corpus=options.data, validation_share=0.0, deduplicate=False, **of_text)
    runtime.keep_programs(runtime.user_cache())
    stream = console.beside(*outputs.values())
    with waiting(f"reading {options.model}"):
        model = bert.load(options.model)
    model.need("mlm", "name a pretrained model, or its run")
    if options.per_sentence:
        model.refuse_causal("no token can be masked in it: leave out --per_sentence")
    settings = batch_settings(model, options.model, batch_size, named)
    scores, report = text_scores.masked_scores(model, text, settings)
    masks = {name: getattr(settings, name) for name in _OF_MASKS}
    print(f"{report}\nmasked words ({', '.join(f'{name} {value}' for name, value in masks.items())}):", file=stream)
    print(_table(scores), file=stream)
    values: dict[str, Any] = {"model": model.source, "data": options.data, "masks": masks, "scores": scores}
    if options.per_sentence:
        with waiting(f"reading {options.data}"):
            sentences = list(text_scores.sentences_of(text))
        with progress(len(sentences), "sentence") as done:
            scored = text_scores.score_sentences(model, sentences, batch_size, done)
        write_whole(pathlib.Path(options.per_sentence), json_lines(scored))
        values["pseudo"] = text_scores.summary(scored)
        print(f"each token masked in turn:\n{_table(values['pseudo'])}", file=stream)
    if options.out:
        write_whole(pathlib.Path(options.out), json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    if outputs:
        print(printable(f"wrote {', '.join(outputs.values())}"), file=stream)


def batch_settings(model: "LoadedModel", path: str, batch_size: int, named: Mapping[str, int]) -> "BatchSettings":
    """How the text is masked: as in the run, but for what is ``named``; of another model by the defaults."""
    from bert import architectures, config_fields
    from bert.data.settings import BatchSettings
    from bert.training import run_directory

    has_pairs = {"pooler", "next_sentence"} <= set(model.parts)
    objective = (model.extra.get("pretraining") or {}).get("objective", "nsp") if has_pairs else "none"
    settings: dict[str, Any] = {"max_length": min(128, model.config.max_length), "objective": objective}
    settings["predicts"] = architectures.objectives_of(model.config)[0]
    folder = pathlib.Path(path)
    run = run_directory.read(folder) if (folder / run_directory.CONFIG).is_file() else {}
    if "examples.objective" in run:
        settings = {name: run[name] for name in ("max_length", "seed")}
        settings["predicts"] = run.get("objective", "mlm")
        settings |= {name.removeprefix("examples."): run[name] for name in run if name.startswith("examples.")}
    settings |= {**named, "batch_size": batch_size}
    if settings["max_length"] > model.config.max_length:
        rule = f"{model.source} has {model.config.max_length} positions"
        raise InputError(f"--max_length={settings['max_length']}: {rule}; lower it")
    return config_fields.build(BatchSettings, settings)


def _table(scores: Mapping[str, float | None]) -> str:
    """A line a score."""
    from launch.score_tables import shown

    width = max(map(len, scores)) + 2
    return "\n".join(f"  {name:<{width}}{shown(name, value)}" for name, value in scores.items())


if __name__ == "__main__":
    flags.main(run)
