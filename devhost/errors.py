"""The one error that ends the local host."""


class DevhostError(Exception):
    """The host cannot start; the message is one line that says what is wrong and what to do."""
