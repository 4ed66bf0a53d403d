"""References in configurations, ${provider:path:key} or ${provider:key}, and their values from config providers.

    providers = Providers.of(worker's strings, plugins)
    found = providers.resolve({"password": "${file:/etc/db.properties:password}"})
    found.strings["password"]         the value
    found.references["password"]    the original text

A reference to an unknown provider, or to a key that its provider does not have, is not replaced, as in Kafka Connect. Resolved values
are treated as secrets (secrets.py).
"""

import logging
import re
from typing import NamedTuple

from standalone import secrets
from standalone.config import LIST, message_of, nearest, parse_type, with_prefix
from standalone.errors import ConfigError, ConnectError, NotFoundError
from standalone.provider import Values

log = logging.getLogger(__name__)

_KEY = "config.providers"
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")  # Kafka's: provider, path, key


class Resolved(NamedTuple):
    texts: dict
    references: dict  # key -> the original text, for keys with a value from a provider
    ttl_ms: int | None  # when the first of the values expires


class Providers:
    """`providers` maps names to the configured providers; `warnings` are sentences about their keys."""

    def __init__(self, providers=None, warnings=()):
        self._providers = providers or {}
        self.warnings = list(warnings)

    @classmethod
    def of(cls, props, plugins):
        """The providers named in the worker's configuration. Raises ConfigError with every wrong key."""
        names = [name for name in parse_type(_KEY, props.get(_KEY), LIST) or () if name]
        providers, errors, warnings = {}, {}, []
        for name in names:
            try:
                providers[name] = _configured(f"{_KEY}.{name}.", props, plugins)
            except ConfigError as error:
                errors.update(error.errors)
        if errors:
            cls(providers).close()
            raise ConfigError.of(errors)
        for key in props:
            if key.startswith(f"{_KEY}."):
                warnings += _doubt(key, providers)
        return cls(providers, warnings)

    def resolve(self, props):
        """Replace references by values. Raises one ConfigError with every key whose values cannot be resolved."""
        wanted = {}  # (provider, path) -> its keys -> the configuration's keys that need them
        for name, text in props.items():
            for provider, path, key in self._references(text):
                wanted.setdefault((provider, path), {}).setdefault(key, []).append(name)
        found, errors, ttls = {}, {}, []
        for (provider, path), keys in wanted.items():
            try:
                values = self._providers[provider].get(path, list(keys))
            except Exception as error:  # a provider may raise anything
                said = str(error) if isinstance(error, ConnectError) else f"{type(error).__name__}: {error}"
                errors.update({name: f"the config provider '{provider}' failed: {said}" for names in keys.values() for name in names})
                continue
            values = values if isinstance(values, Values) else Values(dict(values or {}))
            ttls += [values.ttl_ms] if values.ttl_ms is not None else []
            for key, value in values.texts.items():
                found[provider, path, key] = str(value)
                secrets.hide(str(value))
            for key in keys.keys() - values.texts.keys():
                log.warning("%s: the config provider '%s' has no '%s'; the reference is not replaced", ", ".join(keys[key]), provider, key)
        if errors:
            raise ConfigError.of(errors)
        texts = {name: self._replaced(text, found) for name, text in props.items()}
        references = {name: text for name, text in props.items() if texts[name] != text}
        return Resolved(texts, references, min(ttls, default=None))

    def is_reference(self, text):
        """Whether the text is nothing but a reference, and so contains no secret."""
        match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
        return bool(match) and match[1] in self._providers

    def close(self):
        """Close each provider, even if another fails to close."""
        providers, self._providers = self._providers, {}
        for name, provider in providers.items():
            try:
                provider.close()
            except Exception:
                log.exception("Closing the config provider '%s' failed", name)

    def _references(self, text):
        if not isinstance(text, str) or "${" not in text:
            return
        for match in _REFERENCE.finditer(text):
            if match[1] in self._providers:
                yield match[1], match[2] or "", match[3]

    @staticmethod
    def _replaced(text, found):
        if not found or not isinstance(text, str) or "${" not in text:
            return text
        return _REFERENCE.sub(lambda match: found.get((match[1], match[2] or "", match[3]), match[0]), text)


def _configured(prefix, props, plugins):
    """Create and configure the provider of these keys."""
    name = (props.get(f"{prefix}class") or "").strip()
    if not name:
        raise ConfigError.of({f"{prefix}class": "is missing; it names the provider's class"})
    try:
        found = plugins.find("config_provider", name)
    except (ConfigError, NotFoundError) as error:
        raise ConfigError.of({f"{prefix}class": str(error)}) from error
    parameters = with_prefix(props, f"{prefix}param.")
    try:
        provider = found()
        provider.configure(found.config_def.parse(parameters) if found.config_def else parameters)
    except ConfigError as error:
        wrong = {f"{prefix}param.{key}": message_of(error, key) for key in error.errors}
        raise ConfigError.of(wrong or {f"{prefix}class": str(error)}) from error
    except Exception as error:
        raise ConfigError.of({f"{prefix}class": f"cannot be configured: {type(error).__name__}: {error}"}) from error
    return provider


def _doubt(key, providers):
    """A warning if the key belongs to a provider that does not use it."""
    name, _, rest = key[len(_KEY) + 1 :].partition(".")
    if name not in providers:
        yield f"{key} has no effect: config.providers does not name '{name}'."
        return
    definition = providers[name].config_def
    own = ["class", *(f"param.{each}" for each in definition.names())] if definition else []
    if own and rest not in own:
        close = nearest(rest, own)
        yield f"{key} is not a key of that config provider and has no effect." + (f" Did you mean {_KEY}.{name}.{close}?" if close else "")
