"""Checks for options. Each describes the valid values for the reference."""

from types import FunctionType

from standalone.config.types import wrong
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError


class Check:
    """A check that accepts values for which `test` is true; `text` describes them. `demand` begins the error message: "must be ..."."""

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
    """A number of at least `low`."""
    return Check(f"[{low},...]", lambda value: value is not None and value >= low, f"must be at least {low}")


def between(low, high):
    """A number from `low` to `high`, inclusive."""
    test = lambda value: value is not None and low <= value <= high  # noqa: E731
    return Check(f"[{low},...,{high}]", test, f"must be between {low} and {high}")


def one_of(*allowed):
    """One of these strings, or, for a list, only these."""
    text = f"[{', '.join(map(str, allowed))}]"

    def test(value):
        return all(item in allowed for item in value) if isinstance(value, list) else value in allowed

    return Check(text, test, f"must be one of {text}")


def case_insensitive_one_of(*allowed):
    """One of these strings, case-insensitive."""
    names = f"[{', '.join(map(str, allowed))}]"
    known = {str(item).upper() for item in allowed}
    return Check(f"(case insensitive) {names}", lambda value: value is not None and str(value).upper() in known, f"must be one of {names}")


def all_of(*checks):
    """A value that passes all of these checks."""
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
    if value is None:  # a missing value during validation
        raise wrong(name, "must be a regular expression")
    try:
        compile_java(value)
    except ConfigError as error:
        raise wrong(name, str(error)) from None


non_empty = Check("non-empty", lambda value: value is None or len(value) > 0, "must not be empty")
non_empty_list = Check("non-empty list", lambda value: value is not None and len(value) > 0, "must name at least one")


def said(check):
    """The valid values of a check: its own text, or the docstring of a function."""
    return (check.__doc__ or "").strip().rstrip(".") if isinstance(check, FunctionType) else str(check)


def _shown_value(value):
    if value is None:
        return "nothing"
    return "an empty text" if value == "" else "an empty list" if value == [] else repr(value)
