"""Where converters find their schema registry: `schema.registry.url=embedded` is the worker's own, and so is none at all beside the embedded log."""

from standalone.schema_registry.keys import EMBEDDED, URL


def asks_registry(converter):
    """Whether a converter's class takes the address of a registry."""
    return converter is not None and converter.config_def is not None and URL in converter.config_def


def missing_url(key, props, converter, embedded_log):
    """{key: message} where a converter needs an address and there is none."""
    if not asks_registry(converter) or embedded_log or props.get(f"{key}.{URL}"):
        return {}
    return {f"{key}.{URL}": f"is missing: write http://host:port of the schema registry, or '{EMBEDDED}' for the worker's own"}


def with_address(props, converter, embedded_url):
    """A converter's strings, with the address of the worker's registry where that is meant. `embedded_url()` starts it."""
    if asks_registry(converter) and (props.get(URL) or EMBEDDED).strip() == EMBEDDED:
        return {**props, URL: embedded_url()}
    return props
