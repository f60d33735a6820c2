"""LoadReport: accounts for each tensor of a file that was loaded."""

import collections
import dataclasses

from bert.errors import printable

MOST_NAMED = 4  # of more names with one reason, the first and their number are told


@dataclasses.dataclass
class LoadReport:
    """The account of one file, by the file's own names; nothing is left out."""

    source: str
    counted: str = "tensors"  # what the names are of
    used: list[str] = dataclasses.field(default_factory=list)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> why
    fresh: list[str] = dataclasses.field(default_factory=list)  # parts that the file lacks, newly initialised
    replaced: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> why a fresh part takes its place
    missing: list[str] = dataclasses.field(default_factory=list)  # needed, neither there nor listed as fresh
    notes: list[str] = dataclasses.field(default_factory=list)  # what the file leaves open, and how it was read

    def __str__(self) -> str:
        """A line of counts, then one for each name; of many with one reason, such as optimizer slots, a single line."""
        counts = f"{len(self.used)} {self.counted} used, {len(self.ignored)} ignored, {len(self.missing)} missing"
        lines = [f"{self.source}: {counts}" + (f", {len(self.replaced)} replaced" if self.replaced else "")]
        reasons: dict[str, list[str]] = collections.defaultdict(list)
        for name, why in self.ignored.items():
            reasons[why].append(name)
        for why, names in reasons.items():
            shown = names if len(names) <= MOST_NAMED else [f"{names[0]} and {len(names) - 1} more"]
            lines += [f"  ignored {name}: {why}" for name in shown]
        lines += [f"  replaced {name}: {why}" for name, why in self.replaced.items()]
        lines += [f"  {part}: new" for part in self.fresh]
        lines += [f"  missing {name}" for name in self.missing]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(map(printable, lines))
