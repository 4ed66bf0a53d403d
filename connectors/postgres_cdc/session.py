"""A session of one connection: prepare, read the snapshot if required, stream changes, confirm stored positions."""

import contextlib
import logging
import threading
import uuid

from connectors.postgres_cdc import publication
from connectors.postgres_cdc.catalog import Catalog
from connectors.postgres_cdc.connection import Replication, asking, lsn_text
from connectors.postgres_cdc.filters import Filters
from connectors.postgres_cdc.position import Confirmed, Position
from connectors.postgres_cdc.records import Records
from connectors.postgres_cdc.shapes import Shapes
from connectors.postgres_cdc.snapshot import Moment, Snapshot
from connectors.postgres_cdc.stream import Stream
from standalone import ConnectError

log = logging.getLogger(__name__)

_IN_USE = "55006"
_JOIN_SECONDS = 5


class SlotInUse(Exception):
    """Another connection still holds the slot, e.g. of a killed worker until the server notices."""


class Session:
    """`position` is after the last returned record, None before the first. Only `interrupt` is called from other threads."""

    def __init__(self, config, position, resumes, stopped, task):
        """`resumes`: whether an earlier session streamed up to that position, rather than an offset being stored for it."""
        self._config, self._start, self._stopped = config, position, stopped
        self._mode = _Mode(config, resumes)
        self._filters = Filters(config)
        self._task = task
        self._replication = self._asking = self._snapshot = self._rows = self._stream = self._confirmed = None
        self._slot_is_ours = False
        self._over = threading.Event()
        self._alive = None

    @property
    def position(self):
        return self._stream.position if self._stream is not None else None

    def open(self):
        config = self._config
        self._asking = asking(config)
        publication.check_server(self._asking)
        self._version = self._asking.info.server_version
        self._catalog = Catalog(self._asking)
        self._shapes = Shapes(config, self._catalog, self._filters)
        self._records = Records(config, self._shapes, self._task)
        slot, start = publication.slot(self._asking, config), self._start
        is_gone = slot is None or slot.is_lost
        if start is not None and is_gone and self._mode.needs_the_slot(start):
            raise ConnectError(
                f"The server no longer has the changes after {lsn_text(start.commit)}, where this connector stopped: the replication slot "
                f"'{config['slot.name']}' is {'gone' if slot is None else 'lost'}. Set snapshot.mode=when_needed to read all rows again, "
                f"or reset the connector's offsets."
            )
        wants_rows = self._mode.wants_rows(start, is_gone)
        if slot is not None and slot.is_active and not wants_rows:
            raise SlotInUse(f"The replication slot '{config['slot.name']}' is used by another connection.")
        if slot is not None and slot.is_lost:
            publication.drop_slot(self._asking, config)
            slot = None
        publication.set_identities(self._asking, config, self._catalog, self._filters)
        publication.make_publication(self._asking, config, self._catalog, self._filters)
        self._replication = Replication(config)
        if wants_rows:
            self._stopped.wait(config["snapshot.delay.ms"] / 1000)
            self._begin_rows(slot)
        elif start is None or is_gone:
            moment = Moment(publication.make_slot(self._replication, config, self._version)) if slot is None else None
            self._begin_stream(Position(moment.lsn if moment is not None else slot.confirmed), slot)
        elif self._mode.streams:
            self._begin_stream(start, slot)

    def _begin_rows(self, slot):
        config = self._config
        temporary = None if slot is None and self._mode.streams else f"connect_snapshot_{uuid.uuid4().hex}"
        moment = Moment(publication.make_slot(self._replication, config, self._version, temporary))
        log.info("Reading the snapshot at %s", lsn_text(moment.lsn))
        self._snapshot = Snapshot(config, moment, self._catalog, self._shapes, self._records, self._filters)
        # Rows of an interrupted snapshot may have been deleted since: stream from the slot's position to include those deletions.
        self._was_cut_off = slot is not None and (self._start is None or not self._start.is_complete)
        self._rows = self._snapshot.records(self._stopped)

    def _end_rows(self):
        position, self._rows = self._snapshot.position, None
        self._snapshot.close()
        self._snapshot = None
        self._replication.close()  # also drops a slot made only for the snapshot
        self._replication = None
        if self._mode.streams:
            self._stopped.wait(self._config["streaming.delay.ms"] / 1000)
            self._replication = Replication(self._config)
            slot = publication.slot(self._asking, self._config)
            self._begin_stream(Position(slot.confirmed) if self._was_cut_off else position, slot)

    def _begin_stream(self, position, slot):
        import psycopg

        config = self._config
        if slot is not None and slot.confirmed is not None and slot.confirmed > position.commit and position.upto_lsn is None:
            # Everything was stored before it was confirmed: the messages counted in `event` are complete.
            position = Position(slot.confirmed)
        self._confirmed = Confirmed(position, slot.confirmed or 0 if slot is not None else position.commit)
        try:
            self._replication.start(config["slot.name"], position.commit, publication.stream_options(config, self._version))
        except psycopg.Error as error:
            if getattr(error, "sqlstate", None) == _IN_USE:
                raise SlotInUse(f"The replication slot '{config['slot.name']}' is used by another connection.") from error
            raise
        log.info("Streaming changes from %s", lsn_text(position.commit))
        self._stream = Stream(config, self._replication, position, self._confirmed, self._catalog, self._shapes, self._records, self._filters)
        self._alive = threading.Thread(target=self._keep_alive, name="postgres-cdc-alive", daemon=True)
        self._alive.start()

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def read(self, count, seconds):
        if self._rows is not None:
            found = []
            for record in self._rows:
                if record is not None:
                    found.append(record)
                if record is None or len(found) >= count:
                    return found
            if not self._stopped.is_set():
                self._end_rows()
            return found
        if self._stream is None:
            self._stopped.wait(seconds)
            return []
        return self._stream.read(count, seconds)

    def heartbeat(self):
        if self._stream is None:
            return []
        if self._config["heartbeat.action.query"]:
            self._asking.execute(self._config["heartbeat.action.query"])
        return self._stream.heartbeat()

    # --- Confirmations -------------------------------------------------------------------------------------------------
    def commit(self, stored, is_untouched):
        """Handle a commit. `stored` is the Position stored by the worker, or None; `is_untouched`: no record was returned yet, so none is pending."""
        if self._confirmed is None or self._mode.is_manual:
            return
        if stored is None and is_untouched:
            stored = self._confirmed.begin
        if stored is not None:
            self._confirmed.commit(stored)

    def _keep_alive(self):
        """Send keep-alives: the server drops a silent client, and while records wait to be accepted nothing polls."""
        import psycopg

        replication, confirmed = self._replication, self._confirmed
        while not self._over.wait(self._config["status.update.interval.ms"] / 1000):
            with contextlib.suppress(psycopg.Error, OSError):  # `read` will raise it
                replication.confirm(confirmed.lsn, asks=True)

    def interrupt(self):
        """Interrupt waiting, from another thread. The stream stays open for the final confirmation."""
        for each in (self._replication if self._stream is None else None, self._snapshot):
            if each is not None:
                each.cancel()

    def close(self):
        self._over.set()
        if self._alive is not None:
            self._alive.join(_JOIN_SECONDS)
        if self._stream is not None:
            import psycopg

            with contextlib.suppress(psycopg.Error, OSError):
                self._replication.confirm(self._confirmed.lsn)
        for each in (self._replication, self._snapshot, self._asking):
            if each is not None:
                each.close()


class _Mode:
    """The steps of a snapshot.mode."""

    def __init__(self, config, resumes):
        self._name = config["snapshot.mode"].lower()
        said = {
            name.removeprefix("snapshot.mode.configuration.based."): str(value).lower() == "true"
            for name, value in config.originals.items()
            if name.startswith("snapshot.mode.configuration.based.")
        }
        by_keys = self._name == "configuration_based"
        self.streams = said.get("start.stream", False) if by_keys else self._name != "initial_only"
        self._rows = said.get("snapshot.data", False) if by_keys else self._name not in ("no_data", "never")
        self._again = self._name == "when_needed" or by_keys and said.get("snapshot.on.data.error", False)
        self._always = self._name == "always" and not resumes
        self.is_manual = (config["lsn.flush.mode"] or ("connector" if config["flush.lsn.source"] else "manual")).lower() == "manual"

    def wants_rows(self, start, is_gone):
        if start is None:
            return self._rows
        return not start.is_complete or self._always or is_gone and self._again

    def needs_the_slot(self, start):
        return self.streams and start.is_complete and not self._always and not self._again
