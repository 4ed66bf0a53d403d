"""Group configs, with Kafka's names, defaults and bounds. Those of share groups have effect; others are stored and returned."""

import functools

from standalone.log.broker import options
from standalone.log.broker.options import BOOLEAN, INT, MOOT, STRING, TopicConfig
from standalone.log.broker.refusal import Refusal, codes

_KIND = "group configs"
_ISOLATION = ("read_uncommitted", "read_committed")
BY_DURATION = "by_duration:"

GROUP_CONFIGS = {
    "consumer.assignment.interval.ms": TopicConfig(INT, 1000, MOOT, None, "group.consumer.assignment.interval.ms", (), 0, 15_000),
    "consumer.heartbeat.interval.ms": TopicConfig(INT, 5000, MOOT, None, "group.consumer.heartbeat.interval.ms", (), 5000, 15_000),
    "consumer.session.timeout.ms": TopicConfig(INT, 45_000, MOOT, None, "group.consumer.session.timeout.ms", (), 45_000, 60_000),
    "share.assignment.interval.ms": TopicConfig(INT, 1000, MOOT, None, "group.share.assignment.interval.ms", (), 0, 15_000),
    "share.auto.offset.reset": TopicConfig(
        STRING, "latest", "The start offset in a partition that the group never fetched: latest, earliest, or by_duration:PnDTnHnMnS before now."
    ),
    "share.delivery.count.limit": TopicConfig(
        INT, 5, "A record that was delivered so many times is archived.", None, "group.share.delivery.count.limit", (), 2, 10
    ),
    "share.heartbeat.interval.ms": TopicConfig(
        INT, 5000, "The interval between heartbeats of a member.", None, "group.share.heartbeat.interval.ms", (), 5000, 15_000
    ),
    "share.isolation.level": TopicConfig(
        STRING, "read_uncommitted", "read_committed: records of open and of aborted transactions are not delivered.", None, None, _ISOLATION
    ),
    "share.partition.max.record.locks": TopicConfig(
        INT, 2000, "The limit of records in flight in a share-partition.", None, "group.share.partition.max.record.locks", (), 100, 4000
    ),
    "share.record.lock.duration.ms": TopicConfig(
        INT, 30_000, "How long a member's acquisition lock on a record lasts.", None, "group.share.record.lock.duration.ms", (), 15_000, 60_000
    ),
    "share.renew.acknowledge.enable": TopicConfig(BOOLEAN, True, "Whether members may renew acquisition locks."),
    "share.session.timeout.ms": TopicConfig(
        INT, 45_000, "A member that sends no heartbeat for this time is removed.", None, "group.share.session.timeout.ms", (), 45_000, 60_000
    ),
}


class GroupConfigs:
    """Owned by one thread. Other threads may read the dicts that `values` returns."""

    def __init__(self, store):
        self._store = store
        self._own = store.documents(_KIND)  # group id -> {name: text}
        self._values = {}

    def __iter__(self):
        return iter(sorted(self._own))

    def own(self, group_id):
        return self._own.get(group_id, {})

    def values(self, group_id):
        """All configs of the group, typed; a by_duration reset is a number of milliseconds."""
        if group_id not in self._own:
            return _defaults()
        found = self._values.get(group_id)
        if found is None:
            found = self._values[group_id] = _typed(self._own[group_id])
        return found

    def configure(self, group_id, configs, validate_only=False):
        """Replace the configs that are set for the group."""
        if not group_id:
            raise Refusal(codes.InvalidRequestError, "The group id is empty.")
        try:
            values = _typed(configs)
        except ValueError as error:
            raise Refusal(codes.InvalidConfigurationError, str(error)) from error
        for kind in ("consumer", "share"):
            if values[f"{kind}.session.timeout.ms"] <= values[f"{kind}.heartbeat.interval.ms"]:
                raise Refusal(codes.InvalidConfigurationError, f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms.")
        if validate_only:
            return
        if configs:
            self._store.save_document(_KIND, group_id, configs)
            self._own[group_id] = configs
        elif group_id in self._own:
            self._store.delete_document(_KIND, group_id)
            del self._own[group_id]
        self._values.pop(group_id, None)


@functools.cache
def _defaults():
    return {name: known.default for name, known in GROUP_CONFIGS.items()}


def _typed(own):
    """ValueError: an unknown config, or an invalid value."""
    values = dict(_defaults())
    for name, text in own.items():
        known = GROUP_CONFIGS.get(name)
        if known is None:
            raise ValueError(f"There is no group config '{name}'. Known ones: {', '.join(GROUP_CONFIGS)}.")
        values[name] = _reset(text) if name == "share.auto.offset.reset" else options.typed_config(f"Group config '{name}'", known, text)
    return values


def _reset(text):
    from standalone.log.client_config import offset_reset

    found = offset_reset(text or "")
    if found == "none":
        raise ValueError("share.auto.offset.reset must be latest, earliest or by_duration:PnDTnHnMnS.")
    return found
