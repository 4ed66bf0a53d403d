"""Targets of topics: name an index, alias or data stream, create it if needed, and update its mapping."""

import logging

from connectors.elasticsearch.keys import DATASTREAM, DISABLED, is_stream, resources
from connectors.elasticsearch.mapping import lacking, mapping_of
from connectors.elasticsearch.server import Refused, quoted
from standalone import ConnectError, DataError

log = logging.getLogger(__name__)

MOST_BYTES = 255
_FORBIDDEN = set('\\/*?"<>| ,#:')
_THERE = ("resource_already_exists_exception",)


def index_name(topic):
    """Return a topic's index name: lower case, truncated, without a leading - or _. Raise DataError if it is invalid."""
    name = topic.lower()[:MOST_BYTES]
    if name.startswith(("-", "_")):
        name = name[1:]
    if name in (".", ".."):
        name = name.replace(".", "dot")
    wrong = sorted(_FORBIDDEN & set(name))
    if wrong or not name or name.startswith(("-", "_", "+")) or len(name.encode()) > MOST_BYTES:
        found = f"it contains {' '.join(wrong)}" if wrong else "it is empty, too long, or begins with - _ or +"
        raise DataError(f"The topic '{topic}' cannot be the name of an index: {found}. Rename it with a transform such as RegexRouter.")
    return name


class Targets:
    """The targets of one task. Each is looked up on the server once."""

    def __init__(self, config, server):
        self._config = config
        self._server = server
        self._is_stream = is_stream(config)
        self._usage = config["external.resource.usage"].upper()
        self._named = resources(config)
        self._names = {}  # topic -> name
        self._there = set()
        self._mapped = {}  # name -> schemas whose fields it has

    def name(self, topic):
        found = self._names.get(topic)
        if found is None:
            found = self._names[topic] = self._name(topic)
        return found

    def _name(self, topic):
        if self._usage != DISABLED:
            if topic not in self._named:
                raise DataError(f"The topic '{topic}' has no pair in topic.to.external.resource.mapping, which external.resource.usage requires.")
            return self._named[topic]
        if not self._is_stream:
            return index_name(topic)
        config = self._config
        parts = (config["data.stream.type"], config["data.stream.dataset"], config["data.stream.namespace"])
        return "-".join(part.lower().replace("${topic}", topic.lower()) for part in parts)[:100]

    def prepare(self, name, schema):
        """Create the target if missing, and add the schema's fields to its mapping (None: no fields). Raise the server's error."""
        if name not in self._there:
            self._make(name, schema)
            self._there.add(name)
        known = self._mapped.setdefault(name, set())
        if schema is not None and schema not in known:
            self._map(name, schema)
            known.add(schema)

    def forget(self, name):
        """Look it up again before the next use."""
        self._there.discard(name)
        self._mapped.pop(name, None)

    def _make(self, name, schema):
        where = f"/{quoted(name)}"
        status, answer = self._server.send("HEAD", where)
        if status == 200:
            return
        if status != 404:
            raise self._server.refusal(status, answer, f"look for '{name}'")
        if self._usage != DISABLED:
            kind = "data stream" if self._usage == DATASTREAM else "index, alias or data stream"
            usage = f"external.resource.usage={self._usage.lower()}"
            raise ConnectError(f"There is no {kind} '{name}', and {usage} does not create one. Create it, then restart the task.")
        body = {"mappings": mapping_of(schema)} if schema is not None else {}
        try:
            if self._is_stream:
                self._server.ask("PUT", f"/_data_stream/{quoted(name)}", what=f"create the data stream '{name}'")
            else:
                self._server.ask("PUT", where, body, what=f"create the index '{name}'")
        except Refused as refused:
            if refused.kind in _THERE:
                return  # another task created it first
            hint = f" Is there an index template with a data_stream for '{name}'?" if self._is_stream else ""
            raise ConnectError(f"{refused}{hint}") from refused
        log.info("Created the %s '%s'", "data stream" if self._is_stream else "index", name)

    def _map(self, name, schema):
        """Add the fields that it lacks. Those of another kind stay: the server judges each document."""
        wanted = mapping_of(schema).get("properties", {})
        answer = self._server.ask("GET", f"/{quoted(name)}/_mapping", what=f"read the mapping of '{name}'")
        found = [each.get("mappings", {}).get("properties", {}) for each in answer.values()]
        there = found[-1] if found else {}
        more, conflicts = lacking(wanted, there)
        if more:
            try:
                self._server.ask("PUT", f"/{quoted(name)}/_mapping", {"properties": more}, what=f"add fields to the mapping of '{name}'")
            except Refused as refused:
                raise ConnectError(f"{refused} The schema's fields do not fit '{name}': reindex it, or set schema.ignore=true.") from refused
            log.info("Added to the mapping of '%s': %s", name, ", ".join(sorted(more)))
        for conflict in conflicts:
            log.warning(
                "In '%s' %s. The server rejects documents that do not fit; connectctl reindex creates an index with another mapping.", name, conflict
            )
