"""Vectors of sentences by Sentence-Transformers as shipped: python -m bench.sentences_peer --size=mini --count=10000"""

import sentence_transformers
import torch

from bench import turns, work
from bench.sentences import Sentences


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Sentences).parse_args(), Sentences)
    model = sentence_transformers.SentenceTransformer(str(workload.model), device="cpu")
    sentences, library = workload.read(), sentence_transformers.__version__
    versions = {"name": "sentence_transformers", "torch": torch.__version__, "sentence_transformers": library}
    step = lambda: model.encode(sentences, batch_size=workload.batch, show_progress_bar=False)  # noqa: E731
    turns.serve(step, lambda: None, versions, turns.resident)


if __name__ == "__main__":
    main()
