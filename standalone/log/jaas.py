"""sasl.jaas.config: logins in Java's JAAS syntax, from the setting or from the file named in KAFKA_OPTS."""

import os
import pathlib
import re

from standalone.errors import ConfigError

_JAAS_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s"'=;]+))""", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def jaas_options(text):
    """Parse the options of `module.Class required key="value" ...;`. If `text` is None, read the JVM's JAAS file, as Java does."""
    if text is None:
        text = _from_file(os.environ.get("KAFKA_OPTS", ""))
    if text is None:
        return {}
    tokens, at, text = [], 0, text.strip()
    while at < len(text):
        match = _JAAS_TOKEN.match(text, at)
        if not match:
            raise _jaas_error("a quote that is never closed")
        at = match.end()
        quoted = match.group(1) if match.group(1) is not None else match.group(2)
        word = match.group(4) if quoted is None else re.sub(r"\\([0-7]{1,3}|.)", _unescape, quoted, flags=re.S)
        tokens.append((match.group(3), word))
    if len(tokens) < 3 or tokens[-1][0] != ";":
        raise _jaas_error("no module, control flag and closing semicolon")
    if (tokens[1][1] or "").lower() not in ("required", "requisite", "sufficient", "optional"):
        raise _jaas_error("no control flag (such as required) after the module")
    options, pairs = {}, tokens[2:-1]
    for index in range(0, len(pairs), 3):
        name, equals, value = (pairs[index : index + 3] + [(None, None)] * 3)[:3]
        if name[1] is None or equals[0] != "=" or value[1] is None:
            raise _jaas_error(f"option {index // 3 + 1} is not a name=value")
        options[name[1]] = value[1]
    return options


def _unescape(match):
    code = match.group(1)
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)


def _jaas_error(found):
    example = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
    return ConfigError.of({"sasl.jaas.config": f"{found}. Write: {example}"})


def _from_file(java_options):
    """The entry of section KafkaClient in the file of -Djava.security.auth.login.config; None if not configured."""
    named = re.search(r"-Djava\.security\.auth\.login\.config=(?:\"([^\"]+)\"|'([^']+)'|(\S+))", java_options)
    if named is None:
        return None
    path = next(filter(None, named.groups()))
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError.of({"sasl.jaas.config": f"KAFKA_OPTS names the file {path}, which cannot be read: {problem}"}) from problem
    text = re.sub(r"/\*.*?\*/|^\s*(//|#).*?$", "", text, flags=re.S | re.M)
    section = re.search(r"\bKafkaClient\s*\{(.*?;)\s*\}\s*;", text, re.S)
    if section is None:
        raise ConfigError.of({"sasl.jaas.config": f"the file {path}, named by KAFKA_OPTS, has no section KafkaClient"})
    return section.group(1)
