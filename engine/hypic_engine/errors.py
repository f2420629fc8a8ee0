"""Every error this package raises on purpose.

    HypicError
    +-- SettingsError    a flag or variable has a value that cannot work
    +-- HostError        the SGLang found here is not one this plugin knows how to extend
    +-- RequestError     a request asks for something that cannot be done (HTTP 400)
    +-- ContractError    the other side of a wire format sent something outside the contract

Does not hold: errors of SGLang or torch, which pass through untouched.
"""


class HypicError(Exception):
    """Root of the hierarchy."""


class SettingsError(HypicError):
    """A flag or variable has a value that cannot work; the message names it and what is allowed."""


class HostError(HypicError):
    """SGLang is missing, of another version, or lacks a place this plugin must extend."""


class RequestError(HypicError):
    """A request cannot be served as asked; the message names the field and the limit."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self._message = message

    def __reduce__(self) -> tuple[type["RequestError"], tuple[str, str]]:
        return type(self), (self.field, self._message)


class ContractError(HypicError):
    """A peer sent something outside the wire format."""
