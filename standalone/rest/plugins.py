"""/connector-plugins: list plugins, their config keys, and validate configurations."""

from standalone.config import STRING, Password, key_info, text_of
from standalone.errors import BadRequestError
from standalone.rest import shapes
from standalone.rest.connectors import texts
from standalone.rest.resource import Operation, body_object, flag, json_answer, resource

_CONNECTORS = ("source", "sink")


def routes(herder):
    def listed(request):
        plugins = herder.plugins()
        if flag(request, "connectorsOnly", default=True):
            plugins = [plugin for plugin in plugins if plugin["type"] in _CONNECTORS]
        return json_answer(plugins)

    def config(request):
        return json_answer([key_info(option) for option in herder.plugin_options(request.path_params["name"]) if not option.internal])

    def validate(request, said):
        props = texts(body_object(said))
        named, given = request.path_params["name"], props.get("connector.class")
        if not given:
            raise BadRequestError("The configuration has no 'connector.class'.")
        if not herder.same_connector(named, given):
            raise BadRequestError(f"The configuration's connector.class '{given}' is not the plugin '{named}' in the path.")
        return json_answer(_verdict(herder.examine(props), props, given))

    one = "/connector-plugins/{name}/config"
    connectors_only = {"connectorsOnly": {**shapes.YES_NO, "default": True}}
    return [
        resource("/connector-plugins", GET=Operation(listed, "List plugins", {200: shapes.PLUGINS}, query=connectors_only)),
        resource(one, GET=Operation(config, "Configuration keys of a plugin", {200: shapes.KEYS}, problems=_HANGS)),
        resource(
            f"{one}/validate",
            PUT=Operation(
                *(validate, "Validate a configuration", {200: shapes.VERDICT}),
                **{"body": shapes.CONFIG_SENT, "problems": _HANGS, "as_texts": True},
            ),
        ),
    ]


_HANGS = (409,)


def _verdict(found, props, connector_class):
    """Return ConfigInfos, as Connect calls it."""
    shown = [(option, value) for option, value in found if option is None or not option.internal or option.name in props]
    return {
        "name": connector_class,
        "error_count": sum(len(value.errors) for _, value in shown),
        "groups": list(dict.fromkeys(option.group for option, _ in shown if option and option.group)),
        "configs": [{"definition": key_info(option) if option else None, "value": _value(option, value)} for option, value in shown],
    }


def _value(option, value):
    kind = option.type if option else STRING
    return {
        "name": value.name,
        "value": _text(value.value, kind),
        "recommended_values": [_text(each, kind) for each in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def _text(value, kind):
    return str(value) if isinstance(value, (str, Password)) else text_of(value, kind)
