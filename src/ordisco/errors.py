"""The one error that a user's mistake raises: a single line that says what, where and what to do."""


class OrdiscoError(Exception):
    """A mistake in the input, the settings or the surroundings, told in one line.

    The command line prints it without a traceback and exits with `exit_code`.
    """

    exit_code = 1


class UsageError(OrdiscoError):
    """A wrong option or setting: the message names the field and the allowed values."""

    exit_code = 2


class OrdiscoWarning(UserWarning):
    """Something the user should know though the work goes on, told in one line."""
