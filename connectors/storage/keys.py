"""What can be set of sinks that write files: the keys of storage-common, under Confluent's names, types and defaults."""

from connectors.storage.classes import Choice
from connectors.storage.date_patterns import DatePattern, zone_of
from connectors.storage.formats import NAMES
from connectors.storage.partitioners import PARTITIONERS, FieldPartitioner, TimeBasedPartitioner
from connectors.storage.timestamps import EXTRACTORS
from connectors.storage.versions import MODES
from standalone import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, REQUIRED, STRING, ConfigDef, ConfigError, Option, at_least, one_of

FORMATS = Choice("format.class", NAMES, None, "format")
AVRO_CODECS = ("null", "deflate", "snappy", "bzip2")
PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


def class_key(name, importance, doc, choice, default=REQUIRED):
    """A key that names a class of Java's, or one of ours: a text, for there is no Java class to load."""
    return Option(name, STRING, importance, doc, default=default, check=choice)


def _zone(name, value):
    """A time zone, or empty"""
    if value:
        try:
            zone_of(value)
        except ValueError as error:
            raise ConfigError(f"{name}: {error}", {name: str(error)}) from None


def _field_names(name, value):
    """Names of fields, none of them blank"""
    if any(not part.strip() for each in value or () for part in each.split(".")):
        raise ConfigError(f"{name}: a name in it is empty", {name: "a name in it is empty"})


STORAGE = ConfigDef(
    Option("topics.dir", STRING, HIGH, "The folder below which each topic has one.", default="topics"),
    Option("store.url", STRING, HIGH, "Where the files are.", default=None),
    Option("directory.delim", STRING, MEDIUM, "Stands between folders in the encoded partition.", default="/"),
    Option("file.delim", STRING, MEDIUM, "Stands between topic, partition and offsets in the names of files.", default="+"),
)
CONNECTOR = ConfigDef(
    Option("flush.size", INT, HIGH, "How many records of a topic's partition are written before its files are closed and put in place."),
    Option(
        "rotate.interval.ms", LONG, HIGH,
        "Files are closed once a record comes that is so much later than their first, by timestamp.extractor; with Wallclock also without. "
        "-1: never.", default=-1,
    ),
    Option(
        "rotate.schedule.interval.ms", LONG, MEDIUM,
        "Files are closed by the clock at this interval, counted from midnight in the timezone, also where nothing new comes. -1: never.", default=-1,
    ),
    Option("schemas.cache.config", INT, LOW, "How many schemas are kept at hand. Here it has no effect: they are few.", default=1000),
    Option("enhanced.avro.schema.support", BOOLEAN, LOW, "In Avro files: keep enums as enums, and namespaces of a union's members.", default=True),
    Option("connect.meta.data", BOOLEAN, LOW, "In Avro files: say in the schema what Avro has no words for (connect.name and more).", default=True),
    Option("retry.backoff.ms", LONG, LOW, "How long to wait before what the file system refused is tried again.", default=5000),
    Option("shutdown.timeout.ms", LONG, MEDIUM, "Without effect: a stop waits for the closes that it has begun.", default=3000),
    Option("filename.offset.zero.pad.width", INT, LOW, "How many digits offsets in names have, filled with zeros.", default=10, check=at_least(0)),
    Option("avro.codec", STRING, LOW, "How blocks of Avro files are compressed.", default="null", check=one_of(*AVRO_CODECS)),
    Option("allow.optional.map.keys", BOOLEAN, LOW, "In Avro files: write maps with optional text keys as Avro maps.", default=False),
)  # fmt: skip
SCHEMA = ConfigDef(
    Option(
        "schema.compatibility", STRING, HIGH,
        "What a change of the values' schema does. NONE: files are closed. BACKWARD, FULL: a newer version closes them, older values are brought to "
        "it; FORWARD: the other way round.", default="NONE", check=one_of(*MODES),
    )
)  # fmt: skip
PARQUET = ConfigDef(Option("parquet.codec", STRING, LOW, "How Parquet files are compressed.", default="snappy", check=one_of(*PARQUET_CODECS)))
PARTITIONER = ConfigDef(
    class_key(
        "partitioner.class", HIGH, "Into which folder of its topic a record goes.", PARTITIONERS,
        "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    ),
    Option("partition.field.name", LIST, MEDIUM, "The fields by which FieldPartitioner goes.", default="", check=_field_names),
    Option("partition.duration.ms", LONG, MEDIUM, "How long a stretch is that TimeBasedPartitioner gives one folder.", default=-1),
    Option("path.format", STRING, MEDIUM, "Names of TimeBasedPartitioner's folders: a date pattern of Joda's, 'year'=YYYY/'month'=MM.", default=""),
    Option("locale", STRING, MEDIUM, "The language of names of months and days in path.format: en-US. Others take numbers only.", default=""),
    Option("timezone", STRING, MEDIUM, "The time zone of folders and of rotate.schedule.interval.ms: Europe/Berlin.", default="", check=_zone),
    class_key("timestamp.extractor", MEDIUM, "When a record is of: by the clock, its timestamp, or a field of its value.", EXTRACTORS, "Wallclock"),
    Option("timestamp.field", STRING, MEDIUM, "The field by which RecordField goes.", default="timestamp"),
)  # fmt: skip
LOGS = ConfigDef(
    Option("logs.dir", STRING, HIGH, "The folder of the write-ahead logs.", default="logs"),
    Option("topic.capture.groups.regex", STRING, LOW, "A pattern whose groups ${1}, ${2} … stand in topics.dir and logs.dir.", default=None),
)


def refusals(config):
    """{key: message} of what keys say against each other."""
    errors = {}
    partitioner = PARTITIONERS.find(config["partitioner.class"])
    if config["rotate.schedule.interval.ms"] > 0 and not config["timezone"]:
        errors["timezone"] = "must be given where rotate.schedule.interval.ms is: the clock strikes from midnight on in that zone"
    if issubclass(partitioner, TimeBasedPartitioner):
        if not config["timezone"]:
            errors["timezone"] = f"must be given with {partitioner.__name__}"
        if partitioner is TimeBasedPartitioner:
            if config["partition.duration.ms"] <= 0:
                errors["partition.duration.ms"] = "must be given with TimeBasedPartitioner: the length of a stretch in milliseconds"
            if not config["path.format"]:
                errors["path.format"] = "must be given with TimeBasedPartitioner: 'year'=YYYY/'month'=MM, for example"
        pattern = partitioner.pattern or config["path.format"]
        if config["timezone"] and pattern:
            try:
                DatePattern(pattern, zone_of(config["timezone"]), config["locale"])
            except ValueError as error:
                errors["path.format"] = str(error)
    if partitioner is FieldPartitioner and not config["partition.field.name"]:
        errors["partition.field.name"] = "must name at least one field with FieldPartitioner"
    return errors
