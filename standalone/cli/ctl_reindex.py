"""connectctl reindex: a new mapping for an index of ElasticsearchSink while it is being written and searched.

    1 index     a new index with the mapping in FILE
    2 connector a second connector, with the first one's configuration, writes the whole topic to the new index
    3 caught up wait until it reaches the first connector's offsets
    4 alias     the alias that clients search is moved to the new index atomically
    5 stop      the first connector is stopped and, with --delete, deleted with its index; if it also writes topics to other
                indices, this index's topics are removed from it instead

Each step first checks whether it is done: running the same command again resumes it. --undo reverts the steps in reverse order, as long
as nothing was deleted.
"""

import base64
import json
import os
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import quote, urlsplit, urlunsplit

import click

from standalone.cli.ctl_connectors import one_name
from standalone.cli.ctl_rest import Refused, connector_path
from standalone.cli.ctl_show import Command, emit, emit_line, printable

_SINK = "ElasticsearchSinkConnector"
_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 60
_HIDDEN = "[hidden]"
_META = "connectctl-reindex"  # in the new index's mapping: the state to resume or undo from


def add_to(main):
    main.add_command(reindex)


@click.command(
    cls=Command,
    epilog="connectctl reindex orders-to-search --mapping orders.json --alias orders; add --undo to revert.",
)
@one_name
@click.option("--mapping", type=click.File("rb"), help='The new mapping as JSON, {"properties": …}; or {"mappings": …, "settings": …}.')
@click.option("--topic", help="If the connector writes to multiple indices: a topic of the index to recreate.")
@click.option("--index", help="Name of the new index. Default: the old name with the next version number, such as orders-v2.")
@click.option("--alias", help="Alias that clients search. Default: the name that the connector writes to, if it is an alias.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Override a key in the second connector, such as a password; repeatable.")
@click.option(
    "--user", "search_user", envvar="CONNECT_SEARCH_USER",
    help="NAME to log in to the search server (password: CONNECT_SEARCH_PASSWORD; or use CONNECT_SEARCH_API_KEY).",
)  # fmt: skip
@click.option("--timeout", type=float, default=3600.0, show_default=True, help="Seconds to wait for the second connector to catch up.")
@click.option("--delete", "deletes", is_flag=True, help="Delete the first connector and its index at the end.")
@click.option("--undo", "undoes", is_flag=True, help="Revert alias, connectors and the new index.")
@click.pass_obj
def reindex(rest, name, mapping, topic, index, alias, changes, search_user, timeout, deletes, undoes):
    """Change the mapping of an ElasticsearchSink's index without downtime. Run it again to resume."""
    work = Reindex(rest, name, topic, index, alias, dict(_pair(each) for each in changes), search_user)
    if undoes:
        return work.undo()
    if mapping is None:
        raise click.UsageError("Give the new mapping: --mapping FILE.")
    try:
        body = json.loads(mapping.read())
    except ValueError as error:
        raise click.ClickException(f"The mapping is not JSON: {error}.") from None
    work.run(body if "mappings" in body else {"mappings": body}, timeout, deletes)


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set wants KEY=VALUE, not '{text}'.")
    return key, value


class Reindex:
    def __init__(self, rest, name, topic, index, alias, changes, user):
        self._rest, self.name, self._changes = rest, name, changes
        config = rest.get(connector_path(name, "/config"))
        if not config.get("connector.class", "").rpartition(".")[2].startswith("ElasticsearchSink"):
            raise click.ClickException(f"'{name}' is not an {_SINK}: it has no index to recreate.")
        self._config = config
        self._all_topics = self._listed()
        self.target = self._written_to(topic)
        self._search = _Search({**config, **changes}, user)
        self.old = self._index_behind(self.target)
        self.new = index or self._next_name()
        self._note = self._noted()
        self.old = self._note.get("old", self.old)
        self.alias = alias or self._note.get("alias") or (self.target if self.target != self.old else None)
        if self.alias is None:
            raise click.ClickException(
                f"'{name}' writes directly to the index '{self.old}', and there is no alias to move. Create an alias for search clients "
                f"(POST /_aliases), and name it with --alias."
            )
        self.second = f"{name}-{self.new}"

    # --- Current state -----------------------------------------------------------------------------------------------

    def _listed(self):
        topics = [topic.strip() for topic in self._config.get("topics", "").split(",") if topic.strip()]
        if not topics:
            raise click.ClickException(f"'{self.name}' uses topics.regex: reindex supports only connectors with a list of topics.")
        return topics

    def _written_to(self, topic):
        """The index or alias; sets `_topics` to the topics written to it."""
        if self._config.get("data.stream.dataset"):
            raise click.ClickException(f"'{self.name}' writes to a data stream: give its index template the new mapping, and roll it over.")
        given = self._config.get("topic.to.external.resource.mapping", "").replace(" ", "").split(",")
        pairs = dict(pair.split(":", 1) for pair in given if ":" in pair)
        targets = {each: pairs.get(each, each.lower()) for each in self._all_topics}
        if topic is None and len(set(targets.values())) == 1:
            topic = self._all_topics[0]
        if topic is None:
            listed = ", ".join(f"{each} to '{target}'" for each, target in targets.items())
            raise click.ClickException(f"'{self.name}' writes to multiple indices ({listed}): select one with --topic.")
        # A topic that an earlier call removed from the first connector is in the second one's configuration; its index has its name.
        target = targets.get(topic, pairs.get(topic, topic.lower()))
        self._topics = [each for each, found in targets.items() if found == target] or [topic]
        return target

    def _index_behind(self, name):
        """The index behind an index or alias name."""
        found = self._search.ask("GET", f"/{quote(name)}", absent=True)
        if not found:
            raise click.ClickException(f"The index '{name}' that '{self.name}' writes to does not exist: nothing to reindex.")
        if len(found) > 1:
            raise click.ClickException(f"The alias '{name}' points to {len(found)} indices ({', '.join(sorted(found))}): reindex supports only one.")
        return next(iter(found))

    def _next_name(self):
        """orders-v2 for orders; the index of an unfinished earlier call takes precedence."""
        stem, _, number = self.old.rpartition("-v")
        stem, number = (stem, int(number)) if stem and number.isdigit() else (self.old, 1)
        before = self._search.ask("GET", f"/{quote(self.old)}/_mapping")[self.old]["mappings"].get("_meta", {}).get(_META)
        return self.old if before and before["connector"] == self.name else f"{stem}-v{number + 1}"

    def _noted(self):
        found = self._search.ask("GET", f"/{quote(self.new)}/_mapping", absent=True)
        return found[self.new]["mappings"].get("_meta", {}).get(_META, {}) if found and self.new in found else {}

    def _note_down(self, **more):
        self._note = {**self._note, **more}
        self._search.ask("PUT", f"/{quote(self.new)}/_mapping", {"_meta": {_META: self._note}})

    def _holders(self):
        """The indices that the alias points to."""
        return sorted(self._search.ask("GET", f"/_alias/{quote(self.alias)}", absent=True) or {})

    def _committed(self, name):
        entries = self._rest.get(connector_path(name, "/offsets"))["offsets"]
        found = {(entry["partition"]["kafka_topic"], entry["partition"]["kafka_partition"]): entry["offset"]["kafka_offset"] for entry in entries}
        return {place: offset for place, offset in found.items() if place[0] in self._topics}

    def _exists(self, name):
        return name in self._rest.get("/connectors")

    def _state(self, name):
        return self._rest.get(connector_path(name, "/status"))["connector"]["state"]

    # --- The steps ---------------------------------------------------------------------------------------------------

    def run(self, body, timeout, deletes):
        self._make_index(body)
        self._start_second()
        self._catch_up(timeout)
        self._move_alias(timeout)
        self._stop_first()
        if deletes:
            self._delete_first()
        emit(
            {"connector": self.second, "index": self.new, "alias": self.alias, "deleted": deletes},
            lambda: click.echo(f"'{self.alias}' is '{self.new}' now, and '{self.second}' writes to it. "
                               + ("" if deletes else "Use --delete to delete the first connector and its index, --undo to revert.")),
        )  # fmt: skip

    def _make_index(self, body):
        if self._note:
            return _step(1, f"the index '{self.new}' exists")
        if self.old == self.new or self._search.ask("GET", f"/{quote(self.new)}", absent=True):
            raise click.ClickException(f"The index '{self.new}' exists and was not created by reindex. Name another with --index.")
        note = {"old": self.old, "alias": self.alias, "connector": self.name}
        mappings = {**body["mappings"], "_meta": {**body["mappings"].get("_meta", {}), _META: note}}
        self._search.ask("PUT", f"/{quote(self.new)}", {**body, "mappings": mappings})
        self._note = note
        _step(1, f"created the index '{self.new}'")

    def _start_second(self):
        if self._exists(self.second):
            return _step(2, f"the connector '{self.second}' exists")
        config = {**self._config, **self._changes, "name": self.second}
        config.update({
            "topics": ",".join(self._topics), "external.resource.usage": "index",
            "topic.to.external.resource.mapping": ",".join(f"{topic}:{self.new}" for topic in self._topics),
        })  # fmt: skip
        hidden = sorted(key for key, value in config.items() if value == _HIDDEN)
        if hidden:
            raise click.ClickException(f"As for '{self.second}', {_not_shown(hidden)}")
        self._rest.ask("PUT", connector_path(self.second, "/config"), config)
        _step(2, f"started the connector '{self.second}', which writes all of {_quoted(self._topics)} to '{self.new}'")

    def _catch_up(self, timeout, wanted=None):
        """Wait until the second connector reaches the first one's current offsets."""
        wanted = self._committed(self.name) if wanted is None else wanted
        deadline, pause, shown = time.monotonic() + timeout, threading.Event(), None
        while True:
            found = self._committed(self.second)
            behind = sum(max(0, offset - found.get(place, 0)) for place, offset in wanted.items())
            if not behind:
                return _step(3, "it has caught up")
            status = self._rest.get(connector_path(self.second, "/status"))
            failed = next((task for task in status["tasks"] if task["state"] == "FAILED"), None)
            if failed:
                reason = failed["trace"].splitlines()[0]
                raise click.ClickException(
                    f"'{self.second}' has failed: {printable(reason)} Fix the cause, restart the connector and run the command again; or use --undo."
                )
            if time.monotonic() > deadline:
                raise click.ClickException(
                    f"'{self.second}' is still {behind} records behind. Run the command again to keep waiting, or revert with --undo."
                )
            if behind != shown:
                emit_line({"step": 3, "behind": behind}, lambda behind=behind: click.echo(f"3  {behind} records behind", err=True))
            shown = behind
            pause.wait(_LOOK_SECONDS)

    def _move_alias(self, timeout):
        holders = self._holders()
        if holders == [self.new]:
            return _step(4, f"the alias '{self.alias}' is '{self.new}'")
        if holders != [self.old]:
            raise click.ClickException(
                f"The alias '{self.alias}' points to {', '.join(holders) or 'nothing'}, not to '{self.old}': move it there first."
            )
        # Until the second connector catches up again, the first one's latest writes are in the old index only.
        self._note_down(offsets=[[*place, offset] for place, offset in self._committed(self.name).items()])
        self._swap(self.old, self.new)
        _step(4, f"moved the alias '{self.alias}' from '{self.old}' to '{self.new}'")
        self._catch_up(timeout)

    def _swap(self, before, behind):
        actions = [{"remove": {"index": before, "alias": self.alias}}, {"add": {"index": behind, "alias": self.alias}}]
        self._search.ask("POST", "/_aliases", {"actions": actions})

    def _stop_first(self):
        if not self._exists(self.name):
            return _step(5, f"the connector '{self.name}' is gone")
        if self._writes_elsewhere:
            return self._take_out()
        if self._state(self.name) == "STOPPED":
            return _step(5, f"the connector '{self.name}' is stopped")
        self._stop(self.name)
        self._catch_up(60)
        _step(5, f"stopped the connector '{self.name}'")

    @property
    def _writes_elsewhere(self):
        return bool(set(self._all_topics) - set(self._topics)) or "topics" in self._note

    def _take_out(self):
        """Let the first connector continue with its other topics. It is stopped in between, so that its final offsets are known."""
        rest = [topic for topic in self._all_topics if topic not in self._topics]
        if len(rest) == len(self._all_topics):
            if self._state(self.name) == "STOPPED":  # an earlier call ended between stop and resume
                self._rest.ask("PUT", connector_path(self.name, "/resume"))
            return _step(5, f"{_quoted(self._topics)} is not among the topics of '{self.name}'")
        self._note_down(topics=self._all_topics)
        self._stop(self.name)
        self._catch_up(60)
        self._configure(rest)
        _step(5, f"removed {_quoted(self._topics)} from the topics of '{self.name}'")

    def _configure(self, topics):
        """Set the topics of the first connector, which is stopped, and resume it."""
        hidden = sorted(key for key, value in self._config.items() if value == _HIDDEN and key not in self._changes)
        if hidden:
            raise click.ClickException(f"'{self.name}' is stopped. Its topics must be set to {','.join(topics)}, but {_not_shown(hidden)}")
        config = {key: self._changes.get(key, value) if value == _HIDDEN else value for key, value in self._config.items()}
        self._rest.ask("PUT", connector_path(self.name, "/config"), {**config, "topics": ",".join(topics)})
        self._rest.ask("PUT", connector_path(self.name, "/resume"))

    def _stop(self, name):
        self._rest.ask("PUT", connector_path(name, "/stop"))
        _wait(lambda: self._state(name) == "STOPPED", f"'{name}' to stop")

    def _delete_first(self):
        what = f"the index '{self.old}'"
        if not self._writes_elsewhere:
            self._rest.ask("DELETE", connector_path(self.name))
            what = f"the connector '{self.name}' and {what}"
        self._search.ask("DELETE", f"/{quote(self.old)}", absent=True)
        _step(5, f"deleted {what}")

    # --- Undo --------------------------------------------------------------------------------------------------------

    def undo(self):
        if not self._note:
            raise click.ClickException(f"Nothing to undo: reindex did not create the index '{self.new}'. Name another with --index.")
        if self.old != self.new and not self._search.ask("GET", f"/{quote(self.old)}", absent=True):
            raise click.ClickException(f"The index '{self.old}' was deleted: the reindex cannot be undone.")
        if self._holders() == [self.new]:
            self._swap(self.new, self.old)
            _step(4, f"moved the alias '{self.alias}' back to '{self.old}'")
        if "topics" in self._note:
            self._put_back()
        elif self._state(self.name) == "STOPPED":
            self._read_again()
            self._rest.ask("PUT", connector_path(self.name, "/resume"))
            _step(5, f"resumed the connector '{self.name}'")
        if self._exists(self.second):
            self._rest.ask("DELETE", connector_path(self.second))
            _step(2, f"deleted the connector '{self.second}'")
        self._search.ask("DELETE", f"/{quote(self.new)}", absent=True)
        _step(1, f"deleted the index '{self.new}'")
        emit({"connector": self.name, "index": self.old, "alias": self.alias}, lambda: click.echo(f"'{self.alias}' is '{self.old}' again."))

    def _put_back(self):
        self._stop(self.name)
        self._read_again()
        self._configure(self._note["topics"])
        _step(5, f"gave {_quoted(self._topics)} back to '{self.name}'")

    def _read_again(self):
        """Rewind the first connector: since the alias moved, its writes through the alias are in the new index only."""
        entries = [
            {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": {"kafka_offset": offset}}
            for topic, partition, offset in self._note.get("offsets", ())
        ]
        if entries:
            self._rest.ask("PATCH", connector_path(self.name, "/offsets"), {"offsets": entries})


def _step(number, said):
    emit_line({"step": number, "done": said}, lambda: click.echo(f"{number}  {said}", err=True))


def _quoted(names):
    return ", ".join(f"'{name}'" for name in names)


def _not_shown(hidden):
    return f"the worker hides {', '.join(hidden)}: set it with --set {hidden[0]}=…, preferably as a config provider reference."


def _wait(condition, what, seconds=60.0):
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise click.ClickException(f"Timed out after {seconds:.0f} s waiting for {what}.")
        pause.wait(_LOOK_SECONDS)


class _Search:
    """Client of the search server in a connector's configuration; standard library only, like ctl_rest.py."""

    def __init__(self, config, user):
        address = urlsplit(config["connection.url"].split(",")[0].strip())
        self._url = urlunsplit((address.scheme, address.netloc.rpartition("@")[2], address.path.rstrip("/"), "", ""))
        name = user or config.get("connection.username")
        given = config.get("connection.password")
        password = os.environ.get("CONNECT_SEARCH_PASSWORD", "" if given in (None, _HIDDEN) or given.startswith("${") else given)
        self._headers = {"Content-Type": "application/json"}
        key = os.environ.get("CONNECT_SEARCH_API_KEY", config.get("connection.api.key") or "")
        if key and key != _HIDDEN and not key.startswith("${"):
            self._headers["Authorization"] = f"ApiKey {key}"
        elif name:
            self._headers["Authorization"] = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

    def ask(self, method, path, body=None, absent=False):
        """The response's JSON; with `absent`, None on 404. Raises Refused."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as response:
                return json.loads(response.read() or b"{}")
        except urllib.error.HTTPError as error:
            content = error.read()
            if absent and error.code == 404:
                return None
            raise Refused(f"The search server {self._url} answers {error.code} to {method} {path}: {_reason(content)}", error.code) from None
        except (OSError, ValueError) as error:
            raise Refused(f"The search server {self._url} cannot be reached: {getattr(error, 'reason', error)}.") from None


def _reason(content):
    try:
        error = json.loads(content)["error"]
        return error["reason"] if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError):
        return content[:300].decode("utf-8", "replace")
