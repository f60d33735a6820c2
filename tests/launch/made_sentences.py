"""Made-up sentences with people and places, and a quick fine-tuning run of the tiny model on them."""

import json
import pathlib
import random

from launch import finetune

TINY = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "tiny_bert"
PLACES, PEOPLE = ["paris", "france", "new york"], ["john", "mary", "smith"]
OTHER = ["the", "movie", "book", "a", "of", "mat", "sat", "learning", "is", "fun", "and", "read", "Great", "good"]
QUICK = (
    f"--config.init_from={TINY}",
    "--config.batch_size=16",
    "--config.optimizer.learning_rate=5e-3",
    "--config.model.hidden_dropout=0.0",
    "--config.model.attention_dropout=0.0",
    "--config.allocator=system",
    "--config.packed=False",  # one shape of batches: compiling is most of what these tests do
)
WINDOWS = ("--config.max_length=24", "--config.window_step=6", "--config.max_question=8")


def sentence(rng: random.Random, named: list[str]) -> list[str]:
    """Words with some names among them, one of them always from ``named``."""
    words = rng.choices(OTHER, k=rng.randint(3, 8))
    for name in (rng.choice(named), *rng.choices([*PLACES, *PEOPLE, ""], k=1)):
        if name:
            words.insert(rng.randint(0, len(words)), name)
    return words


def spans(words: list[str], named: list[str]) -> list[list[int]]:
    """[start, end) of the names in the words joined by two blanks."""
    found, start = [], 0
    for word in words:
        if word in named:
            found.append([start, start + len(word)])
        start += len(word) + 2
    return found


def lines(path: pathlib.Path, rows: list[dict]) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(folder, name, *words) -> pathlib.Path:
    finetune.run(["finetune", *QUICK, *map(str, words), f"--workdir={folder / name}"])
    return folder / name
