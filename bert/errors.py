"""The one exception for what a person can get wrong: a file, a setting, a text."""


class InputError(ValueError):
    """Bad input, told in one line: where, which value, which rule, and the way out.

    Commands print it as ``error: ...`` and exit with code 2.
    """
