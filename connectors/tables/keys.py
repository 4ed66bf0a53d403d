"""Options of TableSink: those of Apache's Iceberg sink, with its names and defaults, and a few for Delta and table names."""

import re

from standalone import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, STRING, ConfigDef, ConfigError, Option, at_least, one_of

ICEBERG, DELTA = "iceberg", "delta"
CATALOG = "iceberg.catalog."
CREATE_PROPS, WRITE_PROPS, HADOOP = "iceberg.tables.auto-create-props.", "iceberg.tables.write-props.", "iceberg.hadoop."
ONE_TABLE = "iceberg.table."
PASSING = (CATALOG, CREATE_PROPS, WRITE_PROPS, HADOOP, ONE_TABLE, "iceberg.kafka.", "iceberg.coordinator.")
_UNUSED = "Here it has no effect"

KEYS = ConfigDef(
    Option("table.format", STRING, HIGH, "Format of the tables.", default=ICEBERG, check=one_of(ICEBERG, DELTA)),
    Option(
        "table.name.format", STRING, HIGH,
        "The table of a topic, e.g. lake.${topic}; invalid characters of the topic become _. Empty: as in iceberg.tables.", default="",
    ),
    Option("delta.location", STRING, HIGH, "The folder or URL of Delta tables: table a.b is in folder a/b.", default=""),
    Option(
        "commit.max.bytes", INT, MEDIUM, "Commit before the interval ends once this many bytes are buffered.", default=32 << 20, check=at_least(1)
    ),
    Option("iceberg.tables", LIST, HIGH, "Names of the tables within the catalog: db.orders.", default=""),
    Option(
        "iceberg.tables.dynamic-enabled", BOOLEAN, MEDIUM, "Whether iceberg.tables.route-field contains the table name.", default=False
    ),
    Option("iceberg.tables.route-field", STRING, MEDIUM, "The field that selects a record's table. Empty: all records go to all tables.", default=""),
    Option("iceberg.tables.default-commit-branch", STRING, MEDIUM, "The branch to commit to: only the main branch is supported.", default=""),
    Option("iceberg.tables.default-id-columns", STRING, MEDIUM, "The columns that identify rows: id, region.", default=""),
    Option(
        "iceberg.tables.default-partition-by", STRING, MEDIUM,
        "Partitioning of created tables: country, day(at), bucket(id, 16), truncate(name, 2).", default="",
    ),
    Option(
        "iceberg.tables.upsert-mode-enabled", BOOLEAN, MEDIUM,
        "Whether a record replaces the row with the same id columns; a tombstone deletes the row of its key.", default=False,
    ),
    Option("iceberg.tables.auto-create-enabled", BOOLEAN, MEDIUM, "Whether missing tables are created.", default=False),
    Option(
        "iceberg.tables.evolve-schema-enabled", BOOLEAN, MEDIUM,
        "Whether new fields add columns and wider numbers widen columns. Without it fields that the table lacks are ignored.", default=False,
    ),
    Option("iceberg.tables.schema-force-optional", BOOLEAN, MEDIUM, "Whether all columns of created tables are nullable.", default=False),
    Option("iceberg.tables.schema-case-insensitive", BOOLEAN, MEDIUM, "Whether fields match columns case-insensitively.", default=False),
    Option("iceberg.control.commit.interval-ms", INT, MEDIUM, "Commit interval.", default=300_000, check=at_least(1)),
    Option("iceberg.control.commit.timeout-ms", INT, LOW, f"{_UNUSED}: commits do not wait for other tasks.", default=30_000),
    Option("iceberg.control.commit.threads", INT, LOW, f"{_UNUSED}: Spark's cores write the commit.", default=None),
    Option("iceberg.control.topic", STRING, LOW, f"{_UNUSED}: no topic is needed, as tables store the offsets.", default="control-iceberg"),
    Option("iceberg.control.group-id-prefix", STRING, LOW, f"{_UNUSED}.", default="cg-control"),
    Option("iceberg.connect.group-id", STRING, LOW, f"{_UNUSED}.", default=None),
    Option(
        "iceberg.catalog", STRING, MEDIUM, "The catalog's name in Spark. iceberg.catalog.type, .uri, .warehouse … define it.", default="iceberg"
    ),
    Option("iceberg.hadoop-conf-dir", STRING, LOW, "The folder of core-site.xml and hdfs-site.xml.", default=""),
    Option("retry.backoff.ms", LONG, LOW, "Backoff before a failed commit is retried.", default=5000, check=at_least(1)),
)  # fmt: skip


def refusals(config, originals):
    """Return {key: message} of conflicting options."""
    errors = {}
    is_delta = config["table.format"] == DELTA
    if is_delta and not config["delta.location"]:
        errors["delta.location"] = "must be given with table.format=delta: file:///data/lake, for example"
    if not is_delta and not any(key.startswith(CATALOG) for key in originals):
        errors["iceberg.catalog.type"] = "must be given: hadoop (with iceberg.catalog.warehouse), hive or rest (with iceberg.catalog.uri)"
    if config["iceberg.tables.dynamic-enabled"] and not config["iceberg.tables.route-field"]:
        errors["iceberg.tables.route-field"] = "must be given with iceberg.tables.dynamic-enabled=true"
    if not (config["table.name.format"] or config["iceberg.tables"] or config["iceberg.tables.dynamic-enabled"]):
        errors["iceberg.tables"] = "must name the tables; or give table.name.format=lake.${topic}, or iceberg.tables.dynamic-enabled=true"
    for key in ["iceberg.tables.default-commit-branch", *(each for each in originals if each.endswith(".commit-branch"))]:
        if originals.get(key) not in (None, "", "main"):
            errors[key] = "must be empty: only the main branch is written to"
    for table in [None, *_named(originals)]:
        settings = TableSettings(config, originals, table)
        key = "iceberg.tables.default-" if table is None else f"{ONE_TABLE}{table}."
        try:
            partitions(settings.partition_by, is_delta)
        except ConfigError as error:
            errors[f"{key}partition-by"] = str(error)
    if config["iceberg.tables.upsert-mode-enabled"] and not config["iceberg.tables.default-id-columns"]:
        without = [table for table in config["iceberg.tables"] if not TableSettings(config, originals, table).ids]
        if without or not config["iceberg.tables"]:
            errors["iceberg.tables.default-id-columns"] = "must be given with iceberg.tables.upsert-mode-enabled=true: what distinguishes rows"
    for name in config["iceberg.tables"]:
        if "." not in name:
            errors["iceberg.tables"] = f"'{name}' must be a database and a table: db.{name}"
    return errors


def _named(originals):
    """Return the tables with options of their own."""
    ends = (".id-columns", ".partition-by", ".route-regex", ".commit-branch")
    return sorted({key[len(ONE_TABLE) :].rpartition(".")[0] for key in originals if key.startswith(ONE_TABLE) and key.endswith(ends)})


class TableSettings:
    """Options of one table: its own override those for all."""

    def __init__(self, config, originals, table):
        def own(name):
            given = originals.get(f"{ONE_TABLE}{table}.{name}") if table else None
            return config[f"iceberg.tables.default-{name}"] if given is None else given

        self.ids = _split(own("id-columns"))
        self.partition_by = _split(own("partition-by"))
        self.is_upsert = config["iceberg.tables.upsert-mode-enabled"] and bool(self.ids)
        self.creates = config["iceberg.tables.auto-create-enabled"]
        self.evolves = config["iceberg.tables.evolve-schema-enabled"]
        self.all_optional = config["iceberg.tables.schema-force-optional"]
        self.ignores_case = config["iceberg.tables.schema-case-insensitive"]
        self.create_props = {key[len(CREATE_PROPS) :]: value for key, value in originals.items() if key.startswith(CREATE_PROPS)}
        self.write_props = {key[len(WRITE_PROPS) :]: value for key, value in originals.items() if key.startswith(WRITE_PROPS)}


def _split(text):
    """Split at commas outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text or "") if part.strip()]


_WITH_NUMBER = {"bucket": "bucket({1}, {0})", "truncate": "truncate({1}, {0})"}
_OF_TIME = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def partitions(terms, is_delta=False):
    """Convert the terms of partition-by to Spark SQL."""
    made = []
    for term in terms:
        found = re.fullmatch(r"(\w+)\(\s*([^,()]+?)\s*(?:,\s*(\d+)\s*)?\)", term)
        if found is None:
            if not re.fullmatch(r"[^()]+", term):
                raise ConfigError(f"'{term}' is not a partition: write a column, day(at) or bucket(id, 16), for example")
            made.append(quoted(term))
            continue
        kind, column, number = found[1].lower(), quoted(found[2]), found[3]
        kind = kind.removesuffix("s") if kind.removesuffix("s") in _OF_TIME else kind
        if is_delta:
            raise ConfigError(f"'{term}' is not supported: Delta tables are partitioned by plain columns")
        if kind in _OF_TIME and number is None:
            made.append(f"{_OF_TIME[kind]}({column})")
        elif kind in _WITH_NUMBER and number is not None:
            made.append(_WITH_NUMBER[kind].format(column, number))
        else:
            raise ConfigError(f"'{term}' is not a partition: use year, month, day, hour of a column, or bucket, truncate of a column and a number")
    return made


def quoted(name):
    """Quote a column, or a path within structs, for SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))
