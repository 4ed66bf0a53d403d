"""What a login is refused with."""


class LoginError(Exception):
    """Words that the client may read."""
