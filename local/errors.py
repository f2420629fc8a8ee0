"""The errors of the local tool; each message says what to do."""


class LocalError(Exception):
    """Base of what the command line prints as one message, without a traceback."""


class RefusedError(LocalError):
    """The machine or the request cannot work; nothing was changed."""


class FailedError(LocalError):
    """A step was tried and did not end well."""
