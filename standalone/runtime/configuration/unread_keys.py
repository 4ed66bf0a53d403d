"""Unused keys: warnings that suggest the nearest known key, or explain why the key has no effect."""

from standalone.config import CLASS, LIST, nearest, parse_type, with_prefix
from standalone.runtime.configuration.topic_groups import unnamed_group

_OVERRIDES = ("producer.override.", "consumer.override.", "admin.override.")
_NAMESPACES = ("transforms.", "predicates.", "key.converter.", "value.converter.", "header.converter.")
_SPARE_KEYS = ("pipeline.engine", "task.class")


def of_connector(props, found, own, converters, takes_anything, topic_creation, read=()):
    """Warnings about a connector's keys. `found` is the result of `examine`; `own` are options that exist only if they are set;
    `takes_anything`: the connector declares no keys; `topic_creation`: whether the worker creates topics; `read`: prefixes of keys that the
    connector reads besides those it declares."""
    names = [value.name for _, value in found]
    passing = (*_OVERRIDES, *read, *(prefix for option, value in found if option.type == CLASS for prefix in _free(option, value, converters)))
    warnings = []
    for key in props:
        if key in names or key in _SPARE_KEYS or key.startswith(passing):
            continue
        if key.startswith("topic.creation."):
            group = unnamed_group(key, props)
            if group is not None:
                warnings.append(f"{key} has no effect: topic.creation.groups does not name '{group}'.")
            elif not topic_creation:
                warnings.append(f"{key} has no effect: the worker's topic.creation.enable is false.")
        elif not takes_anything or key.startswith(_NAMESPACES):
            why = _why(key, props, converters) or _meant(key, [*names, *own])
            warnings.append(f"{key} is not a key of this connector and has no effect.{why}")
    return warnings


def of_converter(key, props, converter):
    """Warnings about unknown keys of a converter, `key.converter.*`."""
    if converter is None or converter.config_def is None:
        return []
    names = [f"{key}.{name}" for name in (*converter.config_def.names(), "plugin.version")]
    given = [f"{key}.{name}" for name in with_prefix(props, f"{key}.")]
    return [f"{name} is not a key of that converter and has no effect.{_meant(name, names)}" for name in given if name not in names]


def _free(option, value, converters):
    """The prefix of the keys of a transform or predicate that declares none."""
    if isinstance(value.value, type) and getattr(value.value, "config_def", None) is None:
        yield option.name.removesuffix("type") if option.name not in converters else f"{option.name}."


def _meant(key, names):
    close = nearest(key, names)
    return f" Did you mean {close}?" if close else ""


def _why(key, props, converters):
    for converter in converters:
        if key.startswith(f"{converter}.") and converter not in props:
            return f" A converter is configured where it is set: set {converter} here, too."
    for stages in ("transforms", "predicates"):
        alias = key.split(".")[1] if key.startswith(f"{stages}.") else None
        if alias and alias not in (parse_type(stages, props.get(stages), LIST) or ()):
            return f" '{stages}' does not list '{alias}'."
    return None
