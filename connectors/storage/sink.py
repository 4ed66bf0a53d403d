"""LakeSink: write topics to files in a local folder or HDFS, exactly-once.

    keys.py               options                        partitioners.py, timestamps.py   choice of the folder
    task.py               batches, memory, errors        rotation.py                      when files are closed
    partition_writer.py   open files                     formats/                         encoders
    ledger.py             commits                        local.py, hdfs.py                file systems
"""

import functools
import importlib.util
import os
import re
import shutil
import tempfile
from urllib.parse import unquote, urlsplit

from connectors.storage import keys
from connectors.storage.date_patterns import zone_of
from connectors.storage.formats import load
from connectors.storage.hive import Hive
from connectors.storage.keys import FORMATS, class_key
from connectors.storage.ledger import Ledger
from connectors.storage.local import LocalFiles
from connectors.storage.names import FileNames, joined
from connectors.storage.partition_writer import PartitionWriter
from connectors.storage.partitioners import PARTITIONERS
from connectors.storage.rotation import Rotation
from connectors.storage.task import Parts, StorageTask
from connectors.storage.timestamps import EXTRACTORS
from standalone import HIGH, INT, LOW, STRING, ConfigDef, ConfigError, Option, SinkConnector, between, check_allowed_file, one_of

ORC_CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
FORMAT_SETTINGS = {  # defaults for formats, if a connector has no key for it
    "parquet.codec": "snappy",
    "codec.in.name": False,
    "orc.codec": "zlib",
    "compression": "none",
    "compression.level": -1,
    "json.decimal.format": "BASE64",
    "format.bytearray.extension": ".bin",
    "format.bytearray.separator": None,
}


class LakeSinkConnector(SinkConnector):
    """Write topics to files: Parquet, ORC, Avro, JSON, CSV, text or bytes.

    store.url=file:///data/lake   format.class=Parquet   flush.size=100000   partitioner.class=Daily
    """

    config_def = ConfigDef(
        *keys.STORAGE,
        class_key("format.class", HIGH, "How files are encoded.", FORMATS, "Parquet"),
        *keys.CONNECTOR,
        *keys.SCHEMA,
        *keys.PARQUET,
        *keys.PARTITIONER,
        *keys.HADOOP,
        *keys.HIVE,
        Option("orc.codec", STRING, LOW, "Compression of ORC files.", default="zlib", check=one_of(*ORC_CODECS)),
        Option("text.compression.type", STRING, LOW, "Compression of JSON, CSV, text and bytes.", default="none", check=one_of("none", "gzip")),
        Option("text.compression.level", INT, LOW, "gzip's compression level; -1: its default.", default=-1, check=between(-1, 9)),
        Option("json.decimal.format", STRING, LOW, "Decimals in JSON: BASE64 or NUMERIC.", default="BASE64", check=one_of("BASE64", "NUMERIC")),
        Option("format.bytearray.extension", STRING, LOW, "File extension of BytesFormat.", default=".bin"),
        Option("format.bytearray.separator", STRING, LOW, "Separator after each record in BytesFormat. Default: a line end.", default=None),
    )  # fmt: skip

    def validate(self, config):
        return refusals(self.config_def, config)

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]  # tasks share the topics' partitions


def refusals(config_def, config):
    try:
        parsed = config_def.parse(config)
    except ConfigError:
        return {}  # the definition reports errors
    errors = keys.refusals(parsed)
    url = parsed["store.url"] or parsed["hdfs.url"]
    if not url:
        errors["store.url"] = "must be given: where the files are (file:///data/lake, hdfs://namenode:8020)"
    else:
        scheme = urlsplit(url).scheme
        if scheme not in _STORES:
            errors["store.url"] = f"'{scheme}' is not a supported store; supported are {', '.join(sorted(filter(None, _STORES)))}"
        elif scheme in _ON_HDFS and importlib.util.find_spec("hdfs_native") is None:
            errors["store.url"] = "HDFS needs the package hdfs-native: pip install connect-standalone[hdfs]"
        elif scheme not in _ON_HDFS:
            try:
                check_allowed_file(joined(path_of(url), parsed["topics.dir"]))
            except ConfigError as error:
                errors["store.url"] = error.errors["file"]
    return errors


class LakeSinkTask(StorageTask):
    """Files are put in place by renaming them."""

    config_def = LakeSinkConnector.config_def
    label = "LakeSink"
    spools = hive = None

    def open_storage(self, config):
        values = self.config_values = self.config_def.parse(config)
        self.files = self.open_store(values)
        # Folder for open files: next to their final place if that is local.
        self.spools = None if self.files.spools_here else tempfile.mkdtemp(prefix="connect-spool-")
        format = load(FORMATS.find(values["format.class"]))(self._format_settings(values))
        partitioner, extractor = PARTITIONERS.find(values["partitioner.class"])(), EXTRACTORS.find(values["timestamp.extractor"])()
        for part in (partitioner, extractor):
            part.configure(values)
        self._parts = Parts(format, partitioner, extractor, values["schema.compatibility"], self.run)
        self._names = FileNames(values["file.delim"], values["filename.offset.zero.pad.width"], format.extension)
        self._zone = zone_of(values["timezone"] or "UTC")
        if values.get("hive.integration"):  # S3 does not have this key
            kind, text_of = FORMATS.find(values["format.class"]), getattr(format, "text_of", None)
            self.hive = Hive(values, kind, self.files, self._place_of, self.context.spark, text_of)

    def open_store(self, values):
        """Open the store of the URL."""
        url = values["store.url"] or values["hdfs.url"]
        return _STORES[urlsplit(url).scheme](url, values)

    def behind_commits(self):
        if self.hive is not None:
            self.hive.tell()

    def close_storage(self):
        if self.hive is not None:
            self.hive.close()
        if self.files is not None:
            self.files.close()
        if self.spools is not None:
            shutil.rmtree(self.spools, ignore_errors=True)

    def writer_of(self, origin):
        topic, partition = origin
        values, root = self.config_values, self.files.root
        topics_dir, logs_dir = (joined(root, captured(values, key, topic)) for key in ("topics.dir", "logs.dir"))
        for place in (topics_dir, logs_dir):
            self.files.must_be_allowed(place)
        ledger = Ledger(
            *(self.files, self._names, topic, partition), topics_dir=topics_dir, logs_dir=logs_dir, delimiter=values["directory.delim"], run=self.run
        )
        schedule = values["rotate.schedule.interval.ms"]
        rotation = Rotation(values["flush.size"], values["rotate.interval.ms"], schedule, self._zone, self._parts.extractor.by_clock)
        stored = None
        if self.hive is not None:
            self.hive.look_at(topic)
            stored = functools.partial(self.hive.stored, topic)
        return PartitionWriter(self._parts, ledger, rotation, lambda: self.spools or ledger.folder, self.report, stored)

    def _place_of(self, topic):
        """Return (the topic's folder, its URL)."""
        values = self.config_values
        place = joined(joined(self.files.root, captured(values, "topics.dir", topic)), topic)
        url = values["store.url"] or values["hdfs.url"]
        if urlsplit(url).scheme not in _ON_HDFS:
            return place, f"file://{os.path.abspath(place)}"
        return place, f"{urlsplit(url).scheme}://{urlsplit(url).netloc}{place}"

    @staticmethod
    def _format_settings(values):
        given = {name: values[name] for name in (*FORMAT_SETTINGS, "avro.codec", *_AVRO) if name in values}
        text = {"compression": values.get("text.compression.type", "none"), "compression.level": values.get("text.compression.level", -1)}
        return {**FORMAT_SETTINGS, **text, **given}


_AVRO = ("connect.meta.data", "enhanced.avro.schema.support", "allow.optional.map.keys")


def captured(values, key, topic):
    """Return a folder's name with the groups of topic.capture.groups.regex inserted."""
    pattern, text = values["topic.capture.groups.regex"], values[key]
    if not pattern or "${" not in text:
        return text
    match = re.fullmatch(pattern, topic)
    if match is None:
        raise ConfigError(f"{key}: topic '{topic}' does not match topic.capture.groups.regex ({pattern}), whose groups are in '{text}'.")
    return re.sub(r"\$\{(\d+)\}", lambda found: match[int(found[1])] or "", text)


def path_of(url):
    return unquote(urlsplit(url).path) if url.startswith("file:") else url


def _local(url, values):
    return LocalFiles(path_of(url))


def _hdfs(url, values):
    from connectors.storage.hdfs import open_hdfs

    return open_hdfs(url, values)


_ON_HDFS = ("hdfs", "viewfs")
_STORES = {"": _local, "file": _local, **dict.fromkeys(_ON_HDFS, _hdfs)}

LakeSinkConnector.task_class = LakeSinkTask
