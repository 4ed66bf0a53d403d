"""TopicNameMatches: whether a record's topic matches a regular expression."""

from standalone import MEDIUM, STRING, ConfigDef, F, Function, NoColumns, Option, Predicate, Schema, all_of, non_empty, regex_compiles
from standalone.data.java_regex import compile_java
from standalone.data.whole_regex import whole
from standalone.stage import OfTopic


class TopicNameMatches(Predicate):
    """True for records whose whole topic name matches a Java regular expression."""

    java_name = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
    config_def = ConfigDef(
        Option("pattern", STRING, MEDIUM, "Regular expression for the whole topic.", check=all_of(non_empty, regex_compiles)),
    )

    def configure(self, config):
        self.asks(OfTopic(_Matches(config["pattern"])))


class _Matches(Function):
    """Whether the whole topic matches; False without a topic."""

    schema = Schema.BOOLEAN

    def __init__(self, pattern):
        self.pattern = pattern
        self._matches = compile_java(pattern).fullmatch

    def row(self, topic):
        return topic is not None and self._matches(topic) is not None

    def column(self, topic):
        """Spark's regular expressions are Java's own."""
        regex = whole(self.pattern)
        if regex is None:
            raise NoColumns("the pattern cannot be anchored to the whole topic")
        return F.coalesce(F.rlike(topic, F.lit(regex)), F.lit(False)), None
