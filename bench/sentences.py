"""Sentences to embed, and the model directory that all implementations load: random weights, mean pooling.

Every implementation imports this in its own environment, so it needs only NumPy; our process, which starts first, also
writes the directory and the sentences.
"""

import dataclasses
import pathlib
import re

from bench.work import config_of
from bert.architectures.bert import BertConfig

FOLDER = pathlib.Path(".bench/sentences")
ENTRIES = 8000  # of the vocabulary, which is learnt from the sentences


@dataclasses.dataclass(frozen=True)
class Sentences:
    """A pass over ``count`` sentences, batch by batch.

    Attributes:
      size: a name of `BertConfig.of_size`. batch: texts that others compute at a time; ours packs them into rows.
      file: a sentence a line; where not given, sentences of the installed documentation.
    """

    size: str
    count: int
    batch: int = 32
    dtype: str = "float32"
    dropout: float = 0.1
    file: str = ""

    @property
    def config(self) -> BertConfig:
        return dataclasses.replace(config_of(self.size, self.dtype, self.dropout), vocab_size=ENTRIES)

    @property
    def model(self) -> pathlib.Path:
        return FOLDER / self.size

    def read(self) -> list[str]:
        path = pathlib.Path(self.file or FOLDER / "sentences.txt")
        return path.read_text(encoding="utf-8").splitlines()[: self.count]

    def write(self) -> None:
        """Writes the sentences, where no file has them, and the model."""
        import jax

        from bert import architectures, inference
        from bert.corpus import installed_docs
        from bert.data.padding import one_example_a_row
        from bert.interop import export
        from bert.model.sentence_encoder import SentenceEncoder
        from bert.tokenizer.backends import train_tokenizer

        path = FOLDER / "sentences.txt"
        if not self.file and not (path.exists() and len(self.read()) == self.count):
            path.parent.mkdir(parents=True, exist_ok=True)
            found: dict[str, None] = {}
            for _, text in installed_docs.documents():
                parts = re.split(r"(?<=[.!?])\s+", " ".join(text.split()))
                found |= dict.fromkeys(part for part in parts if 3 <= len(part.split()) <= 40)
                if len(found) >= self.count:
                    break
            path.write_text("\n".join([*found][: self.count]) + "\n", encoding="utf-8")
        tokenizer = train_tokenizer(self.read(), vocab_size=ENTRIES)
        config = dataclasses.replace(self.config, vocab_size=tokenizer.vocab_size)
        batch = one_example_a_row([[1]], 16, 1)
        encoder = jax.jit(architectures.build(config).init)(jax.random.key(0), batch)["params"]
        params = {"encoder": jax.device_get(encoder), "head": {}}
        model = inference.from_params(config, params, tokenizer)
        export.save_model_directory(self.model, config, model.params, tokenizer, sentences=SentenceEncoder())
