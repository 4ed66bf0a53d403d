"""RegexRouter: change the topic by a regular expression."""

from standalone import HIGH, STRING, ConfigDef, DataError, F, Function, NoColumns, Option, Schema, regex_compiles
from standalone.data.java_regex import compile_java
from standalone.data.whole_regex import begun, whole
from standalone.stage import OfTopic, Router


class RegexRouter(Router):
    """Rename topics that match `regex` as a whole: `$1` or `${name}` in the replacement refer to groups of the match.

    regex=web-(.*), replacement=logs.$1      topic web-access  ->  topic logs.access
    """

    java_name = "org.apache.kafka.connect.transforms.RegexRouter"
    config_def = ConfigDef(
        Option("regex", STRING, HIGH, "Java regular expression for the whole topic.", check=regex_compiles),
        Option("replacement", STRING, HIGH, "The new topic; $1 is the first group, and `\\` escapes a `$`."),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.routes(OfTopic(_Routed(config["regex"], config["replacement"])))


class _Routed(Function):
    """The replaced topic if the regex matches the whole topic, otherwise the same topic."""

    schema = Schema.STRING
    refuses_null = True

    def __init__(self, regex, replacement):
        self.regex = regex
        self.replacement = replacement
        self._pattern = compile_java(regex)
        self._parts, self._error = _parsed(replacement, self._pattern)

    def row(self, topic):
        if topic is None:
            raise DataError("RegexRouter needs a topic; this record has none.")
        if not self._pattern.fullmatch(topic):
            return topic
        if self._error:
            raise DataError(f"RegexRouter cannot rename topic '{topic}': its replacement '{self.replacement}' {self._error}.")
        # The regex must match the whole topic, but the replaced first match may be shorter: for a|ab it is the a of ab.
        match = self._pattern.search(topic)
        named = "".join(part if isinstance(part, str) else match[part.group] or "" for part in self._parts)
        return topic[: match.start()] + named + topic[match.end() :]

    def column(self, topic):
        """Spark's regular expressions are Java's own."""
        if self._error:
            raise NoColumns("the replacement is invalid, so topics that match fail")
        if whole(self.regex) is None:
            raise NoColumns("the regex cannot be anchored to the whole topic")
        # Since the whole topic matches, the first match starts at its beginning; anchored there, it is the only one.
        named = F.regexp_replace(topic, F.lit(begun(self.regex)), F.lit(self.replacement))
        return F.when(F.rlike(topic, F.lit(whole(self.regex))), named).otherwise(topic), None


class _Group:
    def __init__(self, group):
        self.group = group


def _parsed(replacement, pattern):
    """([strings and groups], the error or None), by the rules of Java's Matcher.replaceFirst."""
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
