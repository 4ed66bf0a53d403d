"""Plugin versions in configurations: 4.3.1, latest, or Maven's ranges such as [4.0,5.0)."""

import re

_RANGE = re.compile(r"([\[(])([^\[\]()]*)([\])])")


def version_fits(wanted, there):
    """Whether the installed version matches. None matches any."""
    if wanted is None or wanted.strip().lower() == "latest":
        return True
    wanted = wanted.strip()
    if not wanted.startswith(("[", "(")):
        return wanted == there
    if not re.fullmatch(rf"(?:{_RANGE.pattern},?)+", wanted):
        return False
    return any(_holds(*each.groups(), _parts(there)) for each in _RANGE.finditer(wanted))


def _holds(opening, body, closing, there):
    low, comma, high = (part.strip() for part in body.partition(","))
    if not comma:
        return _parts(low) == there
    if low and not (there > _parts(low) or opening == "[" and there == _parts(low)):
        return False
    return not high or there < _parts(high) or closing == "]" and there == _parts(high)


def _parts(version):
    """Parts of a version: numbers compare numerically, and sort before words."""
    found = [(0, int(part), "") if part.isdecimal() else (-1, 0, part) for part in re.split(r"[.\-]", version)]
    while found and found[-1] == (0, 0, ""):
        found.pop()  # 4.3 is 4.3.0
    return found
