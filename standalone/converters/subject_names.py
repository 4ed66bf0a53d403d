"""Subject names in the registry: by topic, by record name, or by both."""

from standalone import SerializationError

_PACKAGE = "io.confluent.kafka.serializers.subject."
ASSOCIATED, TOPIC, RECORD, TOPIC_RECORD = (
    f"{_PACKAGE}{name}NameStrategy" for name in ("Associated", "Topic", "Record", "TopicRecord")
)  # fmt: skip
STRATEGIES = (ASSOCIATED, TOPIC, RECORD, TOPIC_RECORD)


def by_topic(strategy):
    """Whether the subject is known before the schema. No registry here supports associations, so the associated strategy falls back to topics."""
    return strategy in (ASSOCIATED, TOPIC)


def subject_of(strategy, topic, is_key, record_name):
    """Return the subject. `record_name` is the full name of the record or message, or None."""
    if by_topic(strategy):
        return f"{topic}-{'key' if is_key else 'value'}"
    if record_name is None:
        part = "key" if is_key else "value"
        raise SerializationError(
            f"{part}.subject.name.strategy={strategy} takes the name of a record, but the schema of the {part} is not a record with a name. "
            f"Use {TOPIC}, or give the struct a name (the transform SetSchemaMetadata does)."
        )
    return record_name if strategy == RECORD else f"{topic}-{record_name}"
