"""Rewrite Java regular expressions that must match whole strings for engines that only search, such as Spark."""

import re

_OPEN_ENDED = re.compile(r"\\Q|\(\?[a-zA-Z]*x")  # a quote or comment could extend over an appended suffix


def whole(regex):
    """Return a regex that finds something exactly if the whole string matches. None if not possible."""
    return None if _OPEN_ENDED.search(regex) else rf"\A(?:{regex})\z"


def begun(regex):
    """Return a regex that finds a match at the start of a string, at most once, with the groups of `regex`. None if not possible."""
    return None if _OPEN_ENDED.search(regex) else rf"\A(?:{regex})"
