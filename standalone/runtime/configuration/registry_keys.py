"""The schema registry of converters: `schema.registry.url=embedded` is the worker's own, which is also the default with the embedded log."""

from standalone.schema_registry.keys import EMBEDDED, URL


def asks_registry(converter):
    """Whether a converter's class has the option for a registry's URL."""
    return converter is not None and converter.config_def is not None and URL in converter.config_def


def missing_url(key, props, converter, embedded_log):
    """{key: message} if a converter needs a registry's URL and none is set."""
    if not asks_registry(converter) or embedded_log or props.get(f"{key}.{URL}"):
        return {}
    return {f"{key}.{URL}": f"is missing: set it to http://host:port of the schema registry, or '{EMBEDDED}' for the worker's own"}


def with_address(props, converter, embedded_url):
    """A converter's configuration, with the URL of the worker's registry if it uses that. `embedded_url()` starts it."""
    if asks_registry(converter) and (props.get(URL) or EMBEDDED).strip() == EMBEDDED:
        return {**props, URL: embedded_url()}
    return props
