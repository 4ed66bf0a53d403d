"""A regular expression of Java's as one that finds what the other matches: where only searching is offered, as by Spark."""

import re

_OPEN_ENDED = re.compile(r"\\Q|\(\?[a-zA-Z]*x")  # a quote or a comment might swallow what is put behind


def whole(regex):
    """Finds something exactly where all of a string matches. None where that cannot be written."""
    return None if _OPEN_ENDED.search(regex) else rf"\A(?:{regex})\z"


def begun(regex):
    """Finds what begins at the start of a string, and no more than once; its groups are those of `regex`. None as above."""
    return None if _OPEN_ENDED.search(regex) else rf"\A(?:{regex})"
