"""Random damage for the tests of what reads other people's files."""

import json
import random
from typing import Any

ODD = [
    *(None, True, False, 0, 1, -1, 2, 7, 63, 65, 2**31, 2**62, 2**63, 2**64, 10**40, 10**400, 1e-30, 0.5, 1e300),
    *(float("nan"), float("inf"), "", "x", "##a", "bert", "roberta", "gelu", "\x1b[2J\n", "\ud800", "x" * 5000),
    *("F64", "BF16", "C64", "F8_E4M3", [], {}, [1], [0, 0], [1] * 65, [[]], {"a": 1}, {"a": {"b": ["[MASK]"]}}),
    *({"type": "Sequence"}, ["BertForMaskedLM"], ["RobertaModel"], [2**62, 2**62], json.loads("[" * 99 + "]" * 99)),
]
NAMES = ["", "embedding_size", "pruned_heads", "bert.encoder.layer.0.lora_A", "type", "id", "content", "\x1b", "a" * 99]


def bytes_changed(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one to three changes: bits turned, bytes replaced, put in, taken out, doubled, or cut off."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(min(len(data), rng.choice([64, 4096, len(data)])) or 1)  # more often near the beginning
        length = rng.choice([1, 2, 8, 50])
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([data[at] ^ 1 << rng.randrange(8)]) if data else b""
            case 1:
                data[at : at + length] = rng.randbytes(len(data[at : at + length]))
            case 2:
                data[at:at] = rng.choice([rng.randbytes(length), b"\xff" * length, b"\0" * length, b"[" * 2000, b"\n"])
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = data[at : at + length]
            case 5:
                del data[at + rng.randrange(1000) :]
    return bytes(data)


def json_changed(values: Any, rng: random.Random) -> Any:
    """A copy of the object with one value, somewhere in it, odd, absent, under another name or elsewhere as well."""
    values = json.loads(json.dumps(values))
    inside = values
    while True:
        key = rng.choice([*inside] if isinstance(inside, dict) else range(len(inside)))
        if not isinstance(inside[key], dict | list) or not inside[key] or rng.random() < 0.3:
            break
        inside = inside[key]
    match rng.randrange(5 if isinstance(inside, dict) else 3):
        case 0 | 1:
            inside[key] = rng.choice(ODD)
        case 2:
            inside[key] = json.loads(json.dumps(values[rng.choice([*values])]))
        case 3:
            del inside[key]
        case 4:
            inside[rng.choice(NAMES)] = inside.pop(key)
    return values
