"""Our translation by beam search, timed in turns: python -m bench.ours_beams [--count=256]"""

import json

import jax

import bert
from bench import ours, turns, work
from bench.beams import MODEL, WRITTEN, Beams
from bert.prediction import translation
from bert.prediction.translation import TranslationOptions
from launch import runtime


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Beams).parse_args(), Beams)
    runtime.start(allocator="keep", cache=ours.CACHE, options={})
    workload.write()
    scorer = bert.load(MODEL).scorer(batch_size=workload.batch)
    options = TranslationOptions(beams=workload.beams, length_penalty=0.0)
    sources = translation.joined(workload.sources)

    def step() -> list[str]:
        written = translation.written(scorer, sources, lambda length: workload.new, options, "text")
        return [candidates[0].text for candidates in written]

    WRITTEN.write_text(json.dumps(step()))
    versions = {"name": "ours", "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    turns.serve(step, lambda: None, versions, ours.memory)


if __name__ == "__main__":
    main()
