"""connectctl reindex on a real server: another mapping while records keep coming, and back again."""

import json

import pytest
from click.testing import CliRunner

from standalone.cli.ctl import main
from standalone.testing import wait_for


class Setting:
    """A topic whose sink writes to an index after an alias."""

    def __init__(self, sink, folder):
        self.sink, self.search = sink, sink.search
        self.alias, self.old, self.new = sink.topic, f"{sink.topic}-v1", f"{sink.topic}-v2"
        self.search.ask("PUT", f"/{self.old}", {"aliases": {self.alias: {}}, "mappings": {"properties": {"n": {"type": "text"}}}})
        self.first = sink.start(**{"behavior.on.null.values": "delete"})
        self.second = f"{self.first}-{self.new}"
        self.mapping = folder / "mapping.json"
        self.mapping.write_text('{"properties": {"n": {"type": "keyword"}}}')

    def ctl(self, *arguments, code=0):
        url = "http://{}:{}".format(*self.sink.worker.process.rest.address)
        result = CliRunner().invoke(main, ["--url", url, "reindex", self.first, *map(str, arguments)], prog_name="connectctl")
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.output

    def holders(self):
        return list(self.search.ask("GET", f"/_alias/{self.alias}"))

    def states(self):
        return {name: self.sink.worker.states(name)[0] for name in (self.first, self.second) if name in self.sink.worker.herder.names()}

    def wait_documents(self, index, expected):
        wait_for(lambda: self.search.documents(index) == expected, what=f"{index} to hold {expected}")


@pytest.fixture
def setting(sink, tmp_path):
    made = Setting(sink, tmp_path)
    yield made
    for name in {made.second} & set(sink.worker.herder.names()):
        sink.worker.herder.delete(name)


def numbers(*range_):
    return {f"k{n}": {"n": str(n)} for n in range(*range_)}


def send(setting, *range_):
    setting.sink.send([(f"k{n}", json.dumps({"n": str(n)})) for n in range(*range_)])


def test_a_new_mapping_and_back_again(setting):
    send(setting, 20)
    setting.sink.wait_committed()
    said = setting.ctl("--mapping", setting.mapping)
    assert [line[0] for line in said.splitlines()[:1]] == ["1"] and "moved the alias" in said
    assert setting.holders() == [setting.new]
    assert setting.states() == {setting.first: "STOPPED", setting.second: "RUNNING"}
    assert setting.search.properties(setting.new) == {"n": {"type": "keyword"}}
    send(setting, 20, 30)
    setting.wait_documents(setting.new, numbers(30))
    assert "moved the alias" not in setting.ctl("--mapping", setting.mapping), "again changes nothing"
    setting.ctl("--undo")
    assert setting.holders() == [setting.old]
    assert setting.states() == {setting.first: "RUNNING"}
    setting.wait_documents(setting.old, numbers(30))
    assert "error" in setting.search.ask("GET", f"/{setting.new}")


def test_it_goes_on_where_it_was_left_and_deletes_what_was(setting):
    send(setting, 20)
    setting.sink.wait_committed()
    setting.ctl("--mapping", setting.mapping, "--timeout", "-1", code=1)  # not caught up within no time
    assert setting.holders() == [setting.old]
    send(setting, 20, 25)
    setting.sink.wait_committed()
    assert "is there" in setting.ctl("--mapping", setting.mapping, "--delete")
    assert setting.holders() == [setting.new]
    assert setting.states() == {setting.second: "RUNNING"}
    setting.sink._names.clear()
    assert "error" in setting.search.ask("GET", f"/{setting.old}")
    setting.wait_documents(setting.new, numbers(25))


def test_what_cannot_be_done_is_told(setting):
    assert "--mapping" in setting.ctl(code=2)
    assert "nothing to undo" in setting.ctl("--undo", code=1)
    setting.search.ask("PUT", f"/{setting.new}")
    assert "has not made" in setting.ctl("--mapping", setting.mapping, code=1)
    setting.mapping.write_text("no")
    assert "not JSON" in setting.ctl("--mapping", setting.mapping, code=1)
