"""Validates a connector's configuration option by option: its own keys, its converters, transforms and predicates.

The REST API's validate shows the result; ConnectorConfig.of (connector_config.py) raises all errors as one.
"""

from dataclasses import replace

from standalone.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    LIST,
    MEDIUM,
    STRING,
    WIDTH_LONG,
    ConfigDef,
    ConfigValue,
    Option,
    class_name,
    parse_type,
)
from standalone.data.java_hash import hash_map_order
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError, NotFoundError
from standalone.runtime.configuration import exactly_once
from standalone.runtime.configuration.connector_keys import CONNECTOR, DEFINITIONS, OWN, PREDICATES, TRANSFORMS
from standalone.runtime.configuration.plugin_versions import version_fits
from standalone.runtime.configuration.worker_keys import CONVERTERS
from standalone.stage import Converter, HeaderConverter

_CONDITION = ConfigDef(
    Option("predicate", STRING, MEDIUM, "Alias of the predicate that decides whether the transform applies to a record.", None),
    Option("negate", BOOLEAN, MEDIUM, "Whether to apply the transform to the records that the predicate does not match.", False),
)


def examine(props, plugins, worker=None, recommend=False):
    """[(Option, ConfigValue)] of all keys of a connector with this configuration, each with its errors; the Option is None for an unknown key
    that has an error.

    Recommended values are computed only on request, as this imports every plugin. `recommend` means that a configuration is being validated:
    the connector then also contacts external systems.
    """
    given = props
    kind, connector_class, wrong = connector_class_of(props, plugins)
    finder = plugins.class_finder(_plugin_kinds(props).get)
    props = {**props, **{f"{key}.converter.type": key.partition(".")[0] for key in CONVERTERS}}
    if "connector.plugin.version" in wrong:  # the connector is unknown then, and nothing more is reported, as in Java
        there = plugins.version(plugins.find("connector", props["connector.class"].strip()))
        changes = {"connector.plugin.version": _only(there), **{f"{key}.plugin.version": _only(None) for key in CONVERTERS}}
    else:
        changes = _worker_defaults(plugins, finder, props, worker, connector_class, recommend)
    parts = [ConfigDef(*(replace(option, **changes.get(option.name, {})) for option in DEFINITIONS.get(kind, CONNECTOR)))]
    parts.append(ConfigDef(*(option for option in OWN.get(kind, ()) if props.get(option.name) is not None)))
    parts += [_stage(plugins, finder, props, *stage, recommend) for stage in _stages(props)]
    if connector_class is not None and connector_class.config_def is not None:
        parts.append(connector_class.config_def)
    parts += [_converter(finder, props, key) for key in CONVERTERS if props.get(key) is not None]
    found = {}
    for part in parts:
        values = {value.name: value for value in part.validate(props, finder)}
        for option in part:
            found.setdefault(option.name, (option, values[option.name]))
    for key, message in {**wrong, **_late_errors(props, kind, connector_class, worker, plugins, recommend)}.items():
        found.setdefault(key, (None, ConfigValue(key, props.get(key), [], [])))[1].errors.append(message)
    for key in given:
        if given[key] is None:
            found.setdefault(key, (None, ConfigValue(key, None, [], [])))[1].errors.append(f"{key} is null: set a string, or remove the key")
    return list(found.values())


def connector_class_of(props, plugins):
    """(kind or None, class or None, errors)."""
    name = (props.get("connector.class") or "").strip()
    if not name:
        return None, None, {}  # the definition reports that it is missing
    for kind in ("source", "sink"):
        try:
            found = plugins.find(kind, name)
        except (ConfigError, NotFoundError):
            continue
        wrong = _wrong_version("connector.class", "connector.plugin.version", props, plugins, found)
        return (None, None, wrong) if wrong else (kind, found, {})
    try:
        plugins.find("connector", name)
    except (ConfigError, NotFoundError) as error:
        return None, None, {"connector.class": str(error)}
    return None, None, {"connector.class": f"'{name}' is neither a source nor a sink"}


def _wrong_version(key, version_key, props, plugins, found):
    """{key: message} if the configuration asks for a version of a plugin that is not installed. There is one of each."""
    wanted, there = props.get(version_key), plugins.version(found)
    if version_fits(wanted, there):
        return {}
    return {each: f"{class_name(found)} is installed in version {there}, not '{wanted}' ({version_key})" for each in (key, version_key)}


def _plugin_kinds(props):
    """{key: kind of plugin} of the keys that name classes."""
    kinds = dict(CONVERTERS)
    kinds.update({f"{prefix}type": kind for _, kind, prefix, _ in _stages(props)})
    return kinds


def _stages(props):
    """(alias, kind, prefix of its keys, group) of each transform and predicate."""
    for key, kind, group in (("transforms", "transform", TRANSFORMS), ("predicates", "predicate", PREDICATES)):
        for alias in dict.fromkeys(names_in(props, key)):
            yield alias, kind, f"{key}.{alias}.", f"{group}: {alias}"


def names_in(props, key):
    """A list of names, if it can be parsed."""
    value = props.get(key)
    return parse_type(key, value, LIST) if isinstance(value, str) else []


def _stage(plugins, finder, props, alias, kind, prefix, group, recommend):
    """The keys of one transform or predicate: its type, its version, and those of its class."""
    found = _found(finder, f"{prefix}type", props)
    wrong = _wrong_version(f"{prefix}type", f"{prefix}plugin.version", props, plugins, found) if found else {}
    what = "Transformation" if kind == "transform" else "Predicate"
    version = plugins.version(found) if found else None
    options = [
        Option(
            *(f"{prefix}type", CLASS, HIGH, f"Class of the {kind} '{alias}'."),
            recommend=_Choices(lambda: [class_name(each) for each in plugins.classes(kind)]) if recommend else None,
            **{"group": group, "order": 0, "width": WIDTH_LONG, "display": f"{what} type for {alias}"},
        ),
        Option(
            *(f"{prefix}plugin.version", STRING, HIGH, "Version of the plugin. Only one version of each is installed.", version),
            recommend=_Choices(lambda: [version] if version else []),
            **{"group": group, "order": 1, "width": WIDTH_LONG, "display": f"{what} version for {alias}"},
        ),
    ]
    if found and not wrong:
        own = found.config_def or ConfigDef()
        options.append((own + _CONDITION if kind == "transform" else own).embed(prefix, group, 2))
    return ConfigDef(*options)


def _converter(finder, props, key):
    """The keys of a connector's own converter."""
    found = _found(finder, key, props)
    if not found or not found.config_def:
        return ConfigDef()
    options = {option.name: option for option in found.config_def.embed(f"{key}.")}
    return ConfigDef(*(options[f"{key}.{name}"] for name in hash_map_order(found.config_def.names())))


def _found(finder, key, props):
    try:
        return finder(key, props[key]) if props.get(key) else None
    except ConfigError:
        return None  # the check of the key itself reports the error


def _worker_defaults(plugins, finder, props, worker, connector_class, recommend):
    """{key: changes of its option}: the worker's converters as defaults, and the installed versions."""
    changed = {}
    if connector_class is not None:
        changed["connector.plugin.version"] = _only(plugins.version(connector_class))
    for key, kind in CONVERTERS.items():
        changes = changed[key] = {"default": worker[key]} if worker is not None else {}
        if recommend:
            changes["recommend"] = _Choices(lambda kind=kind: [class_name(each) for each in plugins.classes(kind)])
        given = props.get(key)
        if given is not None or worker is not None:
            found = worker[key] if given is None else _found(finder, key, props)
            changed[f"{key}.plugin.version"] = _only(plugins.version(found) if found else None, visible=not (key in props and given is None))
    return changed


def _only(version, visible=True):
    """Recommends the only version; none, and hidden, if the class is unknown."""
    visible = visible and version is not None
    return {"default": version, "recommend": _Choices(lambda: [version] if visible else [], visible=visible)}


class _Choices:
    def __init__(self, choices, visible=True):
        self._choices = choices
        self._visible = visible

    def valid_values(self, name, parsed):
        return self._choices()

    def visible(self, name, parsed):
        return self._visible


def _late_errors(props, kind, connector_class, worker, plugins, tries_out):
    """{key: message} of errors across multiple options."""
    errors = dict(worker.refused_overrides(props)) if worker is not None else {}
    errors.update(_converters_that_cannot_be_made(props, plugins))
    finder = plugins.class_finder(_plugin_kinds(props).get)
    for _, _, prefix, _ in _stages(props):
        found = _found(finder, f"{prefix}type", props)
        errors.update(_wrong_version(f"{prefix}type", f"{prefix}plugin.version", props, plugins, found) if found else {})
    for alias in names_in(props, "transforms"):
        condition = f"transforms.{alias}."
        if f"{condition}negate" in props and f"{condition}predicate" not in props:
            errors[f"{condition}type"] = f"{condition}negate is set, but {condition}predicate is not"
    if kind == "sink":
        errors.update(_sink_errors(props))
    elif kind == "source" and worker is not None:
        errors.update(exactly_once.errors(props, connector_class, worker))
    if connector_class is not None:
        connector, given = connector_class(), {key: value for key, value in props.items() if value is not None}
        found = connector.validate(given) or {}
        errors.update(found or tries_out and connector.try_out(given) or {})
    return errors


def _converters_that_cannot_be_made(props, plugins):
    errors, finder = {}, plugins.class_finder(CONVERTERS.get)
    for key in CONVERTERS:
        found = _found(finder, key, props)
        try:
            if found in (Converter, HeaderConverter):
                raise TypeError("it is an abstract base class")
            if found is not None:
                errors.update(_wrong_version(key, f"{key}.plugin.version", props, plugins, found))
                found()
        except Exception as error:  # plugin code
            errors[key] = f"{props[key]} cannot be created: {type(error).__name__}: {error}"
    return errors


def _sink_errors(props):
    topics, regex = [name for name in names_in(props, "topics") if name], (props.get("topics.regex") or "").strip()
    if bool(topics) == bool(regex):
        said = "both are set; set only one of them" if topics else "neither is set; a sink needs one of them"
        return {key: f"topics and topics.regex: {said}" for key in ("topics", "topics.regex")}
    dead_letters = (props.get("errors.deadletterqueue.topic.name") or "").strip()
    try:
        reads_it = dead_letters and (dead_letters in topics or regex and compile_java(regex).fullmatch(dead_letters))
    except ConfigError:
        return {}
    if reads_it:
        key = "topics" if dead_letters in topics else "topics.regex"
        return {key: f"names '{dead_letters}', the sink's own errors.deadletterqueue.topic.name: it would read its own failed records forever"}
    return {}
