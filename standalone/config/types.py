"""The types of options. Strings are parsed exactly as in Java."""

import importlib
import re
from decimal import Decimal

from standalone.errors import ConfigError

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE = "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE"
LIST, CLASS, PASSWORD = "LIST", "CLASS", "PASSWORD"
TYPES = (BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD)


class Password:
    """A string that is hidden in logs, errors and responses; `value` is the text."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Password) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __str__(self):
        return "[hidden]"

    __repr__ = __str__


_JAVA_BLANKS = "".join(map(chr, range(0x21)))  # the characters that String.trim() removes
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_DECIMAL_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEX_DOUBLE = re.compile(r"([+-]?)0[xX](?=[0-9a-fA-F.])([0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_SPECIAL_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity)")
_BITS = {SHORT: 16, INT: 32, LONG: 64}


def parse_type(name, value, type, find_class=None):
    """`value`, a string or already typed, as a value of `type`. None stays None. `find_class(name, text)` finds classes."""
    if value is None:
        return None
    text = value.strip(_JAVA_BLANKS) if isinstance(value, str) else None
    if type == PASSWORD:
        if isinstance(value, Password):
            return value
        if text is None:
            raise wrong(name, f"must be a text, found a value of type {_kind(value)}")
        return Password(text)
    if type == STRING:
        if text is None:
            raise wrong(name, f"must be a text, found {value!r}")
        return text
    if type == BOOLEAN:
        return _boolean(name, value, text)
    if type in _BITS:
        return _integer(name, value, text, type)
    if type == DOUBLE:
        return _double(name, value, text)
    if type == LIST:
        if text is not None:
            return _COMMA.split(text) if text else []
        if not isinstance(value, (list, tuple)):
            raise wrong(name, f"must be a comma-separated list, found {value!r}")
        return list(value)
    if type == CLASS:
        if text is None:
            if not isinstance(value, _CLASSES):
                raise wrong(name, f"must be the name of a class, found {value!r}")
            return value
        return (find_class or _find_class)(name, text)
    raise ConfigError(f"Option '{name}' has the unknown type {type!r}.")


def text_of(value, type):
    """A value as in a properties file: the inverse of `parse_type`, except that passwords stay hidden."""
    if value is None:
        return None
    if type == LIST:
        return ",".join(str(item) for item in value)
    if type == BOOLEAN:
        return "true" if value else "false"
    if type == DOUBLE:
        return _double_text(float(value))
    if type == CLASS:
        return class_name(value)
    return str(value)


class JavaClass(str):
    """The value of a class option that names one of Java's own classes: valid, but nothing is loaded."""


_JAVA_LANG = "Boolean Byte Character Short Integer Long Float Double Number Object String StringBuilder Void Enum Class Exception Thread"
JAVA_CLASSES = frozenset(
    [f"java.lang.{name}" for name in _JAVA_LANG.split()]
    + [f"java.math.{name}" for name in ("BigDecimal", "BigInteger")]
    + [f"java.util.{name}" for name in "ArrayList Date HashMap HashSet LinkedHashMap LinkedList List Map Properties Set UUID".split()]
)
_CLASSES = (JavaClass, type)  # `type` is a parameter's name below


def class_name(value):
    """The name to show for a class: the Java class that it stands for, or module and name."""
    if isinstance(value, str):
        return str(value)
    return vars(value).get("java_name") or f"{value.__module__}.{value.__qualname__}"


def load_class(text, module_of=importlib.import_module):
    """The class of a Python path `package.module:Class` or `package.module.Class`; None if it does not exist."""
    module, colon, name = text.partition(":")
    if not colon:
        module, _, name = text.rpartition(".")
    if not module or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        return None
    try:
        found = module_of(module)
    except ModuleNotFoundError as error:
        # The module exists but lacks a dependency: name the dependency.
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            return None
        raise
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def _find_class(name, text):
    if text in JAVA_CLASSES:
        return JavaClass(text)
    try:
        found = load_class(text)
    except Exception as error:
        raise wrong(name, f"the module of class '{text}' cannot be imported: {_kind(error)}: {error}") from error
    if found is None:
        raise wrong(name, f"class '{text}' cannot be found; give a Python class as package.module:Class")
    return found


def message_of(error, name):
    """The message of a ConfigError about one key."""
    return error.errors.get(name) or str(error)


def wrong(name, message):
    """A ConfigError about one key."""
    return ConfigError(f"{name}: {message}", {name: message})


def _kind(value):
    return value.__class__.__name__


def _boolean(name, value, text):
    if isinstance(value, bool):
        return value
    word = text.upper() if text is not None else None
    if word not in ("TRUE", "FALSE"):
        raise wrong(name, f"must be true or false, found {value!r}")
    return word == "TRUE"


def _integer(name, value, text, type):
    bits = _BITS[type]
    number = None
    if text is not None:
        digits = text[1:] if text[:1] in ("+", "-") else text
        # Unlike int(), Java accepts any decimal digit of Unicode's basic plane, but no spaces or underscores.
        if digits.isdecimal() and all(digit <= "\uffff" for digit in digits):
            digits = digits.lstrip("0")[:20] or "0"
            number = -int(digits) if text[0] == "-" else int(digits)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None:
        raise wrong(name, f"must be a whole number of {bits} bits ({type}), found {value!r}")
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise wrong(name, f"must be a whole number of {bits} bits ({type}); {value} lies outside")
    return number


def _double(name, value, text):
    if text is None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    elif _DECIMAL_DOUBLE.fullmatch(text):
        return float(text.rstrip("fFdD"))
    elif _SPECIAL_DOUBLE.fullmatch(text):
        return float(text)
    elif match := _HEX_DOUBLE.fullmatch(text):
        sign, digits, exponent = match.groups()
        if digits != ".":
            try:
                return float.fromhex(f"{sign}0x{digits}p{exponent}")
            except OverflowError:
                return float(sign + "inf")
    raise wrong(name, f"must be a number (DOUBLE), found {value!r}")


def _double_text(value):
    """As Java prints it: plain from 0.001 up to ten million, otherwise with an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
