"""/ui/api: create and alter topics, and list consumer groups with lag, for the web page."""

from standalone.errors import BadRequestError
from standalone.rest.resource import Operation, body_object, json_answer, resource

WORDS = frozenset("name value own state partitions topic partition committed end lag problem".split())


def routes(worker):
    def create(request, said):
        said = _only(body_object(said), "name", "partitions", "replication", "configs")
        name = said.get("name")
        if not isinstance(name, str) or not name.strip():
            raise BadRequestError("The topic needs a 'name'.")
        worker.log_keeper().create(name.strip(), _count(said, "partitions"), _count(said, "replication"), _configs(said))
        return json_answer({"name": name.strip()}, 201)

    def configs(request):
        return json_answer(worker.log_keeper().configs(request.path_params["topic"]))

    def change(request, said):
        said = _only(body_object(said), "configs", "partitions")
        worker.log_keeper().change(request.path_params["topic"], _configs(said, or_none=True), _count(said, "partitions"))
        return json_answer(worker.log_keeper().configs(request.path_params["topic"]))

    def groups(request):
        return json_answer(worker.log_keeper().groups())

    return [
        resource("/ui/api/topics/new", POST=Operation(create, None, {}, body={})),
        resource("/ui/api/topics/{topic}/configs", GET=configs, PATCH=Operation(change, None, {}, body={})),
        resource("/ui/api/groups", GET=groups),
    ]


def _only(said, *members):
    strange = sorted(set(said) - set(members))
    if strange:
        raise BadRequestError(f"Unknown member '{strange[0]}' in the body: allowed are {', '.join(members)}.")
    return said


def _count(said, member):
    number = said.get(member)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 10_000:
        raise BadRequestError(f"'{member}' must be a whole number from 1 to 10000, not {number!r}.")
    return number


def _configs(said, or_none=False):
    configs = said.get("configs") or {}
    if not isinstance(configs, dict) or not all(isinstance(value, str) or (or_none and value is None) for value in configs.values()):
        raise BadRequestError("'configs' must be an object with string values, such as {\"retention.ms\": \"60000\"}.")
    return configs
