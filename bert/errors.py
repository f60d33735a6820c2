"""The two exceptions that reach a person as one line instead of a traceback."""


class InputError(ValueError):
    """Bad input, told in one line: where, which value, which rule, and the way out.

    Commands print it as ``error: ...`` and exit with code 2.
    """


class RunError(RuntimeError):
    """A run that cannot go on (such as a loss that stays non-finite), told in one line with the way out.

    Commands print it as ``error: ...`` and exit with code 1.
    """
