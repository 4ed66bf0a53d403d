"""Options of file sinks: those of storage-common, with Confluent's names, types and defaults."""

from connectors.storage.classes import Choice
from connectors.storage.date_patterns import DatePattern, zone_of
from connectors.storage.formats import NAMES
from connectors.storage.partitioners import PARTITIONERS, FieldPartitioner, TimeBasedPartitioner
from connectors.storage.timestamps import EXTRACTORS
from connectors.storage.versions import MODES
from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    STRING,
    ConfigDef,
    ConfigError,
    Option,
    at_least,
    between,
    case_insensitive_one_of,
    one_of,
)

FORMATS = Choice("format.class", NAMES, None, "format")
AVRO_CODECS = ("null", "deflate", "snappy", "bzip2")
HIVE_FORMATS = ("Parquet", "Orc", "Avro")
PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


def class_key(name, importance, doc, choice, default=REQUIRED):
    """An option that names a Java class, or one of ours: of type STRING, since there is no Java class to load."""
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
    Option("topics.dir", STRING, HIGH, "The parent of the topics' folders.", default="topics"),
    Option("store.url", STRING, HIGH, "URL of the store.", default=None),
    Option("directory.delim", STRING, MEDIUM, "Separator between folders in the encoded partition.", default="/"),
    Option("file.delim", STRING, MEDIUM, "Separator between topic, partition and offsets in file names.", default="+"),
)
CONNECTOR = ConfigDef(
    Option("flush.size", INT, HIGH, "Records of a topic partition after which its files are closed and committed."),
    Option(
        "rotate.interval.ms", LONG, HIGH,
        "Files are closed when a record is this much later than their first one, by timestamp.extractor; with Wallclock also without new records. "
        "-1: never.", default=-1,
    ),
    Option(
        "rotate.schedule.interval.ms", LONG, MEDIUM,
        "Files are closed at this wall clock interval, counted from midnight in the timezone, even without new records. -1: never.", default=-1,
    ),
    Option("schemas.cache.config", INT, LOW, "How many schemas are cached. Here it has no effect.", default=1000),
    Option("enhanced.avro.schema.support", BOOLEAN, LOW, "In Avro files: keep enums as enums, and namespaces of a union's members.", default=True),
    Option("connect.meta.data", BOOLEAN, LOW, "In Avro files: add properties to the schema that Avro lacks (connect.name and more).", default=True),
    Option("retry.backoff.ms", LONG, LOW, "Backoff before a failed file system operation is retried.", default=5000),
    Option("shutdown.timeout.ms", LONG, MEDIUM, "Has no effect: a stop waits for files that are being closed.", default=3000),
    Option("filename.offset.zero.pad.width", INT, LOW, "Number of digits of offsets in file names, zero-padded.", default=10, check=at_least(0)),
    Option("avro.codec", STRING, LOW, "Compression of Avro files.", default="null", check=one_of(*AVRO_CODECS)),
    Option("allow.optional.map.keys", BOOLEAN, LOW, "In Avro files: write maps with optional string keys as Avro maps.", default=False),
)  # fmt: skip
SCHEMA = ConfigDef(
    Option(
        "schema.compatibility", STRING, HIGH,
        "Schema evolution. NONE: any change closes the files. BACKWARD, FULL: a newer version closes them, older values are projected to "
        "it; FORWARD: vice versa.", default="NONE", check=one_of(*MODES),
    )
)  # fmt: skip
PARQUET = ConfigDef(Option("parquet.codec", STRING, LOW, "Compression of Parquet files.", default="snappy", check=one_of(*PARQUET_CODECS)))
PARTITIONER = ConfigDef(
    class_key(
        "partitioner.class", HIGH, "Chooses a record's folder within its topic.", PARTITIONERS,
        "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    ),
    Option("partition.field.name", LIST, MEDIUM, "The fields for FieldPartitioner.", default="", check=_field_names),
    Option("partition.duration.ms", LONG, MEDIUM, "The time span per folder of TimeBasedPartitioner.", default=-1),
    Option("path.format", STRING, MEDIUM, "Folder names of TimeBasedPartitioner: a Joda date pattern, 'year'=YYYY/'month'=MM.", default=""),
    Option("locale", STRING, MEDIUM, "The language of month and day names in path.format: en-US. Other locales allow numbers only.", default=""),
    Option("timezone", STRING, MEDIUM, "The time zone of folders and of rotate.schedule.interval.ms: Europe/Berlin.", default="", check=_zone),
    class_key("timestamp.extractor", MEDIUM, "The time of a record: wall clock, record timestamp, or a field of its value.", EXTRACTORS, "Wallclock"),
    Option("timestamp.field", STRING, MEDIUM, "The field for RecordField.", default="timestamp"),
)  # fmt: skip
CREDENTIALS = Choice(
    "s3.credentials.provider.class",
    dict.fromkeys(
        (
            "Default",
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
            "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        ),
        "Default",
    ),
    None,
    "provider of credentials",
)


def _side_format(name, value):
    """Avro or Json, or Java's class for it"""
    if value and FORMATS.find(value) not in ("Avro", "Json", "String"):
        raise ConfigError(f"{name}: must be Avro, Json or String", {name: "must be Avro, Json or String"})


_AVRO = "io.confluent.connect.s3.format.avro.AvroFormat"
_UNUSED = "Here it has no effect"
S3 = ConfigDef(
    Option("s3.bucket.name", STRING, HIGH, "The bucket."),
    Option("s3.object.tagging", BOOLEAN, LOW, "Tag each object with its offsets and the count of its records.", default=False),
    Option("s3.object.tagging.key.value.pairs", LIST, LOW, "More tags: name:value, ….", default=""),
    Option(
        "s3.object.behavior.on.tagging.error", STRING, LOW, "What to do if tagging fails.",
        default="ignore", check=case_insensitive_one_of("ignore", "fail"),
    ),
    Option("s3.region", STRING, MEDIUM, "The region of the bucket.", default="us-west-2"),
    Option(
        "s3.part.size", INT, HIGH, "Part size in bytes of multipart uploads; smaller objects are put in one request.",
        default=26214400, check=between(5242880, 2**31 - 1),
    ),
    class_key(
        "s3.credentials.provider.class", LOW,
        "Source of credentials if the next two keys are not set: the environment, ~/.aws, the machine's role.", CREDENTIALS,
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    ),
    Option("aws.access.key.id", STRING, HIGH, "The access key.", default=""),
    Option("aws.secret.access.key", PASSWORD, HIGH, "Its secret.", default=None),
    Option("s3.ssea.name", STRING, LOW, "Server-side encryption of objects.", default="", check=one_of("", "AES256", "aws:kms", "aws:kms:dsse")),
    Option("s3.sse.customer.key", PASSWORD, LOW, "Customer-provided encryption key, in base64.", default=None),
    Option("s3.sse.kms.key.id", STRING, LOW, "The id of the key in KMS.", default=""),
    Option("s3.acl.canned", STRING, LOW, "The canned ACL of objects.", default=None),
    Option("s3.wan.mode", BOOLEAN, MEDIUM, "Use the endpoint for transfer acceleration.", default=False),
    Option("s3.compression.type", STRING, LOW, "Compression of JSON, text and bytes.", default="none", check=one_of("none", "gzip")),
    Option("s3.compression.level", INT, LOW, "gzip's compression level; -1: its default.", default=-1, check=between(-1, 9)),
    Option("json.decimal.format", STRING, MEDIUM, "Decimals in JSON: BASE64 or NUMERIC.", default="BASE64", check=one_of("BASE64", "NUMERIC")),
    Option("s3.part.retries", INT, MEDIUM, "Maximum retries of a request before the whole put is retried.", default=3, check=at_least(0)),
    Option("s3.retry.backoff.ms", LONG, LOW, f"{_UNUSED}: the backoff grows from tenths of a second.", default=200, check=at_least(0)),
    Option("format.bytearray.extension", STRING, LOW, "Extension of object keys in ByteArrayFormat.", default=".bin"),
    Option("format.bytearray.separator", STRING, LOW, "Separator after each record in ByteArrayFormat. Default: a line end.", default=None),
    Option("s3.proxy.url", STRING, LOW, "A proxy: http://host:port.", default=""),
    Option("s3.proxy.user", STRING, LOW, "The user at the proxy.", default=None),
    Option("s3.proxy.password", PASSWORD, LOW, "Its password.", default=None),
    Option("s3.http.send.expect.continue", BOOLEAN, LOW, f"{_UNUSED}.", default=True),
    Option(
        "behavior.on.null.values", STRING, LOW, "What to do with a null value. write: its key is written (store.kafka.keys), into a separate folder.",
        default="fail", check=case_insensitive_one_of("ignore", "fail", "write"),
    ),
    Option("report.null.values.to.dlq", BOOLEAN, LOW, "Whether ignored null values are reported to the dead letter queue.", default=True),
    Option(
        "max.write.duration.ms", LONG, LOW, f"{_UNUSED}: a put may take any time, as heartbeats continue.", default=2**63 - 1
    ),
    Option(
        "rotate.file.on.partition.change", BOOLEAN, LOW, "With rotate.interval.ms: also close objects when a record goes to another folder.",
        default=True,
    ),
    Option("tombstone.encoded.partition", STRING, LOW, "The folder of records with a null value.", default="tombstone"),
    Option(
        "s3.schema.partition.affix.type", STRING, LOW, "Put the schema's name before or after the other folders.", default="NONE",
        check=case_insensitive_one_of("SUFFIX", "PREFIX", "NONE"),
    ),
    Option("s3.send.digest", BOOLEAN, LOW, "Send an MD5 checksum of each object that is put in one request.", default=False),
    Option(
        "enable.conditional.writes", BOOLEAN, LOW, "Put objects only if the key does not exist. Without it exactly-once requires files "
        "that are closed by record count or record time only.", default=True,
    ),
    Option("max.files.scan.limit", INT, LOW, f"{_UNUSED}: nothing is scanned.", default=100, internal=True),
    Option("store.kafka.keys", BOOLEAN, LOW, "Write record keys to separate objects next to those of the values.", default=False),
    Option("store.kafka.headers", BOOLEAN, LOW, "Write record headers to separate objects next to those of the values.", default=False),
    Option("keys.format.class", STRING, LOW, "How keys are encoded.", default=_AVRO, check=_side_format),
    Option("headers.format.class", STRING, LOW, "How headers are encoded.", default=_AVRO, check=_side_format),
    Option("s3.path.style.access.enabled", BOOLEAN, LOW, "Name the bucket in the path, not in the host.", default=True),
    Option("s3.elastic.buffer.enable", BOOLEAN, LOW, f"{_UNUSED}: buffers grow as needed.", default=False),
    Option("s3.elastic.buffer.init.capacity", INT, LOW, f"{_UNUSED}.", default=131072, check=at_least(4096)),
    Option("partitioner.max.open.files", INT, LOW, f"{_UNUSED}: the memory of open files is bounded.", default=-1, internal=True),
)  # fmt: skip
HADOOP = ConfigDef(
    Option("hdfs.url", STRING, HIGH, "The old name of store.url, which takes precedence.", default=None),
    Option("hadoop.conf.dir", STRING, HIGH, "The folder of core-site.xml and hdfs-site.xml, which define name services.", default=""),
    Option("hadoop.home", STRING, HIGH, f"{_UNUSED}: no installation of Hadoop is needed.", default=""),
    Option("logs.dir", STRING, HIGH, "The folder of the write-ahead logs.", default="logs"),
    Option("topic.capture.groups.regex", STRING, LOW, "A regular expression with groups ${1}, ${2} … for topics.dir and logs.dir.", default=None),
    Option("hdfs.authentication.kerberos", BOOLEAN, HIGH, "Whether HDFS requires Kerberos.", default=False),
    Option("connect.hdfs.principal", STRING, HIGH, "The principal to log in with; empty: that of the ticket cache.", default=""),
    Option("connect.hdfs.keytab", STRING, HIGH, "The keytab of that principal.", default=""),
    Option("hdfs.namenode.principal", STRING, HIGH, "The principal of the name node.", default=""),
    Option("kerberos.ticket.renew.period.ms", LONG, LOW, f"{_UNUSED}: each login with a keytab requests a ticket.", default=3600000),
)
HIVE = ConfigDef(
    Option(
        "hive.integration", BOOLEAN, HIGH, "Whether to maintain an external Hive table per topic, with a partition per folder.",
        default=False,
    ),
    Option("hive.metastore.uris", STRING, HIGH, "The metastore: thrift://host:9083. Empty: as in hive.conf.dir, or embedded Derby.", default=""),
    Option("hive.conf.dir", STRING, HIGH, "The folder of hive-site.xml.", default=""),
    Option("hive.home", STRING, HIGH, f"{_UNUSED}: no installation of Hive is needed.", default=""),
    Option("hive.database", STRING, HIGH, "The database of the tables, which must exist.", default="default"),
    Option("hive.table.name", STRING, LOW, "The table of a topic; invalid characters become _.", default="${topic}"),
)  # fmt: skip
_HDFS = "io.confluent.connect.hdfs.storage.HdfsStorage"
HDFS = ConfigDef(
    class_key(
        "storage.class", HIGH, f"Only {_HDFS} is supported.", Choice("storage.class", {"Hdfs": _HDFS, _HDFS: _HDFS}, None, "storage"), _HDFS
    ),
    class_key("format.class", HIGH, "How files are encoded.", FORMATS, "io.confluent.connect.hdfs.avro.AvroFormat"),
)


def refusals(config):
    """Return {key: message} of conflicting options."""
    errors = {}
    partitioner = PARTITIONERS.find(config["partitioner.class"])
    if config["rotate.schedule.interval.ms"] > 0 and not config["timezone"]:
        errors["timezone"] = "must be given where rotate.schedule.interval.ms is: intervals count from midnight in that zone"
    if issubclass(partitioner, TimeBasedPartitioner):
        if not config["timezone"]:
            errors["timezone"] = f"must be given with {partitioner.__name__}"
        if partitioner is TimeBasedPartitioner:
            if config["partition.duration.ms"] <= 0:
                errors["partition.duration.ms"] = "must be given with TimeBasedPartitioner: the time span of a folder in milliseconds"
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
    if config.get("hive.integration"):
        if FORMATS.find(config["format.class"]) not in HIVE_FORMATS:
            errors["hive.integration"] = f"must be false with this format: Hive tables are supported for {', '.join(HIVE_FORMATS)}"
        elif config["directory.delim"] != "/":
            errors["directory.delim"] = "must be / with hive.integration=true"
    return errors
