"""Counts of a `prepare` run, their table, and notices about text that would hurt training."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from bert.corpus.corpus import SURROGATES
from bert.errors import printable
from bert.store.prepare_settings import PrepareSettings
from bert.store.tokenize_sections import LostText
from bert.store.writer import StoreWriter

FEW_NAMES = 3  # files named in each line of the table
# Share of the lines that end inside sentences from which a notice is given; of text with a sentence a line 0 to 0.2 do.
MANY_INSIDE_SENTENCES = 0.3
LONG_WORD = 1000  # characters; the time to look a word up grows with the square of its length


@dataclasses.dataclass
class PrepareReport:
    """Counts of one run; all are the same for any number of workers. read + cuts = kept + empty + duplicates.

    Characters are counted without white space; folders of earlier versions have no counts of them.
    """

    read: int = 0  # documents in the corpus
    empty: int = 0  # without a token
    duplicates: int = 0  # word for word an earlier one (of a long document, its first part is)
    duplicate_parts: int = 0  # later parts of long documents
    cuts: int = 0  # long documents cut in two because a part between was held out or a duplicate
    kept: int = 0
    one_sentence: int = 0  # of those kept
    sentences: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    characters: int = 0  # of all text
    unknown_characters: int = 0  # of the words that became unknown tokens
    long_word_characters: int = 0  # of those that are longer than max_word_chars
    longest_word: int = 0  # characters of the longest of those
    validation_documents: int = 0
    validation_tokens: int = 0
    next_held_out: float = 1.0  # validation share above which one more document or part is held out; 1: there is none
    text_bytes: int = 0  # of UTF-8
    remarks: list[str] = dataclasses.field(default_factory=list)  # notices about how the text was read
    sources: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def unknown_share(self) -> float:
        """Of the tokens."""
        return self.unknown_tokens / self.tokens if self.tokens else 0.0

    @property
    def unknown_character_share(self) -> float:
        return self.unknown_characters / self.characters if self.characters else 0.0

    def add_lost(self, lost: LostText) -> None:
        self.characters += lost.characters
        self.unknown_tokens += lost.tokens
        self.unknown_characters += lost.in_words
        self.long_word_characters += lost.in_long_words
        self.longest_word = max(self.longest_word, lost.longest_word)

    def count(self, writers: Mapping[str, StoreWriter]) -> None:
        for writer in writers.values():
            self.kept += writer.num_documents
            self.one_sentence += writer.num_one_sentence
            self.sentences += writer.num_sentences
            self.tokens += writer.num_tokens
        self.validation_documents = writers["validation"].num_documents
        self.validation_tokens = writers["validation"].num_tokens

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"unknown_share": round(self.unknown_share, 6)}

    def table(self) -> str:
        """Lines for people: the sources, then the counts."""
        lines = []
        for group in self.sources:
            names = ", ".join(group["names"]) + (", ..." if group["files"] > len(group["names"]) else "")
            how = "; ".join(f"{key}: {group[key]}" for key in ("encoding", "layout", "one document is") if group[key])
            lines.append(f"{group['files']} file(s), {group['bytes'] / 1e6:.1f} MB, {how} ({names})")
            if changed := group.get(SURROGATES):
                lines.append(f"  unpaired surrogates replaced by U+FFFD, texts: {changed:,}")
        lost = f"{100 * self.unknown_character_share:.2f} %, in the words that are unknown"
        rows = [
            ("documents read", self.read, ""),
            ("  dropped, empty", self.empty, ""),
            ("  dropped, duplicates", self.duplicates, ""),
            ("  parts dropped", self.duplicate_parts, "duplicates, of long documents (about 100,000 characters each)"),
            ("  cut in two", self.cuts, "around a part that was held out or a duplicate"),
            ("documents kept", self.kept, ""),
            ("  with one sentence", self.one_sentence, "give no true next-sentence pair"),
            ("sentences", self.sentences, ""),
            ("characters", self.characters, "without blanks"),
            ("  lost", self.unknown_characters, lost),
            ("tokens", self.tokens, ""),
            ("  unknown", self.unknown_tokens, f"{100 * self.unknown_share:.2f} %"),
            ("validation documents", self.validation_documents, ""),
            ("validation tokens", self.validation_tokens, ""),
            ("bytes of text", self.text_bytes, ""),
        ]
        if not self.characters:  # prepared by an earlier version
            rows = [row for row in rows if row[0] not in ("characters", "  lost")]
        lines += [f"{name:<24}{count:>16,}  {remark}".rstrip() for name, count, remark in rows]
        return "\n".join(map(printable, lines))

    def notices(self, settings: PrepareSettings) -> list[str]:
        """One line for each problem to know of before training on this."""
        lines = [*self.remarks]
        if self.one_sentence >= 0.1 * self.kept:
            files = sum(group["files"] for group in self.sources if group["one document is"].startswith("a block"))
            way_out = "set documents to file" if files > 1 else "take those between sentences out"
            blocks = f". If blank lines are not the ends of documents, {way_out}" if files else ""
            lines.append(
                f"{self.one_sentence} of {self.kept} documents have one sentence and are unusable for true pairs; NSP "
                f"needs two{blocks}"
            )
        if self.kept == 1:
            others = "none" if self.one_sentence else "sop or none"
            lines.append(
                "there is one document; the random partner of a next-sentence pair needs a second one: add texts, or "
                f"pretrain with examples.objective={others}"
            )
        if settings.validation_share > 0 and not self.validation_documents:
            nothing = f"no document fell into the validation part (share {settings.validation_share} of {self.kept})"
            enough = min(math.floor(1000 * self.next_held_out + 1) / 1000, 0.999)
            raising = f"; raise validation_share to {enough} or more, or train without validation"
            alone = ", for the first one always trains and there is no other; train without validation"
            lines.append(nothing + (alone if self.next_held_out >= 1 else raising))
        if max(self.unknown_share, self.unknown_character_share) > 0.01:
            lines.append(self._much_is_unknown(settings))
        return lines

    def _much_is_unknown(self, settings: PrepareSettings) -> str:
        """The shares of tokens and characters, how much long words have of it, and what can be set for each cause."""
        text = f"{100 * self.unknown_share:.1f} % of the tokens are unknown to the vocabulary"
        if not self.characters:  # prepared by an earlier version
            return f"{text}; does it fit the language and letter case?"
        text += f", and {100 * self.unknown_character_share:.1f} % of the characters are lost in them"
        long, other = self.long_word_characters, self.unknown_characters - self.long_word_characters
        if long:
            way_out = f"set max_word_chars to {self.longest_word}"
            if settings.vocab and (folder := pathlib.Path(settings.vocab)).is_dir():  # its tokenizer decides
                way_out = f"give {folder / 'vocab.txt'} as vocab, and {way_out}"
            if self.longest_word > LONG_WORD:
                way_out = (
                    f"the longest has {self.longest_word:,} characters: put blanks into such words, or take them out"
                )
            text += f"; {100 * long / self.characters:.1f} % are in words above the longest allowed, {way_out}"
        if other:
            fitting = "give one that fits the language and letter case, or set vocab to '' to learn one"
            text += (
                f"; {100 * other / self.characters:.1f} % are in words with characters that the vocabulary lacks: "
                f"{fitting if settings.vocab else 'raise vocab_size'}"
            )
        return text


def remarks_on_lines(notes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A notice about files whose lines end inside sentences and were not joined; none if there are none."""
    paths = [path for path, note in notes.items() if note.get("inside sentences", 0) >= MANY_INSIDE_SENTENCES]
    if not paths:
        return []
    names = ", ".join(paths[:FEW_NAMES]) + (", ..." if len(paths) > FEW_NAMES else "")
    share = max(notes[path]["inside sentences"] for path in paths)
    return [
        f"up to {100 * share:.0f} % of the lines of {len(paths)} file(s) end inside a sentence, and no line was joined "
        f"with the next ({names}); if their lines are broken at a width, set sentences to wrapped"
    ]


def group_sources(notes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Notes of a corpus (path -> how it was read) with files that were read in the same way put together."""
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for path, note in notes.items():
        how = {key: note.get(key, "") for key in ("encoding", "layout", "one document is")}
        start = {"files": 0, "bytes": 0, "documents": 0, SURROGATES: 0, **how, "names": []}
        group = groups.setdefault(tuple(how.values()), start)
        group["files"] += 1
        for key in ("bytes", "documents", SURROGATES):
            group[key] += note.get(key, 0)
        if len(group["names"]) < FEW_NAMES:
            group["names"].append(path)
    return list(groups.values())
