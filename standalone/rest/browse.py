"""/ui/api: data for the web page beyond Connect's API: throughput, topics and records, lag of sinks."""

from standalone.errors import BadRequestError, LogError, NotFoundError
from standalone.rest.resource import json_answer, resource
from standalone.rest.schemas import Decoded
from standalone.rest.throughput import Throughput
from standalone.runtime.log_view import MOST_RECORDS
from standalone.runtime.offsets.changes import OFFSET, PARTITION, TOPIC

MOST_SHOWN_BYTES = 16 << 10  # per key, value or header
_MOST_HEADERS = 100
_LIMIT = 50

WORDS = frozenset(  # member names in responses of /ui/api
    "begin bootstrap bytes committed complete connectors cut embedded encoding end headers key lag name offset offsets partition partitions record "
    "records searched task text time timestamp topic utf-8 hex value schema".split()
)


def routes(herder, worker):
    throughput = Throughput(herder, worker.clock)

    def shown_throughput(request):
        return json_answer(throughput.look(_number(request, "since", 0)))

    def topics(request):
        return json_answer(worker.log_view().topics())

    def records(request):
        view, topic = worker.log_view(), request.path_params["topic"]
        limit, partition = _number(request, "limit", _LIMIT), _number(request, "partition", None)
        if not 1 <= limit <= MOST_RECORDS:
            raise BadRequestError(f"'limit' must be from 1 to {MOST_RECORDS}, not {limit}.")
        partitions = view.partitions(topic)
        if partition is not None and partition not in partitions:
            raise NotFoundError(f"The topic '{topic}' has no partition {partition}; it has {len(partitions)}.")
        ranges = view.ranges([(topic, number) for number in partitions])
        wanted = partitions if partition is None else [partition]
        offset, timestamp = _number(request, "offset", None), _number(request, "timestamp", None)
        text, searched = request.query_params.get("contains", ""), None
        if text:
            found, read, complete = view.search(topic, wanted, limit, text, offset, timestamp)
            searched = {"records": read, "complete": complete}
        elif offset is None and timestamp is None:
            found = view.newest(topic, wanted, limit)
        else:
            found = view.onward(topic, wanted, limit, offset, timestamp)
        decoded = Decoded(worker)
        return json_answer(
            {
                "topic": topic,
                "partitions": [{"partition": number, "begin": begin, "end": end} for (_, number), (begin, end) in ranges.items()],
                "records": [_record(seen, decoded) for seen in found],
                "searched": searched,
            }
        )

    def lag(request):
        name = request.query_params.get("connector", "")
        if herder.info(name)["type"] != "sink":
            raise BadRequestError(f"The connector '{name}' is not a sink, so it has no lag.")
        return json_answer(_lag(herder, worker.log_view(), name))

    def where(request):
        return json_answer({"bootstrap": worker.bootstrap, "embedded": worker.config.embedded})

    return [
        resource("/ui/api/log", GET=where),
        resource("/ui/api/throughput", GET=shown_throughput),
        resource("/ui/api/topics", GET=topics),
        resource("/ui/api/topics/{topic}/records", GET=records),
        resource("/ui/api/lag", GET=lag),
    ]


def _lag(herder, view, name):
    """Return the lag of each partition with a committed offset, and of all partitions of topics that the sink has read."""
    committed = {(entry["partition"][TOPIC], entry["partition"][PARTITION]): entry["offset"][OFFSET] for entry in herder.offsets(name)}
    pairs = set(committed)
    for topic in herder.topics(name):
        try:
            pairs.update((topic, number) for number in view.partitions(topic))
        except NotFoundError:
            continue  # deleted meanwhile
    found = []
    for topic, number in sorted(pairs):
        try:
            begin, end = view.ranges([(topic, number)])[topic, number]
        except LogError:
            begin = end = None  # deleted, or without a leader
        at = committed.get((topic, number))
        behind = None if end is None else max(0, end - (begin if at is None else at))
        found.append({"topic": topic, "partition": number, "committed": at, "end": end, "lag": behind})
    return found


def _record(seen, decoded):
    headers = [{"name": name, "value": shown_bytes(value)} for name, value in seen.headers[:_MOST_HEADERS]]
    timestamp = None if seen.timestamp < 0 else seen.timestamp
    return {
        "partition": seen.partition,
        "offset": seen.offset,
        "timestamp": timestamp,
        "key": decoded.shown(seen.key, seen.headers, True) or shown_bytes(seen.key),
        "value": decoded.shown(seen.value, seen.headers) or shown_bytes(seen.value),
        "headers": headers,
    }


def shown_bytes(data):
    """Show bytes as text, or as hex if not UTF-8; long data is truncated, with its full length."""
    if data is None:
        return None
    cut = len(data) > MOST_SHOWN_BYTES
    try:
        text = _without_partial_character(data[:MOST_SHOWN_BYTES]).decode() if cut else data.decode()
        encoding = "utf-8"
    except UnicodeDecodeError:
        text, encoding = data[:MOST_SHOWN_BYTES].hex(" "), "hex"
    return {"text": text, "encoding": encoding, "bytes": len(data), "cut": cut}


def _without_partial_character(data):
    """Drop an incomplete last character left by the truncation."""
    for back in range(1, 4):
        byte = data[-back]
        if byte >= 0xC0:  # start of a multi-byte character
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data


def _number(request, key, default):
    text = request.query_params.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequestError(f"'{key}' must be a whole number, 0 or more, not '{text}'.")
    return int(text)
