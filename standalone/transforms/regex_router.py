"""RegexRouter: send records to another topic, named after the one they were for."""

from standalone import HIGH, STRING, ConfigDef, DataError, Expression, F, NoColumns, Option, Transform, regex_compiles
from standalone.data.java_regex import compile_java
from standalone.data.whole_regex import begun, whole
from standalone.transforms import expressions


class RegexRouter(Transform):
    """Where the whole topic matches `regex`, name it anew: `$1` or `${name}` in the replacement stand for groups of the match.

    regex=web-(.*), replacement=logs.$1      topic web-access  ->  topic logs.access
    """

    java_name = "org.apache.kafka.connect.transforms.RegexRouter"
    config_def = ConfigDef(
        Option("regex", STRING, HIGH, "What the whole topic must match: a regular expression of Java's.", check=regex_compiles),
        Option("replacement", STRING, HIGH, "The new topic, or what of it is new; `\\` takes the meaning from a `$`."),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.regex = config["regex"]
        self.replacement = config["replacement"]
        self._pattern = compile_java(self.regex)
        self._parts, self._error = _parsed(self.replacement, self._pattern)
        self._routes = {}  # topics are few

    # Row meaning: the truth.
    def apply(self, record):
        topic = record.topic
        routed = self._routes.get(topic)
        if routed is None:
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            routed = self._routes[topic] = self._routed(topic)
        return record if routed == topic else record.with_(topic=routed)

    def _routed(self, topic):
        if topic is None:
            raise DataError("RegexRouter needs a topic; this record has none.")
        if not self._pattern.fullmatch(topic):
            return topic
        if self._error:
            raise DataError(f"RegexRouter cannot name topic '{topic}' anew: its replacement '{self.replacement}' {self._error}.")
        # The whole topic matches, but what is replaced is the first match, which may be shorter: with a|ab it is the a of ab.
        match = self._pattern.search(topic)
        named = "".join(part if isinstance(part, str) else match[part.group] or "" for part in self._parts)
        return topic[: match.start()] + named + topic[match.end() :]

    # Column meaning: one topic for all rows is named by rows; else Spark does it, whose regular expressions are Java's own.
    def columns(self, columns):
        if not isinstance(columns.topic, Expression):
            try:
                return columns.with_(topic=self._routed(columns.topic))
            except DataError as error:
                raise NoColumns(f"it is an error: {error}") from error
        if self._error:
            raise NoColumns("whether a topic matches, and fails then, hangs on the topic")
        if whole(self.regex) is None:
            raise NoColumns("the regex is none that can be held to the whole topic")
        # Since the whole topic matches, the first match begins at its start; held there, it is the only one.
        named = F.regexp_replace(columns.topic, F.lit(begun(self.regex)), F.lit(self.replacement))
        routed = F.when(F.rlike(columns.topic, F.lit(whole(self.regex))), named).otherwise(columns.topic)
        return columns.with_(topic=routed, failed=expressions.any_of([columns.failed, columns.topic.isNull()]))


_MOST_ROUTES = 10_000


class _Group:
    def __init__(self, group):
        self.group = group


def _parsed(replacement, pattern):
    """([texts and groups], what is wrong with it or None), by the rules of Java's Matcher.replaceFirst."""
    parts, at = [], 0
    while at < len(replacement):
        letter = replacement[at]
        if letter not in "\\$":
            parts.append(letter)
            at += 1
        elif at + 1 == len(replacement):
            return parts, f"ends with a bare '{letter}'"
        elif letter == "\\":
            parts.append(replacement[at + 1])
            at += 2
        elif replacement[at + 1] == "{":
            end = replacement.find("}", at)
            name = replacement[at + 2 : end] if end >= 0 else ""
            if name not in pattern.groupindex:
                return parts, f"names a group '{replacement[at:]}' that the regex does not have"
            parts.append(_Group(name))
            at = end + 1
        else:
            end = at + 1
            while end < len(replacement) and replacement[end] in "0123456789" and (
                end == at + 1 or int(replacement[at + 1 : end + 1]) <= pattern.groups
            ):
                end += 1
            number = replacement[at + 1 : end]
            if not number or int(number) > pattern.groups:
                return parts, f"names a group '${number}' that the regex does not have: it has {pattern.groups}"
            parts.append(_Group(int(number)))
            at = end
    return parts, None
