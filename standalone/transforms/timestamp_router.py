"""TimestampRouter: change the topic by the record's timestamp, such as one topic per day."""

from standalone import HIGH, STRING, ConfigDef, DataError, Expression, F, Fact, NoColumns, Option, Schema
from standalone.stage import Router, left_to_rows
from standalone.transforms import date_columns, expressions
from standalone.transforms.date_format import DateFormat

_TOPIC, _TIMESTAMP = "${topic}", "${timestamp}"


class TimestampRouter(Router):
    """Insert the record's timestamp into its topic name.

    topic.format=${topic}-${timestamp}, timestamp.format=yyyyMMdd      topic "logs"  ->  topic "logs-20231114"
    """

    java_name = "org.apache.kafka.connect.transforms.TimestampRouter"
    config_def = ConfigDef(
        Option("topic.format", STRING, HIGH, "The new topic; ${topic} is the old one, ${timestamp} the time.", default="${topic}-${timestamp}"),
        Option("timestamp.format", STRING, HIGH, "Format of the timestamp: a SimpleDateFormat pattern, in UTC.", default="yyyyMMdd"),
    )

    def computes(self):
        return self.fact.has_time

    def configure(self, config):
        self.routes(_Stamped(config["topic.format"], config["timestamp.format"]))


class _Stamped(Fact):
    """The topic format filled with the record's topic and timestamp."""

    schema = Schema.STRING

    def __init__(self, topic_format, pattern):
        self.topic_format = topic_format
        self.pattern = pattern
        self.has_time = _TIMESTAMP in topic_format
        self._format = None  # as in Java an invalid pattern fails the records, not the configuration

    def format(self):
        if self._format is None:
            try:
                self._format = DateFormat(self.pattern)
            except ValueError as error:
                raise ValueError(f"timestamp.format '{self.pattern}' is not a pattern of SimpleDateFormat: {error}.") from None
        return self._format

    def row(self, record):
        if record.timestamp is None:
            raise DataError(f"TimestampRouter needs a timestamp, but a record of topic {record.topic} has none.")
        time = self.format().format(record.timestamp)
        return self.topic_format.replace(_TOPIC, record.topic).replace(_TIMESTAMP, time)

    def column(self, columns, has_schema):
        if columns.timestamp is None or columns.topic is None:
            raise NoColumns("it is an error without a topic or a timestamp")
        with left_to_rows(ValueError):
            format = self.format()
        if isinstance(columns.topic, Expression):
            time, failed = date_columns.text_of(columns.timestamp, format)
            first, *rest = self.topic_format.split(_TOPIC)
            named = F.concat(F.lit(first), *(part for text in rest for part in (columns.topic, F.lit(text))))
            topic = F.replace(named, F.lit(_TIMESTAMP), time)
        elif self.has_time:
            first, *rest = self.topic_format.replace(_TOPIC, columns.topic).split(_TIMESTAMP)
            parts = [(None, first), *(part for text in rest for part in (*format.parts, (None, text)))]
            topic, failed = date_columns.text_of_parts(columns.timestamp, [part for part in parts if part[1]])
        else:
            topic, failed = self.topic_format.replace(_TOPIC, columns.topic), None
        return topic, expressions.any_of([columns.timestamp.isNull(), failed])
