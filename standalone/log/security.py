"""TLS contexts and SASL mechanisms out of Java's property names: kafka-python's own parts, fed with what Java users write."""

import base64
import json
import os
import re
import ssl
import tempfile
import time

from standalone.errors import ConfigError, LogFatalError
from standalone.log.broker_errors import java_class


def uses_tls(config):
    return config["security.protocol"] in ("SSL", "SASL_SSL")


def uses_sasl(config):
    return config["security.protocol"] in ("SASL_PLAINTEXT", "SASL_SSL")


# ---- TLS


def ssl_context(config):
    """As kafka-python builds it, from PEM files or PEM text."""
    from kafka.net.transport import KafkaSSLTransport

    for store in ("ssl.truststore", "ssl.keystore"):
        _refuse_java_stores(config, store)
    files = []
    try:
        authorities = config["ssl.truststore.location"] or _pem_file(files, config["ssl.truststore.certificates"])
        chain = config["ssl.keystore.location"] or _pem_file(files, config["ssl.keystore.certificate.chain"])
        key = None if config["ssl.keystore.location"] else _pem_file(files, config["ssl.keystore.key"])
        context = KafkaSSLTransport._build_ssl_context(
            {
                **KafkaSSLTransport.DEFAULT_CONFIG,
                "ssl_check_hostname": bool(config["ssl.endpoint.identification.algorithm"]),
                "ssl_cafile": authorities,
                "ssl_certfile": chain,
                "ssl_keyfile": key,
                # a function, not None: OpenSSL would ask on the terminal for the password of an encrypted key
                "ssl_password": config["ssl.key.password"] or (lambda: ""),
            }
        )
    except (OSError, ssl.SSLError) as problem:
        names = [n for n in ("ssl.truststore.location", "ssl.keystore.location", "ssl.key.password") if config[n]]
        where = ", ".join(f"{n}={config[n]}" if n.endswith("location") else n for n in names) or "the PEM text of ssl.*"
        key = names[0] if names else "ssl.truststore.certificates"
        raise ConfigError.of({key: f"{where} cannot be used: {problem}"}) from problem
    finally:
        for path in files:
            os.unlink(path)
    if config["ssl.enabled.protocols"] == ["TLSv1.3"]:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _pem_file(files, text):
    """OpenSSL reads keys from files only: one that nobody else can read and that goes at once."""
    if text is None:
        return None
    handle, path = tempfile.mkstemp(suffix=".pem")
    files.append(path)
    with os.fdopen(handle, "w") as file:
        file.write(text if "\n" in text.strip() else _unfold(text))
    return path


def _unfold(text):
    """PEM written on one line, as it stands in a properties file without continuation, back on many."""
    return re.sub(r"-----BEGIN ([A-Z ]+)-----\s*(.*?)\s*-----END \1-----", _as_block, text, flags=re.S)


def _as_block(match):
    name, body = match.group(1), "\n".join(match.group(2).split())
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----\n"


def _refuse_java_stores(config, store):
    kind, path = config[f"{store}.type"].upper(), config[f"{store}.location"]
    if path and kind != "PEM":
        raise ConfigError.of(
            {
                f"{store}.type": f"{kind} stores ({path}) can only be read by Java. Convert it: "
                f"`keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12`, then "
                f"`openssl pkcs12 -in store.p12 -out store.pem`, and set {store}.type=PEM and {store}.location=store.pem"
            }
        )


# ---- SASL


def sasl_mechanism(config, host):
    """The mechanism object of kafka-python that gives the bytes of this login."""
    from kafka.net.sasl import SASL_MECHANISMS

    name = config["sasl.mechanism"]
    if name not in SASL_MECHANISMS:
        raise ConfigError.of({"sasl.mechanism": f"'{name}' is none of {', '.join(sorted(SASL_MECHANISMS))}"})
    options = jaas_options(config["sasl.jaas.config"])
    settings = {"host": host, "security_protocol": config["security.protocol"], "sasl_mechanism": name}
    if name == "PLAIN" or name.startswith("SCRAM-"):
        missing = [option for option in ("username", "password") if option not in options]
        if missing:
            raise ConfigError.of({"sasl.jaas.config": f"no {' and no '.join(missing)} in it, which {name} needs"})
        settings.update(sasl_plain_username=options["username"], sasl_plain_password=options["password"])
    elif name == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = _token_provider(config, options)
    elif name == "GSSAPI":
        service = config["sasl.kerberos.service.name"] or options.get("serviceName")
        settings.update(sasl_kerberos_service_name=service or "kafka", sasl_kerberos_name=None, sasl_kerberos_domain_name=None)
    try:
        return SASL_MECHANISMS[name](**settings)
    except (RuntimeError, ImportError) as problem:
        raise ConfigError.of({"sasl.mechanism": f"{name} cannot be used here: {problem}"}) from problem


_JAAS_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s"'=;]+))""", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def jaas_options(text):
    """The options of `module.Class required key="value" ...;`; empty for None."""
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
        raise _jaas_error("no control flag (such as required) behind the module")
    options, pairs = {}, tokens[2:-1]
    for index in range(0, len(pairs), 3):
        name, equals, value = (pairs[index : index + 3] + [(None, None)] * 3)[:3]
        if name[1] is None or equals[0] != "=" or value[1] is None:
            raise _jaas_error(f"an option that is no name=value, the {index // 3 + 1}. of it")
        options[name[1]] = value[1]
    return options


def _unescape(match):
    code = match.group(1)
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)


def _jaas_error(found):
    example = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
    return ConfigError.of({"sasl.jaas.config": f"{found}. Write: {example}"})


def _token_provider(config, options):
    from kafka.net.sasl.oauth import AbstractTokenProvider

    endpoint = config["sasl.oauthbearer.token.endpoint.url"]
    client = config["sasl.oauthbearer.client.credentials.client.id"] or options.get("clientId")
    secret = config["sasl.oauthbearer.client.credentials.client.secret"] or options.get("clientSecret")
    subject = options.get("unsecuredLoginStringClaim_sub")
    if not endpoint and not subject:
        raise ConfigError.of({"sasl.oauthbearer.token.endpoint.url": "missing: OAUTHBEARER asks there for its token"})
    if endpoint and endpoint.startswith("http") and not (client and secret):
        raise ConfigError.of({"sasl.jaas.config": f'no clientId="..." and clientSecret="...", which {endpoint} asks for'})

    class Provider(AbstractTokenProvider):
        """Asked once a connection."""

        def token(self):
            if not endpoint:
                return _unsecured_token(subject)
            return _fetch_token(endpoint, client, secret, config)

        def extensions(self):
            prefix = "extension_"
            return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}

    return Provider()


def _fetch_token(endpoint, client, secret, config):
    import urllib.parse
    import urllib.request  # slow to load, and seldom needed

    form = {"grant_type": "client_credentials"}
    if scope := config["sasl.oauthbearer.scope"]:
        form["scope"] = scope
    request = urllib.request.Request(endpoint)
    if endpoint.startswith("http"):
        request.data = urllib.parse.urlencode(form).encode()
        request.add_header("Authorization", "Basic " + _base64(f"{client}:{secret}".encode()))
    try:
        with urllib.request.urlopen(request, timeout=config.seconds("sasl.login.connect.timeout.ms")) as answer:
            body = answer.read().decode().strip()
        return json.loads(body)["access_token"] if body.startswith("{") else body
    except (OSError, ValueError, KeyError) as problem:
        message = f"No OAuth token from {endpoint} (sasl.oauthbearer.token.endpoint.url): {problem}"
        raise LogFatalError(message, java_class("SaslAuthenticationException")) from problem


def _unsecured_token(subject):
    """A token without signature, for development, as Java's unsecured login makes it: valid for an hour."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + 3600})
    return ".".join(_base64(json.dumps(part).encode(), url=True) for part in parts) + "."


def _base64(data, url=False):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode() if url else base64.b64encode(data).decode()
