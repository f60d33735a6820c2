"""Our vectors of sentences, timed in turns: python -m bench.ours_sentences --size=mini --count=10000"""

import jax

import bert
from bench import ours, turns, work
from bench.sentences import Sentences
from launch import runtime


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Sentences).parse_args(), Sentences)
    runtime.start(allocator="keep", cache=ours.CACHE, options={})
    workload.write()
    model, sentences = bert.load(workload.model), workload.read()
    versions = {"name": "ours", "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    step = lambda: model.embed(sentences)  # noqa: E731
    turns.serve(step, lambda: None, versions, ours.memory)


if __name__ == "__main__":
    main()
