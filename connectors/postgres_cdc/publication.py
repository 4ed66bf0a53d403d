"""Prepare the database for streaming: publication, replica identities, slot."""

import logging
from typing import NamedTuple

from connectors.postgres_cdc.connection import lsn_of
from connectors.postgres_cdc.filters import OfTables
from connectors.postgres_cdc.snapshot import quoted
from standalone import ConnectError

log = logging.getLogger(__name__)

_MESSAGES_SINCE = 140000  # server version since which pgoutput sends logical messages


class Slot(NamedTuple):
    confirmed: int | None
    is_active: bool
    is_lost: bool


def check_server(connection):
    level = connection.execute("SHOW wal_level").fetchone()[0]
    if level != "logical":
        raise ConnectError(
            f"The server does not log enough for replication: wal_level is {level}. Set wal_level=logical in postgresql.conf and restart it."
        )


def slot(connection, config):
    """Return the Slot with the configured name, or None."""
    row = connection.execute(
        "SELECT plugin, database, active, confirmed_flush_lsn::text, to_jsonb(s) ->> 'wal_status' FROM pg_replication_slots s WHERE slot_name = %s",
        [config["slot.name"]],
    ).fetchone()
    if row is None:
        return None
    plugin, database, active, confirmed, status = row
    if plugin != "pgoutput" or database != config["database.dbname"]:
        raise ConnectError(
            f"The replication slot '{config['slot.name']}' belongs to plug-in {plugin} and database {database}: set another slot.name, or drop "
            f"it by SELECT pg_drop_replication_slot('{config['slot.name']}')."
        )
    return Slot(None if confirmed is None else lsn_of(confirmed), active, status == "lost")


def drop_slot(connection, config):
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active", [config["slot.name"]]
    )


def make_slot(replication, config, version, temporary=None):
    """Create a slot; return the response to CREATE_REPLICATION_SLOT: the consistent point and the snapshot name."""
    name = temporary or config["slot.name"]
    if version >= 150000:
        options = ["SNAPSHOT 'export'"] + (["FAILOVER"] if config["slot.failover"] and version >= 170000 and not temporary else [])
        return replication.command(f'CREATE_REPLICATION_SLOT "{name}" {"TEMPORARY " if temporary else ""}LOGICAL pgoutput ({", ".join(options)})')
    return replication.command(f'CREATE_REPLICATION_SLOT "{name}" {"TEMPORARY " if temporary else ""}LOGICAL pgoutput EXPORT_SNAPSHOT')


def stream_options(config, version):
    told = {"proto_version": "1", "publication_names": quoted(config["publication.name"])}
    if version >= _MESSAGES_SINCE:
        told["messages"] = "true"
    for each in (config["slot.stream.params"] or "").split(";"):
        name, _, value = each.partition("=")
        if name.strip():
            told[name.strip()] = value.strip().replace("'", "''")
    return told


def make_publication(connection, config, catalog, filters):
    name, mode = config["publication.name"], config["publication.autocreate.mode"].lower()
    found = connection.execute("SELECT puballtables FROM pg_publication WHERE pubname = %s", [name]).fetchone()
    if found is not None and (mode != "filtered" or found[0] or config["read.only"]):
        return
    if found is None and (mode == "disabled" or config["read.only"]):
        raise ConnectError(
            f"There is no publication '{name}', and publication.autocreate.mode={mode} creates none"
            f"{' and read.only=true' if config['read.only'] else ''}: CREATE PUBLICATION {quoted(name)} FOR ALL TABLES."
        )
    via_root = config["publish.via.partition.root"]
    options = " WITH (publish_via_partition_root = true)" if via_root else ""
    if mode in ("filtered", "disabled"):
        tables = [each[:2] for each in catalog.tables(via_root) if filters.table(*each[:2])]
        listed = ", ".join(f"{'' if via_root else 'ONLY '}{quoted(*each)}" for each in tables)
        if found is not None:
            connection.execute(f"ALTER PUBLICATION {quoted(name)} SET TABLE {listed}") if tables else None
            return
        if not tables:
            raise ConnectError("The filters match no table: check table.include.list, table.exclude.list and the schema filters.")
        connection.execute(f"CREATE PUBLICATION {quoted(name)} FOR TABLE {listed}{options}")
    elif mode == "no_tables":
        connection.execute(f"CREATE PUBLICATION {quoted(name)}{options}")
    else:
        connection.execute(f"CREATE PUBLICATION {quoted(name)} FOR ALL TABLES{options}")
    log.info("Created publication %s (publication.autocreate.mode=%s)", name, mode)


def set_identities(connection, config, catalog, filters):
    """Set the replica identities of replica.identity.autoset.values."""
    wanted = OfTables(config["replica.identity.autoset.values"], between=",")
    if not config["replica.identity.autoset.values"] or config["read.only"]:
        return
    for schema, table, *_ in catalog.tables():
        identity = wanted.of(schema, table) if filters.table(schema, table) else None
        if identity is None:
            continue
        kind, _, index = identity.partition(" ")
        said = f"USING INDEX {quoted(index.strip())}" if kind.upper() == "INDEX" else kind.upper()
        if said not in ("DEFAULT", "FULL", "NOTHING") and not index.strip():
            raise ConnectError(f"replica.identity.autoset.values has '{identity}': use DEFAULT, FULL, NOTHING or INDEX name.")
        connection.execute(f"ALTER TABLE {quoted(schema, table)} REPLICA IDENTITY {said}")
