"""Administration of topics beyond connectors: create topics, change configs, add partitions. Also consumer groups with their lag."""

from standalone.errors import AlreadyExistsError, LogError, NotFoundError


class LogKeeper:
    """`admin` uses the worker's own client properties; `view` returns end offsets. Thread-safe, as both are."""

    def __init__(self, admin, view):
        self._admin, self._view = admin, view

    def create(self, name, partitions=None, replication=None, configs=None):
        if not self._admin.create_topics(name, partitions or -1, replication or -1, configs):
            raise AlreadyExistsError(f"The topic '{name}' already exists.")

    def configs(self, topic):
        """[{name, value, own}] by name; `own`: set on the topic itself. A value is None if the broker hides it as sensitive."""
        self._view.partitions(topic)
        own = self._admin.own_configs(topic)
        return [{"name": name, "value": value, "own": name in own} for name, value in sorted(self._admin.describe_configs(topic).items())]

    def change(self, topic, configs=None, partitions=None):
        """Set configs {name: text}; None resets one to its default. `partitions` is the new, higher number of partitions."""
        self._view.partitions(topic)
        if configs:
            self._admin.incremental_alter_configs(topic, configs)
        if partitions is not None:
            self._admin.create_partitions(topic, partitions)

    def groups(self):
        """[{name, state, partitions: [{topic, partition, committed, end, lag}]}] by name."""
        found = []
        for name, state in sorted(self._admin.list_groups().items()):
            try:
                committed = self._admin.group_offsets(name)
            except LogError as error:
                found.append({"name": name, "state": state, "partitions": [], "problem": str(error)})
                continue
            rows = [self._row(*place, offset) for place, offset in sorted(committed.items())]
            found.append({"name": name, "state": state, "partitions": rows, "problem": None})
        return found

    def _row(self, topic, partition, offset):
        try:
            end = self._view.ranges([(topic, partition)])[topic, partition][1]
        except (LogError, NotFoundError):
            end = None  # deleted, or without a leader
        return {"topic": topic, "partition": partition, "committed": offset, "end": end, "lag": None if end is None else max(0, end - offset)}
