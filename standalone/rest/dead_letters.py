"""/ui/api/dead-letters: the dead letter queues of all connectors, their records, and replay into the original topics.

Replayed records are stored where `connectctl dlq replay` stores them: neither replays a record of the other again.
"""

from standalone.errors import BadRequestError, NotFoundError
from standalone.rest.browse import MOST_SHOWN_BYTES, shown_bytes
from standalone.rest.resource import Operation, body_object, json_answer, resource

WORDS = frozenset(
    "queue connectors exists letters total replayed partition offset timestamp error message stage origin connector key value headers name "
    "sent before left trace".split()
)
_KEYS = ("errors.deadletterqueue.topic.name", "errors.source.deadletterqueue.topic.name")
_MOST, _USUAL = 500, 50
_WANTED = ("partition", "offset", "error", "to", "dry_run", "as_polled", "again")


def routes(herder, worker):
    def queues(request):
        there = {topic["name"] for topic in worker.log_view().topics()}
        return json_answer([{"queue": queue, "connectors": names, "exists": queue in there} for queue, names in sorted(_queues(herder).items())])

    def letters(request):
        queue, limit = request.path_params["queue"], _limit(request)
        with _log(worker) as log:
            from standalone.tools.replay import read_letters, replayed

            _must_exist(log, queue)
            done = replayed(log, queue)
            total = sum(end - begin for begin, end in log.ranges(log.partitions(queue)).values())
            found = [letter for each in read_letters(log, queue, newest=limit) for letter in each]
            newest = sorted(found, key=lambda letter: (letter.timestamp, letter.offset), reverse=True)[:limit]
            shown = [_letter(letter, letter.offset in done[letter.partition]) for letter in newest]
        return json_answer({"queue": queue, "total": total, "letters": shown})

    def replay(request, said):
        queue, said = request.path_params["queue"], body_object(said)
        strange = sorted(set(said) - set(_WANTED))
        if strange:
            raise BadRequestError(f"Unknown member '{strange[0]}' in the body: allowed are {', '.join(_WANTED)}.")
        with _log(worker) as log:
            from standalone.tools.replay import replay

            _must_exist(log, queue)
            flags = {name: said.get(name) is True for name in ("dry_run", "again", "as_polled")}
            outcome = replay(log, queue, _choice(said), said.get("to") or None, **flags)
        return json_answer({"sent": dict(outcome.sent), "before": outcome.before, "left": dict(outcome.left)})

    return [
        resource("/ui/api/dead-letters", GET=queues),
        resource("/ui/api/dead-letters/{queue}", GET=letters),
        resource("/ui/api/dead-letters/{queue}/replay", POST=Operation(replay, None, {}, body={})),
    ]


def _queues(herder):
    """Return {queue: names of the connectors that write to it}."""
    found = {}
    for name in herder.names():
        try:
            config = herder.info(name)["config"]
        except NotFoundError:
            continue  # deleted meanwhile
        for key in _KEYS:
            if queue := (config.get(key) or "").strip():
                found.setdefault(queue, []).append(name)
    return found


def _log(worker):
    from standalone.tools.log_access import LogAccess

    return LogAccess(worker.client_properties(), worker.clock)


def _must_exist(log, queue):
    if queue not in log.admin.list_topics():
        raise NotFoundError(f"There is no topic '{queue}' yet: it is created with the first dead letter.")


def _limit(request):
    text = request.query_params.get("limit", str(_USUAL))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST):
        raise BadRequestError(f"'limit' must be from 1 to {_MOST}, not {text}.")
    return int(text)


def _choice(said):
    """Parse which letters to replay: all, one of them, or those of an error class."""
    from standalone.tools.replay import Choice

    partition, offset, error = said.get("partition"), said.get("offset"), said.get("error")
    for name, number in (("partition", partition), ("offset", offset)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise BadRequestError(f"'{name}' must be a whole number, 0 or more, not {number!r}.")
    if (partition is None) != (offset is None):
        raise BadRequestError("A letter needs both 'partition' and 'offset'.")
    if partition is not None:
        return Choice(error, (partition,), offset, offset)
    return Choice(error)


def _letter(letter, replayed):
    context = letter.context
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": None if letter.timestamp < 0 else letter.timestamp,
        "error": letter.error_class,
        "message": (context.get("exception.message") or "")[:MOST_SHOWN_BYTES],
        "stage": context.get("stage"),
        "origin": "-".join(filter(None, (context.get("topic"), context.get("partition"), context.get("offset")))) or None,
        "connector": context.get("connector.name"),
        "trace": (context.get("exception.stacktrace") or "")[:MOST_SHOWN_BYTES],
        "key": shown_bytes(letter.key),
        "value": shown_bytes(letter.value),
        "headers": [{"name": name, "value": shown_bytes(value)} for name, value in letter.headers],
        "replayed": replayed,
    }
