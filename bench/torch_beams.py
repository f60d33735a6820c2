"""Translation by beam search with transformers' generate, in batches of sentences of similar length.

python -m bench.torch_beams [--count=256]
"""

import numpy as np
import torch
import transformers

from bench import turns, work
from bench.beams import MODEL, Beams, word
from bench.pairs import FIRST_WORD


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Beams).parse_args(), Beams)
    transformers.logging.set_verbosity_error()
    model = transformers.EncoderDecoderModel.from_pretrained(MODEL, attn_implementation="sdpa").eval()
    sources, new = [torch.tensor(ids) for ids in workload.sources], workload.new
    order = np.argsort([len(ids) for ids in sources], kind="stable")
    settings = dict(num_beams=workload.beams, length_penalty=0.0, min_new_tokens=new, max_new_tokens=new)

    def step() -> list[str]:
        written = [""] * len(sources)
        for chosen in np.array_split(order, -(-len(order) // workload.batch)):
            ids = torch.nn.utils.rnn.pad_sequence([sources[i] for i in chosen], batch_first=True)
            with torch.inference_mode():
                rows = model.generate(ids, attention_mask=(ids > 0).long(), pad_token_id=0, **settings).tolist()
            for i, row in zip(chosen, rows, strict=True):
                written[i] = " ".join(word(token) for token in row if token >= FIRST_WORD)
        return written

    versions = {"name": "torch", "torch": torch.__version__, "transformers": transformers.__version__, "device": "cpu"}
    turns.serve(step, lambda: None, versions | {"equal": workload.check(step())}, turns.resident)


if __name__ == "__main__":
    main()
