"""One shard of a job of `prepare` on disk: the tokens of its sections before duplicates are dropped, and a manifest.

    shard.json       written last; its keys are listed at `write_manifest`
    sections         a record of `RECORD` for each section of the text
    tokens           uint16 or uint32 [tokens], as in a prepared folder (reader.py)
    sentences        int32 [sentences]; the length of each sentence
    words            uint8 [tokens]; 1 = continues the word before it (only with word boundaries)
    notes.json       {file: how it was read}

A section that is equal to an earlier one of the shard has no tokens.
"""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert import files, json_files
from bert.errors import InputError
from bert.store.kept_sections import SectionMark
from bert.store.manifest import sha256
from bert.store.reader import token_dtype
from bert.store.tokenize_sections import LostText, TokenizedSection, TokenizedSections
from bert.tokenizer.tokenizer_files import WRITTEN

FORMAT = 1
SHARD = "shard.json"
# The fields of SectionMark, and what its tokens take of the other files.
_MARK = [("digest", "<u8"), ("place", "<f8"), ("bytes", "<i4"), ("first", "?")]
RECORD = np.dtype([*_MARK, ("sentences", "<i4"), ("tokens", "<i4"), ("lost", "<i4", len(LostText._fields))])
VOCABULARY = "vocabulary.json"
NAMES = ("sections", "tokens", "sentences", "words", "notes.json", "remarks.json", SHARD, VOCABULARY, *WRITTEN)
_LIMIT = 1 << 28  # bytes of a manifest
_RECORDS = 256  # read at once: up to 30 MB of tokens


class ShardWriter:
    """Appends sections to the files of a shard, in bounded memory."""

    def __init__(self, folder: pathlib.Path, *, word_boundaries: bool):
        names = ["sections", "tokens", "sentences", *["words"] * word_boundaries]
        with contextlib.ExitStack() as stack:
            self._files = {name: stack.enter_context(open(folder / name, "wb", 1 << 20)) for name in names}
            self._stack = stack.pop_all()

    def add(self, mark: SectionMark, piece: TokenizedSection) -> None:
        lengths = piece.sentence_lengths.astype("<i4")
        record = np.array((*mark, len(lengths), len(piece.tokens), piece.lost), RECORD)
        self._files["sections"].write(record.tobytes())
        self._files["tokens"].write(piece.tokens.tobytes())
        self._files["sentences"].write(lengths.tobytes())
        if piece.continues is not None:
            self._files["words"].write(piece.continues.astype(np.uint8).tobytes())

    def close(self) -> None:
        self._stack.close()


def write_manifest(folder: pathlib.Path, name: str, **values: Any) -> None:
    """Completes the folder of a shard or a vocabulary with its manifest:

    format (int), tokenizer (fingerprint), settings (of prepare), texts {file: its mark}, shard ([3, 16], or
    None), files {name: {bytes, sha256}}.
    """
    written = sorted(folder.iterdir())
    checksums = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in written}
    files.write(folder / name, files.json_text({"format": FORMAT, **values, "files": checksums}, indent=1))


def read_manifest(path: pathlib.Path) -> dict[str, Any]:
    """The manifest of a shard or a vocabulary; InputError where it is missing or damaged."""
    if not path.is_file():
        raise InputError(f"{path}: is missing")
    manifest = json_files.read_object(path, limit=_LIMIT, allow_surrogates=True)
    kinds = {"tokenizer": str, "settings": dict, "texts": dict, "files": dict}
    listed_files = manifest.get("files")
    if (
        manifest.get("format") != FORMAT
        or not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items())
        or not isinstance(listed_files, dict)
        or not set(listed_files) <= {*NAMES}
        or not all(isinstance(sizes, dict) and {"bytes", "sha256"} <= set(sizes) for sizes in listed_files.values())
    ):
        raise InputError(f"{path}: is damaged, or of another version")
    return manifest


def read_sections(
    folder: pathlib.Path, vocab_size: int, *, word_boundaries: bool
) -> Iterator[tuple[SectionMark, TokenizedSection]]:
    """All sections of a shard that is whole, in their order and in bounded memory."""
    kinds = {"sections": RECORD, "tokens": token_dtype(vocab_size), "sentences": np.dtype("<i4")}
    kinds |= {"words": np.dtype(np.uint8)} if word_boundaries else {}
    with contextlib.ExitStack() as stack:
        handles = {name: stack.enter_context(open(folder / name, "rb")) for name in kinds}

        def read(name: str, count: int) -> np.ndarray:
            return np.fromfile(handles[name], kinds[name], count)

        while len(records := read("sections", _RECORDS)):
            sentences, tokens = (records[name].astype(np.int64) for name in ("sentences", "tokens"))
            total = int(tokens.sum())
            pieces = TokenizedSections(
                read("tokens", total),
                read("sentences", int(sentences.sum())).astype(np.int64),
                sentences,
                read("words", total) if word_boundaries else None,
                records["lost"].astype(np.int64),
            )
            yield from zip(_marks(records), pieces.sections(), strict=True)


def _marks(records: np.ndarray) -> Sequence[SectionMark]:
    return [SectionMark(*values) for values in records[[*SectionMark._fields]].tolist()]
