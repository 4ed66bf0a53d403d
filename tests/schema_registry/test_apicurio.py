"""Our client against another implementation of the registry, at night."""

import pytest

from standalone.schema_registry.client import RegistryDataError, RegistrySchema, SchemaRegistryClient

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
ONE, OTHER = RegistrySchema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'), RegistrySchema('"string"')


def test_our_client_registers_finds_and_compares(apicurio_url):
    client = SchemaRegistryClient.from_config({"schema.registry.url": f"{apicurio_url}/apis/ccompat/v7"})
    id = client.register("ours-value", ONE)
    assert client.id_of("ours-value", ONE) == id
    assert client.schema_by_id(id) == ONE
    assert client.latest("ours-value") == (1, id, ONE) and client.version("ours-value", 1) == (id, ONE)
    assert "ours-value" in client.subjects() and client.versions("ours-value") == [1]
    client.set_compatibility("BACKWARD", "ours-value")
    assert client.compatible("ours-value", ONE) == [] != client.compatible("ours-value", OTHER)
    with pytest.raises(RegistryDataError) as refused:
        client.register("ours-value", OTHER)
    assert refused.value.status == 409
    with pytest.raises(RegistryDataError) as missing:
        client.schema_by_id(1_000_000)
    assert missing.value.status == 404
