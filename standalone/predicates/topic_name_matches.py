"""TopicNameMatches: whether a record's topic has a name like that."""

from standalone import MEDIUM, STRING, ConfigDef, Expression, F, NoColumns, Option, Predicate, all_of, non_empty, regex_compiles
from standalone.data.java_regex import compile_java
from standalone.data.whole_regex import whole


class TopicNameMatches(Predicate):
    """True of records whose whole topic matches a regular expression of Java's."""

    java_name = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
    config_def = ConfigDef(
        Option("pattern", STRING, MEDIUM, "What the whole topic must match.", check=all_of(non_empty, regex_compiles)),
    )

    def configure(self, config):
        self.pattern = config["pattern"]
        self._matches = compile_java(self.pattern).fullmatch

    # Row meaning: the truth.
    def test(self, record):
        return record.topic is not None and self._matches(record.topic) is not None

    # Column meaning: Spark's regular expressions are Java's own.
    def columns(self, columns):
        if not isinstance(columns.topic, Expression):
            return columns.topic is not None and self._matches(columns.topic) is not None
        regex = whole(self.pattern)
        if regex is None:
            raise NoColumns("the pattern is none that can be held to the whole topic")
        return F.coalesce(F.rlike(columns.topic, F.lit(regex)), F.lit(False))
