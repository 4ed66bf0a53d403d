"""CONFIGURATION: options with types, defaults and checks. Strings are parsed as in Kafka, and all errors are reported at once.

    definition = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the fields to mask.", check=non_empty),
        Option("replacement", STRING, LOW, "Written instead of an empty value.", default=None),
    )
    config = definition.parse({"fields": "card, pin"})
    config["fields"]  ->  ["card", "pin"]

The REST API's `validate` and the reference pages are generated from the same definition.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from standalone.config.checks import (  # noqa: F401
    Check,
    all_of,
    at_least,
    between,
    case_insensitive_one_of,
    non_empty,
    non_empty_list,
    one_of,
    regex_compiles,
    said,
)
from standalone.config.types import (  # noqa: F401
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    TYPES,
    JavaClass,
    Password,
    class_name,
    load_class,
    message_of,
    parse_type,
    text_of,
)
from standalone.errors import ConfigError

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
WIDTH_NONE, WIDTH_SHORT, WIDTH_MEDIUM, WIDTH_LONG = "NONE", "SHORT", "MEDIUM", "LONG"


class _Required:
    """Marks an option without a default."""

    def __repr__(self):
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Option:
    """One key: its type, default and documentation.

    `check(name, value)` raises ConfigError for an invalid value of the right type. `recommend` offers values:
    an object with `valid_values(name, parsed)` and `visible(name, parsed)`, or a callable in place of the former.
    `dependents` names the options whose recommendations depend on this one. `internal` keys are not in the reference.
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
        """The default as in a properties file; None if there is none."""
        return None if self.required else text_of(self.default, self.type)


@dataclass
class ConfigValue:
    """The result of `ConfigDef.validate` for one option."""

    name: str
    value: Any
    recommended_values: list
    errors: list
    visible: bool = True


class ConfigDef:
    """Options in order. Immutable: `+` and `extend` return a new ConfigDef."""

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
        """A ConfigDef with the options of both."""
        return ConfigDef(self, *options)

    def names(self):
        return list(self._options)

    def defaults(self):
        """{name: default} of all options with a default."""
        return {option.name: option.default for option in self if not option.required}

    def embed(self, prefix, group=None, order=0):
        """The same options embedded in a larger definition: named `prefix` + name and, if a group is given, in that group, starting at
        `order`, in Kafka's sort order."""
        parts = []
        inner = self.sorted() if group else list(self)
        # Last, so that additional keys do not move Kafka's.
        inner.sort(key=lambda option: option.internal)
        for place, option in enumerate(inner, order):
            changes = {"group": group, "order": place} if group else {}
            dependents = tuple(prefix + name for name in option.dependents)
            recommend = _Embedded(prefix, option.recommend) if option.recommend else None
            parts.append(replace(option, name=prefix + option.name, dependents=dependents, recommend=recommend, **changes))
        return ConfigDef(*parts)

    def sorted(self):
        """The options sorted by group (no group first), order in the group, required before optional, importance and name."""
        groups = list(dict.fromkeys(option.group for option in self if option.group))

        def key(option):
            group = groups.index(option.group) if option.group else -1
            return group, option.order, not option.required, (HIGH, MEDIUM, LOW).index(option.importance), option.name

        return sorted(self, key=key)

    def parse(self, props, find_class=None):
        """The values of all options. Undefined keys stay in `originals`; one ConfigError contains all wrong keys."""
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
        """One ConfigValue per option, in order, with its errors; raises nothing."""
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
        # As in Kafka the check also receives null for a missing or unparseable value.
        if option.check is not None and not (value is None and option.default is None and option.name not in props):
            try:
                option.check(option.name, value)
            except ConfigError as error:
                errors.append(message_of(error, option.name))
        return ConfigValue(option.name, value, [], errors)

    def unknown(self, props, known=()):
        """{key: the closest option name, or None} for each key that is not an option. `known` are keys, or prefixes ending in a dot, that
        are defined elsewhere."""
        names = self.names()
        prefixes = tuple(key for key in known if key.endswith("."))
        strangers = [key for key in props if key not in self._options and key not in known and not key.startswith(prefixes)]
        return {key: nearest(key, names) for key in strangers}

    def to_markdown(self, title=None):
        """A Markdown table of all options for the reference."""
        lines = [f"## {title}", ""] if title else []
        lines += ["| Key | Type | Default | Valid values | Importance | Meaning |", "|---|---|---|---|---|---|"]
        for option in self:
            if not option.internal:
                default = "required" if option.required else _shown(option.default_text)
                valid = _cell(said(option.check)) if option.check is not None else ""
                kind = option.type.lower()
                lines.append(f"| `{option.name}` | {kind} | {default} | {valid} | {option.importance.lower()} | {_cell(option.doc)} |")
        return "\n".join(lines) + "\n"


class Config(Mapping):
    """Parsed values by option name. `originals` contains the original strings, including unknown keys."""

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
        """The original strings of all keys with `prefix`, which is removed."""
        return with_prefix(self.originals, prefix)

    def __repr__(self):
        return f"Config({self._values!r})"  # without the original strings, which may be passwords


def with_prefix(props, prefix):
    """The entries whose keys are longer than and begin with `prefix`, which is removed."""
    return {key[len(prefix) :]: value for key, value in props.items() if key.startswith(prefix) and len(key) > len(prefix)}


def nearest(word, words):
    """The most similar of `words`, or None."""
    close = difflib.get_close_matches(word, words, 1, 0.75)
    return close[0] if close else None


def key_info(option):
    """An option in the REST API's format."""
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


class _Embedded:
    """Adapts the recommender of an embedded definition, which uses option names without the prefix."""

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


def _shown(text):
    return "none" if text is None else "empty" if text == "" else f"`{_cell(text)}`"


def _cell(text):
    return " ".join(text.replace("|", "\\|").split())


def _first_sentence(text):
    return text.split(". ")[0].rstrip(".")
