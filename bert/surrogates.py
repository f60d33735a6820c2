"""Unpaired surrogates: code points U+D800 to U+DFFF, halves of UTF-16 pairs that are not characters.

JSON escapes and file names can put them into a Python string. UTF-8 cannot encode them, and `tokenizers` refuses them.
"""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def contains(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def replace(text: str) -> str:
    """The text with U+FFFD for each surrogate, one for one, so that offsets into the text stay right."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def join(text: str) -> str:
    """The text with surrogates that form a pair joined to their character, and U+FFFD for each of the others."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
