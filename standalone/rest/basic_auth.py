"""BasicAuthSecurityRestExtension: HTTP Basic authentication against a file of `name=password` lines.

The file is named by `rest.basic.auth.file`, or as in Java by KAFKA_OPTS=-Djava.security.auth.login.config=FILE, which contains

    KafkaConnect {
        org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
        file="/etc/connect/credentials.properties";
    };
"""

import base64
import binascii
import hmac
import os
import re

from standalone import properties as properties_files
from standalone.errors import ConfigError
from standalone.rest.extension import RestExtension

JAVA_NAME = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
FILE_KEY = "rest.basic.auth.file"
_JAAS_OPTION = re.compile(r"-Djava\.security\.auth\.login\.config=(?:\"([^\"]+)\"|(\S+))")
_ENTRY = re.compile(r"KafkaConnect\s*\{(.*?)\}\s*;", re.DOTALL)
_MODULE = re.compile(r"PropertyFileLoginModule\s+\w+\s+.*?file\s*=\s*\"([^\"]*)\"", re.DOTALL | re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?\*/|(?m:^\s*(?://|#)[^\n]*$)", re.DOTALL)


class BasicAuthSecurityRestExtension(RestExtension):
    realm = "connect"

    def configure(self, properties):
        path = properties.get(FILE_KEY) or _file_of_jaas(os.environ.get("KAFKA_OPTS", ""))
        try:
            known = properties_files.load(path)
        except ConfigError as error:
            raise ConfigError.of({FILE_KEY: str(error)}) from error
        if not known:
            raise ConfigError.of({FILE_KEY: f"{path} has no users: write lines of name=password (Java would allow every request)"})
        self._known = {name: password.encode() for name, password in known.items()}

    def before(self, request):
        name, password = _credentials(request.headers.get("authorization", ""))
        known = self._known.get(name)
        # Compare even for unknown names, so that the response time does not reveal which names exist.
        right = hmac.compare_digest(password, b"" if known is None else known)
        return None if right and known is not None else (401, "User cannot access the resource.")


def _credentials(header):
    """Return (name, password as bytes) of an Authorization header; (None, …) if it has none."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return None, b""
    try:
        name, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        return (name.decode() if colon and name else None), password
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None, b""


def _file_of_jaas(options):
    """Return the credentials file named by Java's option."""
    found = _JAAS_OPTION.search(options)
    if not found:
        wanted = "a file of name=password lines, or KAFKA_OPTS=-Djava.security.auth.login.config=FILE as for Java"
        raise ConfigError.of({FILE_KEY: f"is missing: {wanted}"})
    path = found[1] or found[2]
    try:
        with open(path, encoding="utf-8") as file:
            text = _COMMENT.sub("", file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.of({FILE_KEY: f"the JAAS file {path} of KAFKA_OPTS cannot be read: {error}"}) from error
    entry = _ENTRY.search(text)
    module = entry and _MODULE.search(entry[1])
    if not module or not module[1]:
        raise ConfigError.of({FILE_KEY: f'{path} has no entry KafkaConnect {{ …PropertyFileLoginModule required file="…"; }};'})
    return module[1]
