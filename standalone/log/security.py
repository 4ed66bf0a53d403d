"""A client's credentials for a cluster: TLS contexts and logins from Java's properties, shared by all its connections."""

import threading

from standalone.errors import ConfigError
from standalone.log import tls
from standalone.log.jaas import jaas_options
from standalone.log.kerberos import Kerberos
from standalone.log.oauth import Tokens


def uses_tls(config):
    return config["security.protocol"] in ("SSL", "SASL_SSL")


def uses_sasl(config):
    return config["security.protocol"] in ("SASL_PLAINTEXT", "SASL_SSL")


class Credentials:
    """For one cluster; thread-safe. Files are read once, on the first connection; a token is requested when the last one expires."""

    def __init__(self, config, clock):
        self._config, self._clock = config, clock
        self._lock = threading.Lock()
        self._tls = None
        self._tokens = None

    def tls(self):
        """Return the ssl.SSLContext. Raise ConfigError if invalid."""
        with self._lock:
            if self._tls is None:
                self._tls = tls.context(self._config)
            return self._tls

    def mechanism(self, host):
        """Return a SASL mechanism (kafka-python's interface) for one login to `host`.

        Raises ConfigError; LogRetriableError while no token or ticket can be obtained.
        """
        from kafka.net.sasl import SASL_MECHANISMS

        config, name = self._config, self._config["sasl.mechanism"]
        if name not in SASL_MECHANISMS:
            raise ConfigError.of({"sasl.mechanism": f"'{name}' is none of {', '.join(sorted(SASL_MECHANISMS))}"})
        options = jaas_options(config["sasl.jaas.config"])
        if name == "GSSAPI":
            return Kerberos(config, options, host)
        settings = {"host": host, "security_protocol": config["security.protocol"], "sasl_mechanism": name}
        if name == "PLAIN" or name.startswith("SCRAM-"):
            missing = [option for option in ("username", "password") if option not in options]
            if missing:
                raise ConfigError.of({"sasl.jaas.config": f"{' and '.join(missing)} missing, which {name} needs"})
            settings.update(sasl_plain_username=options["username"], sasl_plain_password=options["password"])
        elif name == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = self._token_provider(options)
        try:
            return SASL_MECHANISMS[name](**settings)
        except (RuntimeError, ImportError) as problem:
            raise ConfigError.of({"sasl.mechanism": f"{name} cannot be used here: {problem}"}) from problem

    def refused(self):
        """Note that a broker refused the login: a cached token may have been revoked."""
        with self._lock:
            if self._tokens is not None:
                self._tokens.forget()

    def _token_provider(self, options):
        from kafka.net.sasl.oauth import AbstractTokenProvider

        with self._lock:
            if self._tokens is None:
                self._tokens = Tokens(self._config, options, self._clock)
            token = self._tokens.token()

        class Provider(AbstractTokenProvider):
            def token(self):
                return token

            def extensions(self):
                prefix = "extension_"
                return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}

        return Provider()
