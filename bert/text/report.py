"""What `prepare` found and kept: counts, a table for people, and notices about what will hurt later."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert.errors import printable

FEW_NAMES = 3  # files named in each line of the table


@dataclasses.dataclass
class Report:
    """Counts of one run; all are the same for any number of workers.

    read: documents in the corpus. Of these `empty` hold no token and `duplicates` are word for word an earlier one (of
    a long document, its first part is); `duplicate_parts` counts the later parts that are. `cuts` counts how often a
    long document was cut in two because a part between was held out or a duplicate, so read + cuts = kept + empty +
    duplicates. Of those kept, `one_sentence` hold a single sentence. `text_bytes` counts the UTF-8 text read.
    """

    read: int = 0
    empty: int = 0
    duplicates: int = 0
    duplicate_parts: int = 0
    cuts: int = 0
    kept: int = 0
    one_sentence: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    validation_documents: int = 0
    validation_tokens: int = 0
    text_bytes: int = 0
    sources: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def unknown_share(self) -> float:
        return self.unknown_tokens / self.tokens if self.tokens else 0.0

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"unknown_share": round(self.unknown_share, 6)}

    def table(self) -> str:
        """Lines for people: the sources, then the counts."""
        lines = []
        for group in self.sources:
            names = ", ".join(group["names"]) + (", ..." if group["files"] > len(group["names"]) else "")
            how = "; ".join(f"{key}: {group[key]}" for key in ("encoding", "layout", "one document is") if group[key])
            lines.append(f"{group['files']} file(s), {group['bytes'] / 1e6:.1f} MB, {how} ({names})")
            if changed := group.get("half characters"):
                lines.append(f"  half characters (lone surrogates) replaced by U+FFFD, texts: {changed:,}")
        rows = (
            ("documents read", self.read, ""),
            ("  dropped, empty", self.empty, ""),
            ("  dropped, duplicates", self.duplicates, ""),
            ("  parts dropped", self.duplicate_parts, "duplicates, of long documents (about 100,000 characters each)"),
            ("  cut in two", self.cuts, "around a part that was held out or a duplicate"),
            ("documents kept", self.kept, ""),
            ("  with one sentence", self.one_sentence, "give no true next-sentence pair"),
            ("sentences", self.sentences, ""),
            ("tokens", self.tokens, ""),
            ("  unknown", self.unknown_tokens, f"{100 * self.unknown_share:.2f} %"),
            ("validation documents", self.validation_documents, ""),
            ("validation tokens", self.validation_tokens, ""),
            ("bytes of text", self.text_bytes, ""),
        )
        lines += [f"{name:<24}{count:>16,}  {remark}".rstrip() for name, count, remark in rows]
        return "\n".join(map(printable, lines))

    def notices(self, validation_share: float) -> list[str]:
        """One line for each thing that somebody should know before training on this."""
        found = []
        if self.one_sentence >= 0.1 * self.kept:
            by_blank_lines = any(group["one document is"].startswith("a block") for group in self.sources)
            found.append(
                f"{self.one_sentence} of {self.kept} documents have one sentence and are unusable for true pairs; NSP "
                "needs two" + by_blank_lines * ". If blank lines are not the ends of documents, set documents to file"
            )
        if self.kept == 1:
            found.append("there is one document; the random partner of a next-sentence pair needs a second one")
        if validation_share > 0 and not self.validation_documents:
            found.append(
                f"no document fell into the validation part (share {validation_share} of {self.kept}); raise "
                "validation_share or train without validation"
            )
        if self.unknown_share > 0.01:
            found.append(
                f"{100 * self.unknown_share:.1f} % of the tokens are unknown to the vocabulary; does it fit the "
                "language and letter case?"
            )
        return found


def group_sources(notes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Notes of a corpus (path -> how it was read) with files that were read in the same way put together."""
    groups: dict[tuple, dict[str, Any]] = {}
    for path, note in notes.items():
        how = {key: note.get(key, "") for key in ("encoding", "layout", "one document is")}
        start = {"files": 0, "bytes": 0, "documents": 0, "half characters": 0, **how, "names": []}
        group = groups.setdefault(tuple(how.values()), start)
        group["files"] += 1
        group["bytes"] += note["bytes"]
        group["documents"] += note["documents"]
        group["half characters"] += note.get("half characters", 0)
        if len(group["names"]) < FEW_NAMES:
            group["names"].append(path)
    return list(groups.values())
