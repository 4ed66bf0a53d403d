"""A transform as its users write them, for scripts/bench/variants.py: what a request was like, and who made it, in one word each."""

from standalone import INT, MEDIUM, ConfigDef, Option, Transform


class RateRequests(Transform):
    """Call slow requests so, count the words of their messages, and keep of the user no more than a bucket."""

    stateless = True
    config_def = ConfigDef(Option("slow.ms", INT, MEDIUM, "Longer than that is slow.", default=2500))

    def configure(self, config):
        self.slow_ms = config["slow.ms"]

    def apply(self, record):
        value = dict(record.value)
        user = value.pop("user")
        is_slow = value["latency_ms"] > self.slow_ms
        if is_slow and value["level"] == "INFO":
            value["level"] = "WARN"
        value["speed"] = "slow" if is_slow else "fast"
        value["words"] = len(value["message"].split())
        value["bucket"] = f"{user['region']}-{sum(user['name'].encode()) % 64}"
        if "zone-0" in value["tags"]:
            value["service"] = value["service"].upper()
        return record.with_value(record.value_schema, value)
