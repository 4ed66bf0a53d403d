"""A plan with its inputs, its output, and the conversion of rows to records."""

import hashlib
import os
import re

from standalone import properties
from standalone.private import write_private
from standalone.streams import columns as c
from standalone.streams.frames import frame_of
from standalone.streams.output import OutputTopic
from standalone.streams.settings import Settings
from standalone.streams.sql.catalog import DELIMITED, quoted
from standalone.streams.sql.plan import END, KEEP, START, TIMESTAMP

_TASK_RECORDS = 125_000  # of a backlog in one Spark task: all cores get a part of a batch, and a task still has enough to do
# The result depends on the order of rows: one task reads the whole partition.
_IN_ORDER = re.compile(r"(?i)\bJOIN\b|\b(?:collect_list|array_agg|first|first_value|last|last_value|any_value|listagg|string_agg)\s*\(")


class Place:
    """Passes settings to other processes in files that only the worker's user can read. `clients` are the worker's LogClients."""

    def __init__(self, folder, clients, worker_config, registry_url):
        self._folder = os.path.join(folder, "clients")
        self.clients = clients
        self._config = worker_config
        self.registry_url = registry_url
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def props(self, source):
        """Return the properties of a stream or table: its converters, and the worker's clients."""
        found = {}
        for kind in ("consumer", "producer"):
            found.update({f"{kind}.{key}": str(value) for key, value in self.clients.properties(kind).items()})
        admin = {key: str(value) for key, value in self.clients.properties("admin").items()}
        found.update({key: value for key, value in admin.items() if key.startswith(("security.", "sasl.", "ssl."))})
        found["bootstrap.servers"] = admin["bootstrap.servers"]
        for part in ("key", "value"):  # credentials for the registry
            prefix = f"{part}.converter."
            own = {key: value for key, value in self._config.originals.items() if key.startswith(prefix)}
            found.update({key: value for key, value in own.items() if ".auth." in key or ".ssl." in key or key.endswith("user.info")})
        return {**found, **source.converter_keys(self.registry_url())}

    def options(self, source):
        """Return options for the data source, without secrets."""
        text = properties.dump(self.props(source))
        path = os.path.join(self._folder, f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.properties")
        if not os.path.exists(path):
            write_private(path, text)  # queries on the same stream may start at the same moment
        found = {"config": path, "topics": source.topic, **dict(form(source))}
        return found

    def settings(self, source):
        return Settings(self.props(source))

    def clear(self):
        """Delete the files when no process reads them any more."""
        for name in os.listdir(self._folder):
            os.unlink(os.path.join(self._folder, name))


def form(source):
    """Return (option, value) for special record formats of a topic."""
    if source.value_format == DELIMITED:
        yield "value.delimiter", source.delimiter
    if source.windows:
        yield "key.windowed", source.windows
        if source.window_ms:
            yield "key.window.ms", str(source.window_ms)


class Made:
    """Input of a query's runner. `sink` is the Source that it writes."""

    def __init__(self, name, plan, sink, place, config, functions=()):
        self.name, self.plan, self.sink, self.functions = name, plan, sink, functions
        self._place, self._config = place, config
        self.clients = place.clients

    @property
    def state_store(self):
        return self._config["state.store"]

    def options_of(self, source, is_stream):
        options = self._place.options(source)
        if is_stream:
            options["startingOffsets"] = self._config["auto.offset.reset"]
            options["maxOffsetsPerTrigger"] = str(self._config["max.offsets.per.batch"])
            options["errors.tolerance"] = self._config["errors.tolerance"]
            if not _IN_ORDER.search(self.plan.sql):
                options["maxRecordsPerPartition"] = str(_TASK_RECORDS)
        return options

    def frame(self, session):
        """Return the result with the columns of records (columns.py)."""
        return projected(frame_of(session, self.plan, self.options_of), self.plan, self.sink)

    def new_output(self):
        settings = self._place.settings(self.sink)
        special = dict(form(self.sink))
        encoder = c.Encoder(
            settings.converter("key"), settings.converter("value"), delimiter=special.get("value.delimiter"), windows=special.get("key.windowed")
        )
        configs = {"cleanup.policy": "compact"} if self.sink.kind == "TABLE" and not self.sink.windows else {}
        transactional = self._config["exactly.once"].lower() != "false"
        return OutputTopic(
            self.name, self.sink.topic, settings, encoder, transactional=transactional, partitions=self.sink.partitions, configs=configs
        )


def projected(frame, plan, sink):
    names = {name.lower() for name in plan.names}
    found, keys = [], sink.keys

    def column(name, kind):
        return f"CAST({quoted(name)} AS {kind})" if name.lower() in names else f"CAST(NULL AS {kind})"

    if keys:
        struct = len(keys) > 1 or sink.key_format in ("AVRO", "PROTOBUF", "JSON_SR")
        fields = ", ".join(f"'{name}', {column(name, kind)}" for name, kind, _ in keys)
        found.append(f"named_struct({fields}) AS {c.KEY}" if struct else f"{column(*keys[0][:2])} AS {c.KEY}")
    for name, kind, _ in sink.values:
        found.append(f"{column(name, kind)} AS {c.VALUE if sink.is_bare else quoted(name)}")
    found.append(f"{TIMESTAMP} AS {c.TIMESTAMP}")
    if KEEP in frame.columns:
        found.append(f"NOT {KEEP} AS {c.TOMBSTONE}")
    if sink.windows:
        found += [f"{START} AS {c.WINDOW_START}", f"{END} AS {c.WINDOW_END}"]
    made = frame.selectExpr(*found)
    return made.where(f"{c.KEY} IS NOT NULL") if sink.kind == "TABLE" else made
