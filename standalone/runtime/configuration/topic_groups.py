"""topic.creation.*: topic groups, and how a source's topics in them are created."""

from standalone.config import (
    INT,
    LIST,
    LOW,
    REQUIRED,
    SHORT,
    Check,
    ConfigDef,
    Option,
    all_of,
    message_of,
    parse_type,
    regex_compiles,
    with_prefix,
)
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError
from standalone.runtime.tasks.topic_creation import TopicGroup

_DEFAULT = "default"

valid_count = Check("-1 or more than 0", lambda value: value is not None and (value == -1 or value > 0), "must be -1 or more than 0")
_some = Check("valid regexes", lambda value: value is not None and len(value) > 0, "must name at least one regular expression")


def _compile_all(name, value):
    for pattern in value:
        regex_compiles(name, pattern)


GROUP = ConfigDef(
    Option("replication.factor", SHORT, LOW, "Replication factor of new topics; -1: the broker's default.", REQUIRED, valid_count),
    Option("partitions", INT, LOW, "Partitions of new topics; -1: the broker's default.", REQUIRED, valid_count),
    Option("include", LIST, LOW, "Regular expressions for the topics of this group.", REQUIRED, all_of(_some, _compile_all)),
    Option("exclude", LIST, LOW, "Regular expressions for topics that do not belong to the group.", "", _compile_all),
)


def topic_groups(props):
    """([TopicGroup], {key: message}) from a configuration; the default group is the last. Both are empty if topic.creation.* is not set."""
    if not any(key.startswith("topic.creation.") for key in props):
        return [], {}
    named = [name for name in parse_type("topic.creation.groups", props.get("topic.creation.groups"), LIST) or () if name]
    groups, errors, default = [], {}, {}
    for name in dict.fromkeys([_DEFAULT, *named]):
        prefix = f"topic.creation.{name}."
        given = {key: value for key, value in with_prefix(props, prefix).items() if value is not None}
        texts = {"include": ".*", **given} if name == _DEFAULT else {**default, **given}
        try:
            values = GROUP.parse(texts)
        except ConfigError as error:
            errors.update({prefix + key: message_of(error, key) for key in error.errors})
            continue
        if name == _DEFAULT:
            default = {key: texts[key] for key in ("replication.factor", "partitions")}
        patterns = [[compile_java(pattern) for pattern in values[key]] for key in ("include", "exclude")]
        configs = {key: value for key, value in given.items() if key not in GROUP}
        groups.append(TopicGroup(name, *patterns, values["partitions"], values["replication.factor"], configs))
    return groups[1:] + groups[:1], errors


def unnamed_group(key, props):
    """The group in a key's name if topic.creation.groups does not list it."""
    parts = key.split(".")
    if not key.startswith("topic.creation.") or len(parts) < 4:
        return None
    named = parse_type("topic.creation.groups", props.get("topic.creation.groups"), LIST) or ()
    known = any(key.startswith(f"topic.creation.{name}.") for name in (_DEFAULT, *named) if name)
    return None if known else parts[2]
