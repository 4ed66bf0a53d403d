"""Ready checks for options. Each says what it lets pass, for the reference."""

from types import FunctionType

from standalone.config.types import wrong
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError


class Check:
    """A check that says in `text` what it lets pass: what `test` is true of. `demand` opens the message: "must be ..."."""

    def __init__(self, text, test, demand):
        self.text = text
        self._test = test
        self._demand = demand

    def __call__(self, name, value):
        if not self._test(value):
            raise wrong(name, f"{self._demand}, found {_shown_value(value)}")

    def __str__(self):
        return self.text


def at_least(low):
    """A number that is not below `low`."""
    return Check(f"[{low},...]", lambda value: value is not None and value >= low, f"must be at least {low}")


def between(low, high):
    """A number from `low` to `high`, both included."""
    test = lambda value: value is not None and low <= value <= high  # noqa: E731
    return Check(f"[{low},...,{high}]", test, f"must be between {low} and {high}")


def one_of(*allowed):
    """One of these strings, or, for a list, only these."""
    text = f"[{', '.join(map(str, allowed))}]"

    def test(value):
        return all(item in allowed for item in value) if isinstance(value, list) else value in allowed

    return Check(text, test, f"must be one of {text}")


def case_insensitive_one_of(*allowed):
    """One of these strings, however it is written."""
    names = f"[{', '.join(map(str, allowed))}]"
    known = {str(item).upper() for item in allowed}
    return Check(f"(case insensitive) {names}", lambda value: value is not None and str(value).upper() in known, f"must be one of {names}")


def all_of(*checks):
    """What passes each of these checks."""
    return _All(checks)


class _All:
    def __init__(self, checks):
        self._checks = checks

    def __call__(self, name, value):
        for check in self._checks:
            check(name, value)

    def __str__(self):
        return " and ".join(map(said, self._checks))


def regex_compiles(name, value):
    """A regular expression of Java's."""
    if value is None:  # missing, as a validation sees it
        raise wrong(name, "must be a regular expression")
    try:
        compile_java(value)
    except ConfigError as error:
        raise wrong(name, str(error)) from None


non_empty = Check("non-empty", lambda value: value is None or len(value) > 0, "must not be empty")
non_empty_list = Check("non-empty list", lambda value: value is not None and len(value) > 0, "must name at least one")


def said(check):
    """What a check lets pass: its own words, or those of a function's docstring."""
    return (check.__doc__ or "").strip().rstrip(".") if isinstance(check, FunctionType) else str(check)


def _shown_value(value):
    if value is None:
        return "nothing"
    return "an empty text" if value == "" else "an empty list" if value == [] else repr(value)
