"""The keys that every connector has, and one connector's configuration: everything that its texts say, checked at once.

`ConnectorConfig.of` raises one ConfigError with all that is wrong: in the connector's own keys, its converters, transforms and predicates.
`examine` gives the same verdict option by option, as the REST API's validate shows it.
"""

from dataclasses import replace
from typing import NamedTuple

from standalone.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    SHORT,
    STRING,
    WIDTH_LONG,
    WIDTH_MEDIUM,
    WIDTH_SHORT,
    Check,
    Config,
    ConfigDef,
    ConfigValue,
    Option,
    at_least,
    case_insensitive_one_of,
    class_name,
    non_empty,
    parse_type,
    regex_compiles,
)
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError, NotFoundError
from standalone.runtime import restarts, unread_keys
from standalone.runtime.config_values import Providers
from standalone.runtime.topic_groups import topic_groups
from standalone.runtime.worker_config import CONVERTERS, converter_props
from standalone.secrets import mask
from standalone.stage import Converter, HeaderConverter

COMMON, ERRORS, TRANSFORMS, PREDICATES = "Common", "Error Handling", "Transforms", "Predicates"
TOPICS, EXACTLY_ONCE, OFFSETS = "Topic Creation", "Exactly Once Support", "offsets.topic"

_STAGE_KEYS = ("type", "plugin.version", "predicate", "negate")


def _option(group, order, width, name, type, importance, display, doc, default=REQUIRED, check=None):
    return Option(name, type, importance, doc, default, check, None, group, order, width, display)


def _no_controls(name, value):
    """A text that is not empty and has no control characters."""
    if value is not None and (value == "" or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in value)):
        raise ConfigError("must not be empty nor hold control characters")


def _version(group, order, name, display, importance=LOW, width=WIDTH_SHORT):
    doc = "Version of that plugin. There is one version of each here."
    return _option(group, order, width, name, STRING, importance, display, doc, None)


_aliases = Check("names, each once", lambda value: len(set(value)) == len(value) and "" not in value, "must name each alias once")
_CONVERTER_DOC = "Converter of this connector's {} instead of the worker's; it takes its keys from this configuration only."

CONNECTOR = ConfigDef(
    _option(
        *(COMMON, 1, WIDTH_MEDIUM, "name", STRING, HIGH, "Connector name", "Name of the connector; no two have the same."),
        check=_no_controls,
    ),
    _option(
        *(COMMON, 2, WIDTH_LONG, "connector.class", STRING, HIGH, "Connector class"),
        "The connector: a Java class that has a counterpart here, its simple name with or without Connector, the name of an entry point, "
        "or a Python class as package.module:Class.",
    ),
    _version(COMMON, 3, "connector.plugin.version", "Connector version", MEDIUM, WIDTH_MEDIUM),
    _option(
        *(COMMON, 4, WIDTH_SHORT, "tasks.max", INT, HIGH, "Tasks max", "How many tasks the connector may have at most."),
        *(1, at_least(1)),
    ),
    _option(
        *(COMMON, 5, WIDTH_SHORT, "tasks.max.enforce", BOOLEAN, LOW, "Enforce tasks max"),
        *("Whether a connector that makes more tasks than tasks.max fails.", True),
    ),
    *(
        option
        for place, (part, what) in enumerate((("key", "keys"), ("value", "values"), ("header", "headers")))
        for option in (
            _option(
                *(COMMON, 6 + 2 * place, WIDTH_SHORT, f"{part}.converter", CLASS, LOW, f"{part.capitalize()} converter class"),
                *(_CONVERTER_DOC.format(what), None),
            ),
            _version(COMMON, 7 + 2 * place, f"{part}.converter.plugin.version", f"{part.capitalize()} converter version"),
        )
    ),
    _option(
        *(TRANSFORMS, 12, WIDTH_LONG, "transforms", LIST, LOW, "Transforms"),
        *("Aliases of the transforms, in the order in which records pass them. Each is described by transforms.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(PREDICATES, 13, WIDTH_LONG, "predicates", LIST, LOW, "Predicates"),
        *("Aliases of the predicates that transforms may name. Each is described by predicates.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(COMMON, 14, WIDTH_MEDIUM, "config.action.reload", STRING, LOW, "Reload Action"),
        "What happens when a value that a config provider gave has expired: `restart` the connector, or `none`.",
        *("restart", case_insensitive_one_of("none", "restart")),
    ),
    _option(
        *(ERRORS, 1, WIDTH_MEDIUM, "errors.retry.timeout", LONG, MEDIUM, "Retry Timeout for Errors"),
        "Milliseconds for which a converter or transform that fails for the moment is tried again, with pauses that double from 300 ms on; "
        "-1 sets no bound.",
        *(0, at_least(-1)),
    ),
    _option(
        *(ERRORS, 2, WIDTH_MEDIUM, "errors.retry.delay.max.ms", LONG, MEDIUM, "Maximum Delay Between Retries for Errors"),
        *("Longest pause between two attempts, of a poll or a put, too.", 60000, at_least(0)),
    ),
    _option(
        *(ERRORS, 3, WIDTH_SHORT, "errors.tolerance", STRING, MEDIUM, "Error Tolerance"),
        "`none`: a record that cannot be converted or transformed fails the task. `all`: it is skipped.",
        *("none", case_insensitive_one_of("none", "all")),
    ),
    _option(
        *(ERRORS, 4, WIDTH_SHORT, "errors.log.enable", BOOLEAN, MEDIUM, "Log Errors"),
        *("Whether each record that fails is one ERROR line in the log, with the stage, the class and what was wrong.", False),
    ),
    _option(
        *(ERRORS, 5, WIDTH_SHORT, "errors.log.include.messages", BOOLEAN, MEDIUM, "Log Error Details"),
        *("Whether that line says which record it was: topic, partition, offset and timestamp, never its key or value.", False),
    ),
)

SOURCE = CONNECTOR.extend(
    _option(
        *(TOPICS, 1, WIDTH_LONG, "topic.creation.groups", LIST, LOW, "Topic Creation Groups"),
        "Names of groups of topics, each described by topic.creation.NAME.*. All other topics are made by topic.creation.default.*.",
        *("", _aliases),
    ),
    _option(
        *(EXACTLY_ONCE, 2, WIDTH_SHORT, "exactly.once.support", STRING, MEDIUM, "Exactly once support"),
        "Whether the connector must give exactly-once guarantees. Standalone mode, as Java's, does not use it.",
        *("requested", case_insensitive_one_of("requested", "required")),
    ),
    _option(
        *(EXACTLY_ONCE, 3, WIDTH_SHORT, "transaction.boundary", STRING, MEDIUM, "Transaction Boundary"),
        "Where transactions end. Standalone mode, as Java's, does not use it.",
        *("poll", case_insensitive_one_of("poll", "interval", "connector")),
    ),
    _option(
        *(EXACTLY_ONCE, 4, WIDTH_SHORT, "transaction.boundary.interval.ms", LONG, LOW, "Transaction boundary interval"),
        *("Length of a transaction where transaction.boundary=interval.", None, at_least(1)),
    ),
    _option(
        *(OFFSETS, 1, WIDTH_LONG, "offsets.storage.topic", STRING, LOW, "Offsets topic"),
        *("Topic for this connector's offsets. Standalone mode, as Java's, keeps them in a file.", None, non_empty),
    ),
)

SINK = CONNECTOR.extend(
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics", LIST, HIGH, "Topics", "Topics to read, separated by commas. This or topics.regex.", ""),
    ),
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics.regex", STRING, HIGH, "Topics regex"),
        *("Regular expression of the names of topics to read, those that come later too. This or topics.", "", regex_compiles),
    ),
    _option(
        *(ERRORS, 6, WIDTH_MEDIUM, "errors.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
        *("Topic that takes the records that fail, as they stood in the log, whatever errors.tolerance says; empty for none.", ""),
    ),
    _option(
        *(ERRORS, 7, WIDTH_MEDIUM, "errors.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
        *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic, where it has to be made.", 3),
    ),
    _option(
        *(ERRORS, 8, WIDTH_MEDIUM, "errors.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
        *("Whether such a record says in headers where it came from and what was wrong.", False),
    ),
)
DEFINITIONS = {"source": SOURCE, "sink": SINK}

_RESTARTS = ConfigDef(*(replace(option, default=None, doc=f"{option.doc} Default: the worker's.") for option in restarts.OPTIONS))

# Keys that Java has not. A configuration without them is shown as Java shows it.
OWN = {
    "source": ConfigDef(
        *_RESTARTS,
        _option(
            *(ERRORS, 6, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
            *("Topic that takes the records of a source that fail in a transform, a converter or the producer; empty for none.", ""),
        ),
        _option(
            *(ERRORS, 7, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
            *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic, where it has to be made; -1 leaves it to the broker."),
            *(-1, at_least(-1)),
        ),
        _option(
            *(ERRORS, 8, WIDTH_MEDIUM, "errors.source.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
            *("Whether such a record says in headers where it came from and what was wrong.", True),
        ),
    ),
    "sink": _RESTARTS,
}

_CONDITION = ConfigDef(
    Option("predicate", STRING, MEDIUM, "Alias of the predicate that decides whether the transform applies to a record.", None),
    Option("negate", BOOLEAN, MEDIUM, "Whether it applies to the records that the predicate does not fit.", False),
)

class LinkConfig(NamedTuple):
    """A transform of the chain with its condition; the configurations are texts."""

    alias: str
    transform: type
    config: dict
    predicate: type | None
    predicate_alias: str | None
    predicate_config: dict
    negate: bool

    def build(self):
        """(alias, transform, predicate or None, negate), configured."""
        predicate = self.predicate.of(self.predicate_config) if self.predicate else None
        return self.alias, self.transform.of(self.config), predicate, self.negate


class ConnectorConfig(Config):
    """Every parsed value, the connector's own among them. `warnings` are sentences about keys that have no effect."""

    def __init__(self, values, resolved, connector_class, kind, topic_groups, warnings):
        super().__init__(values, resolved.texts)
        self.references = resolved.references  # key -> what was given, of the keys that hold a value from a config provider
        self.ttl_ms = resolved.ttl_ms
        self.connector_class = connector_class
        self.kind = kind  # source or sink
        self.warnings = warnings
        self._topic_groups = topic_groups

    @classmethod
    def of(cls, props, plugins, worker=None):
        """From texts. Raises one ConfigError with every wrong key. `worker` (a WorkerConfig) brings its converters and its override policy."""
        resolved = (worker.providers if worker is not None else Providers()).resolve(props)
        props = resolved.texts
        found = examine(props, plugins, worker)
        errors = {value.name: value.errors[0] for _, value in found if value.errors}
        values = {value.name: value.value for _, value in found}
        kind, connector_class, _ = _connector_class(props, plugins)
        for alias in _list(props, "transforms"):
            predicate = values.get(f"transforms.{alias}.predicate")
            if predicate and predicate not in _list(props, "predicates"):
                known = ", ".join(_list(props, "predicates")) or "none"
                errors[f"transforms.{alias}.predicate"] = f"names the predicate '{predicate}', which is not in 'predicates' ({known})"
        groups, wrong = topic_groups(props) if kind == "source" else ([], {})
        errors.update(wrong)
        if errors:
            raise ConfigError.of({key: mask(message) for key, message in errors.items()})
        values = {**OWN[kind].defaults(), **values}
        warnings = unread_keys.of_connector(
            *(props, found, OWN[kind].names(), CONVERTERS),
            takes_anything=connector_class.config_def is None,
            topic_creation=worker is None or worker["topic.creation.enable"],
        )
        return cls(values, resolved, connector_class, kind, groups, warnings)

    def renewed(self, texts, before):
        """Texts that were made with the plan `before`, with the values that config providers give now."""
        return {key: self.originals[key] if key in self.references and value == before.originals.get(key) else value for key, value in texts.items()}

    def links(self):
        """The chain: a LinkConfig for each transform, in order."""
        return [self._link(alias) for alias in self["transforms"]]

    def _link(self, alias):
        predicate_alias = self[f"transforms.{alias}.predicate"]
        return LinkConfig(
            alias,
            self[f"transforms.{alias}.type"],
            self._stage_texts(f"transforms.{alias}."),
            self[f"predicates.{predicate_alias}.type"] if predicate_alias else None,
            predicate_alias,
            self._stage_texts(f"predicates.{predicate_alias}.") if predicate_alias else {},
            self[f"transforms.{alias}.negate"],
        )

    def _stage_texts(self, prefix):
        return {key: value for key, value in self.with_prefix(prefix).items() if key not in _STAGE_KEYS}

    def converter(self, part, worker):
        """The configured converter of "key", "value" or "header": the connector's own if it names one, else the worker's."""
        key = f"{part}.converter"
        own = self.originals.get(key) is not None
        found = self[key] if own else worker[key]
        props = converter_props(key, self.originals if own else worker.originals)
        return found.of(props) if part == "header" else found.of(props, is_key=part == "key")

    def topic_groups(self):
        """Of a source: the TopicGroups that say how its topics are made, the default last; empty where nothing is said."""
        return self._topic_groups

    @property
    def subscription(self):
        """Of a sink: {"topics": names} or {"pattern": compiled}."""
        pattern = self["topics.regex"]
        return {"pattern": compile_java(pattern)} if pattern else {"topics": self["topics"]}


def examine(props, plugins, worker=None, recommend=False):
    """[(Option, ConfigValue)] of all keys that a connector with these texts has, each with what is wrong with it.

    Recommended values are looked up on demand only: for them every plugin is imported.
    """
    kind, connector_class, wrong = _connector_class(props, plugins)
    finder = plugins.class_finder(_plugin_kinds(props).get)
    props = {**props, **{f"{key}.converter.type": key.partition(".")[0] for key in CONVERTERS}}
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
    for key, message in {**wrong, **_late_errors(props, kind, connector_class, worker, plugins)}.items():
        if key not in found:
            option = Option(key, STRING, LOW, "A key that was given.", None)
            found[key] = (option, ConfigValue(key, props.get(key), [], []))
        found[key][1].errors.append(message)
    return list(found.values())


def _connector_class(props, plugins):
    """(kind or None, class or None, errors)."""
    name = (props.get("connector.class") or "").strip()
    if not name:
        return None, None, {}  # that it is missing is told by the definition
    for kind in ("source", "sink"):
        try:
            return kind, plugins.find(kind, name), {}
        except (ConfigError, NotFoundError):
            continue
    try:
        plugins.find("connector", name)
    except (ConfigError, NotFoundError) as error:
        return None, None, {"connector.class": str(error)}
    return None, None, {"connector.class": f"'{name}' is neither a source nor a sink"}


def _plugin_kinds(props):
    """{key: kind of plugin} of the keys that name classes."""
    kinds = dict(CONVERTERS)
    kinds.update({f"{prefix}type": kind for _, kind, prefix, _ in _stages(props)})
    return kinds


def _stages(props):
    """(alias, kind, prefix of its keys, group) of each transform and predicate."""
    for key, kind, group in (("transforms", "transform", TRANSFORMS), ("predicates", "predicate", PREDICATES)):
        for alias in dict.fromkeys(_list(props, key)):
            yield alias, kind, f"{key}.{alias}.", f"{group}: {alias}"


def _list(props, key):
    """A list of names, as far as it can be read."""
    value = props.get(key)
    return [item for item in parse_type(key, value, LIST) if item] if isinstance(value, str) else []


def _stage(plugins, finder, props, alias, kind, prefix, group, recommend):
    """The keys of one transform or predicate: its type, its version, and those that its class takes."""
    found = _found(finder, f"{prefix}type", props)
    what = "Transformation" if kind == "transform" else "Predicate"
    version = plugins.version(found) if found else None
    options = [
        Option(
            *(f"{prefix}type", CLASS, HIGH, f"Class of the {kind} '{alias}'."),
            recommend=_Choices(lambda: [class_name(each) for each in plugins.classes(kind)]) if recommend else None,
            **{"group": group, "order": 0, "width": WIDTH_LONG, "display": f"{what} type for {alias}"},
        ),
        Option(
            *(f"{prefix}plugin.version", STRING, HIGH, "Version of that plugin. There is one version of each here.", version),
            recommend=_Choices(lambda: [version] if version else []),
            **{"group": group, "order": 1, "width": WIDTH_LONG, "display": f"{what} version for {alias}"},
        ),
    ]
    if found:
        own = found.config_def or ConfigDef()
        options.append((own + _CONDITION if kind == "transform" else own).embed(prefix, group, 2))
    return ConfigDef(*options)


def _converter(finder, props, key):
    """The keys that a connector's own converter takes."""
    found = _found(finder, key, props)
    return found.config_def.embed(f"{key}.") if found and found.config_def else ConfigDef()


def _found(finder, key, props):
    try:
        return finder(key, props[key]) if props.get(key) else None
    except ConfigError:
        return None  # what is wrong is told where the key itself is checked


def _worker_defaults(plugins, finder, props, worker, connector_class, recommend):
    """{key: changes of its option}: the worker's converters as defaults, and the versions that there are."""
    changed = {}
    if connector_class is not None:
        changed["connector.plugin.version"] = _only(plugins.version(connector_class))
    for key, kind in CONVERTERS.items():
        changes = changed[key] = {"default": worker[key]} if worker is not None else {}
        if recommend:
            changes["recommend"] = _Choices(lambda kind=kind: [class_name(each) for each in plugins.classes(kind)])
        if props.get(key) or worker is not None:
            found = _found(finder, key, props) if props.get(key) else worker[key]
            changed[f"{key}.plugin.version"] = _only(plugins.version(found) if found else None)
    return changed


def _only(version):
    """A version to choose from; none where the class is unknown, and nothing to be seen."""
    return {"default": version, "recommend": _Choices(lambda: [version] if version else [], visible=version is not None)}


class _Choices:
    def __init__(self, choices, visible=True):
        self._choices = choices
        self._visible = visible

    def valid_values(self, name, parsed):
        return self._choices()

    def visible(self, name, parsed):
        return self._visible


def _late_errors(props, kind, connector_class, worker, plugins):
    """{key: message} of what no single option can tell."""
    errors = dict(worker.refused_overrides(props)) if worker is not None else {}
    errors.update(_converters_that_cannot_be_made(props, plugins))
    for alias in _list(props, "transforms"):
        condition = f"transforms.{alias}."
        if f"{condition}negate" in props and f"{condition}predicate" not in props:
            errors[f"{condition}type"] = f"{condition}negate is given, but no {condition}predicate that it would negate"
    if kind == "sink":
        errors.update(_sink_errors(props))
    if connector_class is not None:
        errors.update(connector_class().validate({key: value for key, value in props.items() if value is not None}) or {})
    return errors


def _converters_that_cannot_be_made(props, plugins):
    errors, finder = {}, plugins.class_finder(CONVERTERS.get)
    for key in CONVERTERS:
        found = _found(finder, key, props)
        try:
            if found in (Converter, HeaderConverter):
                raise TypeError("it is the base of all others")
            if found is not None:
                found()
        except Exception as error:  # a stranger's code
            errors[key] = f"{props[key]} cannot be made: {type(error).__name__}: {error}"
    return errors


def _sink_errors(props):
    topics, regex = _list(props, "topics"), (props.get("topics.regex") or "").strip()
    if bool(topics) == bool(regex):
        said = "both are given; a sink reads either" if topics else "neither is given; a sink needs one of them"
        return {key: f"topics and topics.regex: {said}" for key in ("topics", "topics.regex")}
    dead_letters = (props.get("errors.deadletterqueue.topic.name") or "").strip()
    try:
        reads_it = dead_letters and (dead_letters in topics or regex and compile_java(regex).fullmatch(dead_letters))
    except ConfigError:
        return {}
    if reads_it:
        key = "topics" if dead_letters in topics else "topics.regex"
        return {key: f"names '{dead_letters}', the sink's own errors.deadletterqueue.topic.name: its failures would come back to it for ever"}
    return {}


