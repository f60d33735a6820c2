"""Fills the masks of a text: for each [MASK] the most probable tokens and their probabilities, then the filled text.

python -m launch.fill_mask --model=DIR "The capital of France is [MASK]." [--top=5]
"""

import bert
from bert.errors import InputError, printable
from launch import flags

OPTIONS = {
    "model": "model directory or run directory",
    "top": "tokens to show for each mask (5 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model",), arguments="the text, with [MASK]")
    texts = options.arguments
    if not texts:
        raise InputError('the text is missing: python -m launch.fill_mask --model=DIR "a text with [MASK]"')
    if len(texts) > 1:
        raise InputError(f"{len(texts)} texts given ({texts[0]!r}, {texts[1]!r}, ...); put one text in quotes")
    top = flags.whole_number(options, "top", 5)
    masks = bert.load(options.model).masks(texts[0])
    for number, candidates in enumerate(masks.ranked(top), start=1):
        print(f"mask {number}")
        width = max(len(printable(token)) for token, _ in candidates)
        for rank, (token, probability) in enumerate(candidates, start=1):
            print(f"{rank:5d}  {printable(token):<{width}}  {probability:.4f}")
    print(masks.filled())


if __name__ == "__main__":
    flags.main(run)
