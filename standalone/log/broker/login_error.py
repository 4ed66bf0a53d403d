"""The error of a refused login."""


class LoginError(Exception):
    """Its message is sent to the client."""
