"""WHAT CAN BE SET: options with their types, defaults and checks; texts parsed as Kafka parses them, all errors at once.

    definition = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the fields to mask.", check=non_empty),
        Option("replacement", STRING, LOW, "Written instead of an empty value.", default=None),
    )
    config = definition.parse({"fields": "card, pin"})
    config["fields"]  ->  ["card", "pin"]

The same definition answers `validate` of the REST API, and the pages of the reference are drawn from it.
"""

import difflib
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import FunctionType
from typing import Any

from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE = "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE"
LIST, CLASS, PASSWORD = "LIST", "CLASS", "PASSWORD"
TYPES = (BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD)

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
WIDTH_NONE, WIDTH_SHORT, WIDTH_MEDIUM, WIDTH_LONG = "NONE", "SHORT", "MEDIUM", "LONG"


class _Required:
    """The default of an option that has none."""

    def __repr__(self):
        return "REQUIRED"


REQUIRED = _Required()


class Password:
    """A text that no log, error or answer shows; `value` is the text."""

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


# --- Options and definitions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One key: what it may hold, what it holds when it is not given, and what it is for.

    `check(name, value)` raises ConfigError where a value of the right type will not do. `recommend` offers values:
    an object with `valid_values(name, parsed)` and `visible(name, parsed)`, or a plain callable in the former's place.
    `dependents` names the options whose recommendations hang on this one. `internal` keys stay out of the reference.
    """

    name: str
    type: str
    importance: str
    doc: str
    default: Any = REQUIRED
    check: Any = None
    recommend: Any = None
    group: str | None = None
    order: int = -1
    width: str = WIDTH_NONE
    display: str | None = None
    dependents: tuple = ()
    internal: bool = False

    def __post_init__(self):
        if self.type not in TYPES:
            raise ConfigError(f"Option '{self.name}' has the unknown type {self.type!r}. Types: {', '.join(TYPES)}.")
        if self.importance not in (HIGH, MEDIUM, LOW):
            raise ConfigError(f"Option '{self.name}' has the unknown importance {self.importance!r}: HIGH, MEDIUM or LOW.")
        default = self.default
        if default is not REQUIRED and self.type != CLASS:
            default = parse_type(self.name, default, self.type)
            if self.check is not None and default is not None:
                self.check(self.name, default)
        object.__setattr__(self, "default", default)
        object.__setattr__(self, "display", self.display or self.name)
        object.__setattr__(self, "dependents", tuple(self.dependents))

    @property
    def required(self):
        return self.default is REQUIRED

    @property
    def default_text(self):
        """The default as a properties file would give it; None where there is none."""
        return None if self.required else text_of(self.default, self.type)


@dataclass
class ConfigValue:
    """What `ConfigDef.validate` found out about one option."""

    name: str
    value: Any
    recommended_values: list
    errors: list
    visible: bool = True


class ConfigDef:
    """Options, in order. Never changed once made: `+` and `extend` make another."""

    def __init__(self, *options):
        self._options = {}
        for option in options:
            for each in option if isinstance(option, ConfigDef) else (option,):
                if each.name in self._options:
                    raise ConfigError(f"Option '{each.name}' is defined twice.")
                self._options[each.name] = each

    def __iter__(self):
        return iter(self._options.values())

    def __len__(self):
        return len(self._options)

    def __contains__(self, name):
        return name in self._options

    def __getitem__(self, name):
        return self._options[name]

    def __add__(self, other):
        return ConfigDef(self, other)

    def extend(self, *options):
        """These options and those."""
        return ConfigDef(self, *options)

    def names(self):
        return list(self._options)

    def defaults(self):
        """{name: default} of every option that has one."""
        return {option.name: option.default for option in self if not option.required}

    def embed(self, prefix, group=None, order=0):
        """The same options as a part of a larger definition: named `prefix` + name and, if a group is given, in that group, from place
        `order` on, in the order in which Kafka sorts options."""
        parts = []
        for place, option in enumerate(self.sorted() if group else self, order):
            changes = {"group": group, "order": place} if group else {}
            dependents = tuple(prefix + name for name in option.dependents)
            recommend = _Embedded(prefix, option.recommend) if option.recommend else None
            parts.append(replace(option, name=prefix + option.name, dependents=dependents, recommend=recommend, **changes))
        return ConfigDef(*parts)

    def sorted(self):
        """The options by group (those without one first), place in it, required before optional, importance and name."""
        groups = list(dict.fromkeys(option.group for option in self if option.group))

        def key(option):
            group = groups.index(option.group) if option.group else -1
            return group, option.order, not option.required, (HIGH, MEDIUM, LOW).index(option.importance), option.name

        return sorted(self, key=key)

    def parse(self, props, find_class=None):
        """The values of all options. Keys that are not defined stay in `originals`; every wrong key is in the one ConfigError."""
        values, errors = {}, {}
        for option in self:
            try:
                values[option.name] = self._value(option, props, find_class)
            except ConfigError as error:
                errors[option.name] = message_of(error, option.name)
        if errors:
            raise ConfigError.of(errors)
        return Config(values, props)

    def _value(self, option, props, find_class):
        given = option.name in props
        if not given and option.required:
            raise ConfigError(f"is missing; it is required and has no default ({option.type}: {_first_sentence(option.doc)})")
        value = parse_type(option.name, props[option.name] if given else option.default, option.type, find_class)
        if option.check is not None and (given or value is not None):
            option.check(option.name, value)
        return value

    def validate(self, props, find_class=None):
        """A ConfigValue an option, in order, with all that is wrong with it: nothing is raised."""
        found = {option.name: self._validated(option, props, find_class) for option in self}
        parsed = {name: value.value for name, value in found.items()}
        for option in self:
            value = found[option.name]
            for name in option.dependents:
                if name not in found:
                    found[name] = ConfigValue(name, None, [], [f"{name} is named as a dependent, but is not defined"], visible=False)
            if option.recommend is None:
                continue
            try:
                value.recommended_values = list(_valid_values(option.recommend)(option.name, parsed))
                value.visible = bool(_visible(option.recommend)(option.name, parsed))
            except ConfigError as error:
                value.errors.append(message_of(error, option.name))
        return list(found.values())

    def _validated(self, option, props, find_class):
        value, errors = None, []
        try:
            if option.name in props:
                value = parse_type(option.name, props[option.name], option.type, find_class)
            elif option.required:
                errors.append(f"{option.name} is missing; it is required and has no default")
            else:
                value = parse_type(option.name, option.default, option.type, find_class)
        except ConfigError as error:
            errors.append(message_of(error, option.name))
        # As in Kafka the check also sees the null that stands for a value which is missing or unreadable.
        if option.check is not None and not (value is None and option.default is None and option.name not in props):
            try:
                option.check(option.name, value)
            except ConfigError as error:
                errors.append(message_of(error, option.name))
        return ConfigValue(option.name, value, [], errors)

    def unknown(self, props, known=()):
        """{key: the nearest name of an option, or None} for each key that is no option. `known` are keys, or prefixes ending in a
        dot, that someone else reads."""
        names = self.names()
        prefixes = tuple(key for key in known if key.endswith("."))
        strangers = [key for key in props if key not in self._options and key not in known and not key.startswith(prefixes)]
        return {key: nearest(key, names) for key in strangers}

    def to_markdown(self, title=None):
        """A table of all options for the reference."""
        lines = [f"## {title}", ""] if title else []
        lines += ["| Key | Type | Default | Valid values | Importance | Meaning |", "|---|---|---|---|---|---|"]
        for option in self:
            if not option.internal:
                default = "required" if option.required else _shown(option.default_text)
                valid = _cell(_said(option.check)) if option.check is not None else ""
                kind = option.type.lower()
                lines.append(f"| `{option.name}` | {kind} | {default} | {valid} | {option.importance.lower()} | {_cell(option.doc)} |")
        return "\n".join(lines) + "\n"


class Config(Mapping):
    """Parsed values by option name. `originals` holds the texts as they were given, unknown keys among them."""

    def __init__(self, values, originals):
        self._values = values
        self.originals = dict(originals)

    def __getitem__(self, name):
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def with_prefix(self, prefix):
        """The given texts of all keys that begin with `prefix`, without it."""
        return with_prefix(self.originals, prefix)

    def __repr__(self):
        return f"Config({self._values!r})"  # the texts stay out of it: a password is one


def with_prefix(props, prefix):
    """The entries whose keys begin with `prefix` and go on behind it, without it."""
    return {key[len(prefix) :]: value for key, value in props.items() if key.startswith(prefix) and len(key) > len(prefix)}


def nearest(word, words):
    """The one of `words` that was probably meant, or None."""
    close = difflib.get_close_matches(word, words, 1, 0.75)
    return close[0] if close else None


def key_info(option):
    """An option as the REST API tells it."""
    return {
        "name": option.name,
        "type": option.type,
        "required": option.required,
        "default_value": option.default_text,
        "importance": option.importance,
        "documentation": option.doc,
        "group": option.group,
        "order_in_group": option.order,
        "width": option.width,
        "display_name": option.display,
        "dependents": list(option.dependents),
    }


# --- From text to value, by Java's rules ---------------------------------------------------------------------------

_JAVA_BLANKS = "".join(map(chr, range(0x21)))  # what String.trim() takes away
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_DECIMAL_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEX_DOUBLE = re.compile(r"([+-]?)0[xX](?=[0-9a-fA-F.])([0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_SPECIAL_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity)")
_BITS = {SHORT: 16, INT: 32, LONG: 64}


def parse_type(name, value, type, find_class=None):
    """`value`, a text or already typed, as `type` holds it. None stays None. `find_class(name, text)` finds classes."""
    if value is None:
        return None
    text = value.strip(_JAVA_BLANKS) if isinstance(value, str) else None
    if type == PASSWORD:
        if isinstance(value, Password):
            return value
        if text is None:
            raise _wrong(name, f"must be a text, found a value of type {_kind(value)}")
        return Password(text)
    if type == STRING:
        if text is None:
            raise _wrong(name, f"must be a text, found {value!r}")
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
            raise _wrong(name, f"must be a comma-separated list, found {value!r}")
        return list(value)
    if type == CLASS:
        if text is None:
            if not isinstance(value, _CLASSES):
                raise _wrong(name, f"must be the name of a class, found {value!r}")
            return value
        return (find_class or _find_class)(name, text)
    raise ConfigError(f"Option '{name}' has the unknown type {type!r}.")


def text_of(value, type):
    """A value as a properties file would give it: the inverse of `parse_type`, but for passwords, which stay hidden."""
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
    """The name of one of Java's own classes, where a class was asked for: it exists, and there is nothing to load."""


_JAVA_LANG = "Boolean Byte Character Short Integer Long Float Double Number Object String StringBuilder Void Enum Class Exception Thread"
JAVA_CLASSES = frozenset(
    [f"java.lang.{name}" for name in _JAVA_LANG.split()]
    + [f"java.math.{name}" for name in ("BigDecimal", "BigInteger")]
    + [f"java.util.{name}" for name in "ArrayList Date HashMap HashSet LinkedHashMap LinkedList List Map Properties Set UUID".split()]
)
_CLASSES = (JavaClass, type)  # `type` is a parameter's name below


def class_name(value):
    """The name that a user knows a class by: the Java class it stands for, or module and name."""
    if isinstance(value, str):
        return str(value)
    return vars(value).get("java_name") or f"{value.__module__}.{value.__qualname__}"


def load_class(text):
    """The class of a Python path `package.module:Class` or `package.module.Class`; None where there is no such thing."""
    module, colon, name = text.partition(":")
    if not colon:
        module, _, name = text.rpartition(".")
    if not module or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        return None
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that fails for want of another one is no stranger to us: its author needs to hear which one.
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
        raise _wrong(name, f"the module of class '{text}' cannot be imported: {_kind(error)}: {error}") from error
    if found is None:
        raise _wrong(name, f"class '{text}' cannot be found; give a Python class as package.module:Class")
    return found


def message_of(error, name):
    """What a ConfigError says about one key."""
    return error.errors.get(name) or str(error)


def _wrong(name, message):
    return ConfigError(f"{name}: {message}", {name: message})


def _kind(value):
    return value.__class__.__name__


def _boolean(name, value, text):
    if isinstance(value, bool):
        return value
    word = text.upper() if text is not None else None
    if word not in ("TRUE", "FALSE"):
        raise _wrong(name, f"must be true or false, found {value!r}")
    return word == "TRUE"


def _integer(name, value, text, type):
    bits = _BITS[type]
    number = None
    if text is not None:
        digits = text[1:] if text[:1] in ("+", "-") else text
        # Java takes any decimal digit of Unicode's basic plane, and neither blanks nor underscores, both of which int() takes.
        if digits.isdecimal() and all(digit <= "\uffff" for digit in digits):
            digits = digits.lstrip("0")[:20] or "0"
            number = -int(digits) if text[0] == "-" else int(digits)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None:
        raise _wrong(name, f"must be a whole number of {bits} bits ({type}), found {value!r}")
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _wrong(name, f"must be a whole number of {bits} bits ({type}); {value} lies outside")
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
    raise _wrong(name, f"must be a number (DOUBLE), found {value!r}")


def _double_text(value):
    """As Java prints it: plain from 0.001 up to ten millions, with an exponent beyond."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


# --- Checks --------------------------------------------------------------------------------------------------------


class Check:
    """A check that says in `text` what it lets pass: what `test` is true of. `demand` opens the message: "must be ..."."""

    def __init__(self, text, test, demand):
        self.text = text
        self._test = test
        self._demand = demand

    def __call__(self, name, value):
        if not self._test(value):
            raise _wrong(name, f"{self._demand}, found {_shown_value(value)}")

    def __str__(self):
        return self.text


def at_least(low):
    """A number that is not below `low`."""
    return Check(f"[{low},...]", lambda value: value is not None and value >= low, f"must be at least {low}")


def between(low, high):
    """A number from `low` to `high`, both included."""
    test = lambda value: value is not None and low <= value <= high  # noqa: E731
    return Check(f"[{low},...,{high}]", test, f"must lie between {low} and {high}")


def one_of(*allowed):
    """One of these texts, or, for a list, only these."""
    text = f"[{', '.join(map(str, allowed))}]"

    def test(value):
        return all(item in allowed for item in value) if isinstance(value, list) else value in allowed

    return Check(text, test, f"must be one of {text}")


def case_insensitive_one_of(*allowed):
    """One of these texts, however it is written."""
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
        return " and ".join(map(_said, self._checks))


def regex_compiles(name, value):
    """A regular expression of Java's."""
    try:
        if value is not None:
            compile_java(value)
    except ConfigError as error:
        raise _wrong(name, str(error)) from None


non_empty = Check("non-empty", lambda value: value is None or len(value) > 0, "must not be empty")
non_empty_list = Check("non-empty list", lambda value: value is not None and len(value) > 0, "must name at least one")


# --- Recommendations and rendering ---------------------------------------------------------------------------------


class _Embedded:
    """A recommender of a part: it knows its options by their own names, without the prefix."""

    def __init__(self, prefix, inner):
        self._prefix = prefix
        self._inner = inner

    def valid_values(self, name, parsed):
        return _valid_values(self._inner)(name[len(self._prefix) :], with_prefix(parsed, self._prefix))

    def visible(self, name, parsed):
        return _visible(self._inner)(name[len(self._prefix) :], with_prefix(parsed, self._prefix))


def _valid_values(recommend):
    return getattr(recommend, "valid_values", recommend)


def _visible(recommend):
    return getattr(recommend, "visible", lambda name, parsed: True)


def _shown_value(value):
    if value is None:
        return "nothing"
    return "an empty text" if value == "" else "an empty list" if value == [] else repr(value)


def _shown(text):
    return "none" if text is None else "empty" if text == "" else f"`{_cell(text)}`"


def _said(check):
    """What a check lets pass: its own words, or those of a function's docstring."""
    return (check.__doc__ or "").strip().rstrip(".") if isinstance(check, FunctionType) else str(check)


def _cell(text):
    return " ".join(text.replace("|", "\\|").split())


def _first_sentence(text):
    return text.split(". ")[0].rstrip(".")
