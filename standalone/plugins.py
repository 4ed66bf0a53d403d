"""Resolves plugin names in configurations to classes: Java names, short names, entry points, `plugin.path`, Python paths.

Plugins are imported on first use, and a failed import affects only that plugin. All names that Kafka accepts for
`org.apache.kafka.connect.file.FileStreamSourceConnector` work: the full name, `FileStreamSourceConnector` and `FileStreamSource`; for
transforms of key or value, `…InsertField$Value` and `InsertField$Value`. A Python class is named `package.module:Class` or
`package.module.Class`, or by its entry point.
"""

import importlib
import importlib.util
import logging
import re
import sys
import zlib
from pathlib import Path

from standalone import __version__
from standalone.config import class_name, load_class, nearest, parse_type
from standalone.connector import SinkConnector, SourceConnector
from standalone.errors import ConfigError, NotFoundError
from standalone.extras import advice, extra_of
from standalone.provider import ConfigProvider
from standalone.stage import Converter, FieldTransform, HeaderConverter, Predicate, Transform

log = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.1"  # the Kafka version whose behaviour the built-in classes implement

# kind -> (base class, REST's name of the kind (None: not listed there), entry-point group, suffix that a short name may omit)
KINDS = {
    "source": (SourceConnector, "source", "connectors", "Connector"),
    "sink": (SinkConnector, "sink", "connectors", "Connector"),
    "converter": (Converter, "converter", "converters", "Converter"),
    "header_converter": (HeaderConverter, "header_converter", "converters", "Converter"),
    "transform": (Transform, "transformation", "transforms", "Transformation"),
    "predicate": (Predicate, "predicate", "predicates", "Predicate"),
    "config_provider": (ConfigProvider, None, "config_providers", "ConfigProvider"),
}
WANTED = {"connector": ("source", "sink"), **{kind: (kind,) for kind in KINDS}}

_BOTH = ("converter", "header_converter")
_NUMBERS = ("Boolean", "Short", "Integer", "Long", "Float", "Double")
_ON_A_PART = "Cast ExtractField Flatten HeaderFrom HoistField InsertField MaskField ReplaceField SetSchemaMetadata TimestampConverter"
_ON_A_RECORD = "DropHeaders Filter InsertHeader RegexRouter TimestampRouter ValueToKey"
_PREDICATES = "HasHeaderKey RecordIsTombstone TopicNameMatches"


def _snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Java class -> (Python class, its kinds, the nested classes that it stands for)
BUILT_IN = {
    "org.apache.kafka.connect.storage.StringConverter": ("standalone.converters.string:StringConverter", _BOTH, ()),
    "org.apache.kafka.connect.json.JsonConverter": ("standalone.converters.json:JsonConverter", _BOTH, ()),
    "org.apache.kafka.connect.converters.ByteArrayConverter": ("standalone.converters.byte_array:ByteArrayConverter", _BOTH, ()),
    "io.confluent.connect.avro.AvroConverter": ("standalone.converters.avro.converter:AvroConverter", ("converter",), ()),
    "io.confluent.connect.protobuf.ProtobufConverter": ("standalone.converters.protobuf.converter:ProtobufConverter", ("converter",), ()),
    "io.confluent.connect.json.JsonSchemaConverter": ("standalone.converters.json_schema.converter:JsonSchemaConverter", ("converter",), ()),
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": (
        "standalone.converters.simple_header:SimpleHeaderConverter",
        ("header_converter",),
        (),
    ),
    **{
        f"org.apache.kafka.connect.converters.{name}Converter": (f"standalone.converters.numbers:{name}Converter", _BOTH, ())
        for name in _NUMBERS
    },
    **{
        f"org.apache.kafka.connect.transforms.{name}": (f"standalone.transforms.{_snake(name)}:{name}", ("transform",), inner)
        for names, inner in ((_ON_A_PART, ("Key", "Value")), (_ON_A_RECORD, ()))
        for name in names.split()
    },
    "standalone.transforms.sql.Sql": ("standalone.transforms.sql:Sql", ("transform",), ()),
    **{
        f"org.apache.kafka.connect.transforms.predicates.{name}": (f"standalone.predicates.{_snake(name)}:{name}", ("predicate",), ())
        for name in _PREDICATES.split()
    },
    **{
        f"org.apache.kafka.common.config.provider.{name}": (f"standalone.config_providers.{module}:{name}", ("config_provider",), ())
        for module, name in (("file", "FileConfigProvider"), ("directory", "DirectoryConfigProvider"), ("env", "EnvVarConfigProvider"))
    },
}


class Plugins:
    """All available plugins. Thread-safe: concurrent lookups are idempotent."""

    def __init__(self, plugin_path=()):
        self._built_in = [_Entry(target, kinds, java_name, inner) for java_name, (target, kinds, inner) in BUILT_IN.items()]
        self._files = _plugin_files(plugin_path)
        self._declared = None  # entry points, loaded on first use
        self._complained = set()

    def find(self, kind, name, known_only=False):
        """The class of a kind ("connector", or one of KINDS) by any of its names.

        The name package.module:Class imports its module. With `known_only` only built-in plugins, `plugin.path`, entry points and modules
        already imported are searched: for requests that must not choose which code runs.
        Raises NotFoundError if no class has this name, ConfigError if it is ambiguous or the class is unsuitable.
        """
        found = self._named(kind, name, self._candidates(kind, name))
        if not found and (python_class := self._python_class(name, known_only)) is not None:
            found = [python_class]
        # Last, because it imports all plugins: a third party's class declares its Java class only when imported.
        found = found or self._named(kind, name, [entry for entry in self._entry_points() if entry.offers(kind)], insist=False)
        if not found:
            raise NotFoundError(self._unknown(kind, name))
        if len(found) > 1:
            raise ConfigError(f"'{name}' is ambiguous: {' or '.join(sorted(map(class_name, found)))}. Use the full class name.")
        return self._checked(kind, name, found[0])

    def class_finder(self, kinds):
        """A `find_class` for ConfigDef.parse: `kinds(option name)` returns the plugin kind of an option, or None."""

        def find_class(option, text):
            kind = kinds(option)
            if kind is None:
                return parse_type(option, text, "CLASS")
            try:
                return self.find(kind, text)
            except (NotFoundError, ConfigError) as error:
                raise ConfigError(f"{option}: {error}", {option: str(error)}) from error

        return find_class

    def classes(self, kind):
        """All classes of a kind by name. Imports them; each failed import is skipped with a warning."""
        found = {}
        for entry in self._all_entries(kind):
            try:
                loaded = self._loaded(entry)
            except ConfigError as error:
                if entry.target not in self._complained:
                    self._complained.add(entry.target)
                    # A missing extra is a choice, not a fault.
                    log.log(logging.INFO if extra_of(error.__cause__) else logging.WARNING, "Plugin %s is left out: %s", entry.label, error)
                continue
            for each in loaded:
                if _stands_for_itself(each) and _is_kind(each, kind):
                    found.setdefault(class_name(each), each)
        return [found[name] for name in sorted(found)]

    def list(self):
        """[{class, type, version}] of all plugins, as in the REST API: connectors first, each kind sorted by name."""
        plugins = [
            {"class": class_name(each), "type": rest_type, "version": self.version(each)}
            for kind, (_, rest_type, _, _) in KINDS.items()
            if rest_type is not None
            for each in self.classes(kind)
        ]
        return sorted(plugins, key=lambda plugin: (plugin["type"] not in ("source", "sink"), plugin["type"], plugin["class"]))

    def version(self, plugin):
        """The version that a class declares, or of the Kafka that it implements, or of its distribution."""
        if plugin.version:
            return str(plugin.version)
        if class_name(plugin).startswith("org.apache.kafka."):
            return KAFKA_VERSION
        top = plugin.__module__.partition(".")[0]
        if top == __name__.partition(".")[0]:
            return __version__
        for entry in self._entry_points():
            if entry.distribution and entry.module.partition(".")[0] == top:
                return entry.distribution.version
        return "undefined"

    # --- Look-up -------------------------------------------------------------------------------------------

    def _candidates(self, kind, name):
        """Entries that may have this name, without importing them."""
        outer = name.partition("$")[0]
        exact = [entry for entry in self._built_in if entry.java_name == outer and entry.is_there()]
        simple = re.split(r"[.:]", outer)[-1]
        return exact or [entry for entry in self._all_entries(kind) if entry.has(kind, simple)]

    def _named(self, kind, name, entries, insist=True):
        """The classes of these entries with this name. If there are none and `insist` is set, a failed import is raised."""
        found, failed = {}, None
        for entry in entries:
            try:
                loaded = self._loaded(entry)
            except ConfigError as error:
                failed = failed or error
                continue
            for each in loaded:
                declared = entry.name and (entry.name if each is loaded[0] else f"{entry.name}${each.__name__}")
                if name == declared or name in _names(each, kind):
                    found.setdefault(class_name(each), each)
        if not found and failed and insist:
            raise failed
        return list(found.values())

    def _all_entries(self, kind):
        known = {}
        for entry in (*self._built_in, *self._entry_points(), *self._files):
            if entry.offers(kind) and entry.is_there():
                known.setdefault(entry.target, entry)
        return list(known.values())

    def _entry_points(self):
        if self._declared is None:
            self._declared = _declared_entries()
        return self._declared

    def _loaded(self, entry):
        try:
            return entry.load()
        except Exception as error:  # importing a third party's module may raise anything
            raise ConfigError(f"{entry.label} cannot be loaded: {type(error).__name__}: {error}{advice(error)}") from error

    def _python_class(self, name, known_only):
        path = name.replace("$", ".")
        try:
            return load_class(path, sys.modules.get if known_only else importlib.import_module)
        except Exception as error:
            raise ConfigError(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error

    def _checked(self, kind, name, found):
        if not _is_kind(found, kind):
            kinds = [each for each in KINDS if _is_kind(found, each)]
            what = f"a {' and a '.join(kinds)}" if kinds else "not a plugin"
            raise ConfigError(f"'{name}' is {what}, but a {kind} is required: a class derived from {_bases(kind)}.".replace("_", " "))
        if not _stands_for_itself(found):
            raise ConfigError(f"'{name}' applies to the key or the value: write '{name}$Key' or '{name}$Value'.")
        return found

    def _unknown(self, kind, name):
        names = sorted({known for entry in self._all_entries(kind) for known in entry.short_names(kind)})
        close = nearest(name.rpartition(".")[2], names)
        parts = name.split(".")
        java = len(parts) > 2 and parts[0] in ("com", "org", "io", "net", "de") and parts[-1][:1].isupper()
        said = f"No {kind.replace('_', ' ')} '{name}' is known"
        said += ": this Java class has no Python counterpart here, and jars are not run. " if java else ". "
        said += f"Did you mean '{close}'? " if close else ""
        said += f"Known: {', '.join(names)}. " if names else ""
        return said + "Name your own class by its Python path, 'package.module:Class', or put it into a folder of 'plugin.path'."


# --- One source of plugins -----------------------------------------------------------------------------------------


class _Entry:
    """A class listed in a table; imported by `load`."""

    def __init__(self, target, kinds, java_name=None, inner=(), name=None, distribution=None):
        self.target = target
        self.kinds = kinds
        self.java_name = java_name
        self.inner = inner
        self.name = name  # of the entry point
        self.distribution = distribution
        self.module, _, self._path = target.partition(":")
        self.label = f"{name} ({target})" if name else java_name

    def offers(self, kind):
        return any(each in self.kinds for each in WANTED[kind])

    def is_there(self):
        """Whether the module exists: the table may list built-ins of later versions."""
        return self.name is not None or importlib.util.find_spec(self.module) is not None

    def has(self, kind, simple):
        return simple in self._simple_names(kind)

    def _simple_names(self, kind):
        return {*_pruned(self._path.rpartition(".")[2], kind), *([self.name] if self.name else ())}

    def short_names(self, kind):
        shortest = min(self._simple_names(kind), key=len)
        return [f"{shortest}${name}" for name in self.inner] or [shortest]

    def load(self):
        """The class, or its nested classes if it stands for them."""
        top = importlib.import_module(self.module)
        for part in self._path.split("."):
            top = getattr(top, part)
        return [top, *_parts(top)]


class _File:
    """A Python file or package in a folder of `plugin.path`; importing it shows what it defines."""

    name = java_name = distribution = None

    def __init__(self, path):
        self.target = str(path)
        self.label = f"file {path}"
        self._source = path / "__init__.py" if path.is_dir() else path
        self._module = None
        self.module = path.stem

    def offers(self, kind):
        return True

    def is_there(self):
        return True

    def has(self, kind, simple):
        """Whether it may define a class of that name: its source must contain the name."""
        texts = self._source.parent.rglob("*.py") if self._source.name == "__init__.py" else [self._source]
        return any(simple in text.read_text(encoding="utf-8", errors="replace") for text in texts)

    def short_names(self, kind):
        if self._module is None:
            return re.findall(r"^class (\w+)", self._source.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        return [each.__qualname__.replace(".", "$") for each in self.load() if _is_kind(each, kind) and _stands_for_itself(each)]

    def load(self):
        if self._module is None:
            self._module = _import_file(self.module, self._source)
        own = [each for each in vars(self._module).values() if isinstance(each, type) and self._is_own(each)]
        return [part for each in own for part in (each, *_parts(each))]

    def _is_own(self, found):
        inside = found.__module__ == self._module.__name__ or found.__module__.startswith(self._module.__name__ + ".")
        return inside and not found.__name__.startswith("_")


def _import_file(name, source):
    """Import it under its own name, unless another module has that name."""
    folder = str(source.parent.parent if source.name == "__init__.py" else source.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # it may import files in the same folder
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin == str(source):
        return importlib.import_module(name)
    name = f"{name}_{zlib.crc32(str(source).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, source)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _plugin_files(plugin_path):
    files, jars = [], []
    for folder in filter(None, plugin_path):
        folder = Path(folder).expanduser().absolute()
        if not folder.exists():
            log.warning("plugin.path: %s does not exist and is ignored.", folder)
        for path in _candidates(folder):
            (jars if path.suffix == ".jar" else files).append(path)
    if jars:
        log.info("plugin.path: %d jars are skipped, beginning with %s: Java plugins cannot run here.", len(jars), jars[0])
    return [_File(path) for path in dict.fromkeys(files)]


def _candidates(path, deep=True):
    """The Python files and packages, and the jars, of an entry of plugin.path: the entry itself, in it, or one level deeper."""
    if path.is_file():
        return [path] if path.suffix in (".py", ".jar") and not path.name.startswith("_") else []
    if not path.is_dir():
        return []
    if (path / "__init__.py").exists():
        return [path]
    return [found for each in sorted(path.iterdir()) if deep or each.is_file() for found in _candidates(each, deep=False)]


def _declared_entries():
    """Entry points of all installed distributions, and of the checkout if this program runs from one."""
    from importlib import metadata

    entries = {}
    for suffix in sorted({group for _, _, group, _ in KINDS.values()}):
        kinds = tuple(kind for kind, (_, _, group, _) in KINDS.items() if group == suffix)
        group = f"connect_standalone.{suffix}"
        found = [(point.name, point.value, point.dist) for point in metadata.entry_points(group=group)]
        for name, target, distribution in found + [(name, target, None) for name, target in _checkout().get(group, ())]:
            entries.setdefault((suffix, target), _Entry(target, kinds, name=name, distribution=distribution))
    return list(entries.values())


def _checkout():
    """{group: [(name, target)]} from the setup.cfg beside this package: finds plugins of a checkout that is not installed."""
    path = Path(__file__).parent.parent / "setup.cfg"
    if not path.exists():
        return {}
    from configparser import ConfigParser

    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read(path, encoding="utf-8")
    if parser.get("metadata", "name", fallback=None) != "connect-standalone" or not parser.has_section("options.entry_points"):
        return {}
    groups = {}
    for group, lines in parser.items("options.entry_points"):
        pairs = [line.partition("=") for line in lines.splitlines() if "=" in line]
        groups[group] = [(name.strip(), target.strip()) for name, _, target in pairs]
    return groups


def _names(found, kind):
    """All names of a class except those from entry points."""
    module, path = found.__module__, found.__qualname__
    inner = path.replace(".", "$")
    java_name = class_name(found)
    simple = {inner, java_name.rpartition(".")[2]}
    return {java_name, *(f"{module}{mark}{each}" for mark in ".:" for each in (path, inner)), *(n for s in simple for n in _pruned(s, kind))}


def _pruned(simple, kind):
    """A simple name, with and without the suffix of its kind."""
    suffixes = {KINDS[each][3] for each in WANTED[kind]} | ({"HeaderConverter"} if kind == "header_converter" else set())
    return {simple, *(simple[: -len(suffix)] for suffix in suffixes if simple.endswith(suffix) and simple != suffix)}


def _parts(found):
    """The nested classes of a transform of key or value: `X.Key` and `X.Value`."""
    return [] if _stands_for_itself(found) else [found.Key, found.Value]


def _stands_for_itself(found):
    return not (issubclass(found, FieldTransform) and found.where is None)


def _is_kind(found, kind):
    return isinstance(found, type) and any(issubclass(found, KINDS[each][0]) for each in WANTED[kind])


def _bases(kind):
    return " or ".join(KINDS[each][0].__name__ for each in WANTED[kind])
