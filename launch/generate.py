"""Continues a text with a causal model: the text, then what the model adds.

bert generate --model=DIR "Once upon a time" [--max_new_tokens=50]
bert generate --model=DIR "Once upon a time" --temperature=0.8 --top_p=0.9 --seed=1
bert generate --model=runs/mine "Once upon a time" --temperature=1 --top_k=40
"""

from typing import Any

import bert
from bert.errors import InputError, printable
from launch import flags

OPTIONS = {
    "model": "model directory or run directory, pretrained with objective=causal",
    "max_new_tokens": "tokens to add at most (50 where not given)",
    "temperature": "0 for always the most probable token (where not given); above, tokens are drawn: 1 as the model "
    "says, less for likelier ones",
    "top_k": "draw among so many of the most probable tokens (all where not given)",
    "top_p": "of these, among the fewest whose probabilities sum to it (1 where not given)",
    "seed": "of the draws (0 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model",), arguments="the text to continue")
    texts = options.arguments
    if not texts:
        raise InputError('the text is missing: bert generate --model=DIR "a text to continue"')
    if len(texts) > 1:
        raise InputError(f"{len(texts)} texts given ({texts[0]!r}, {texts[1]!r}, ...); put one text in quotes")
    given: dict[str, Any] = {
        name: options.whole_number(name, 0, least=least)
        for name, least in (("max_new_tokens", 1), ("top_k", 0), ("seed", 0))
        if options[name] is not None
    }
    given |= {name: _number(name, options[name]) for name in ("temperature", "top_p") if options[name] is not None}
    from launch import runtime  # JAX is slow to import, and --help needs none

    runtime.keep_programs(runtime.user_cache())
    print(printable(bert.load(options.model).generate(texts[0], **given)))


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"--{name}={value}: is no number; give one, such as 0.8") from None


if __name__ == "__main__":
    flags.main(run)
