"""The named options of a command, such as ``--output=FILE``, and how their texts are read."""

from typing import Any

from bert.errors import InputError
from tasks.files.records import comma_names


class Options(dict[str, Any]):
    """Name -> text of each option that a command declares, readable as attributes; None where an option is absent.

    ``arguments`` has the words outside options.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"option --{name} is not declared; declared: {', '.join(self)}")
        return self[name]

    def whole_number(self, name: str, default: int, *, least: int = 1) -> int:
        """The value of an option that must be a whole number of at least ``least``."""
        value = self[name]
        if value is not None and (not value.isdecimal() or int(value) < least):
            raise InputError(f"--{name}={value}: must be a whole number of at least {least}")
        return default if value is None else int(value)

    def yes_or_no(self, name: str) -> bool:
        """Whether an option is "yes"."""
        value = self[name]
        if value not in (None, "yes", "no"):
            raise InputError(f"--{name}={value}: must be yes or no")
        return bool(value == "yes")

    def yes_no_or_unset(self, name: str) -> bool | None:
        """Whether an option is "yes"; None where it is not given."""
        return None if self[name] is None else self.yes_or_no(name)

    def names(self, name: str) -> tuple[str, ...] | None:
        """The names in an option, with commas between them; None where it is not given."""
        return None if self[name] is None else comma_names(self[name])
