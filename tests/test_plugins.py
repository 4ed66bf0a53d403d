"""Names of plugins: what Kafka accepts, what Python adds, and what is said about a name that means nothing."""

import sys
import textwrap
from importlib.machinery import ModuleSpec

import pytest
from pytest import param

import standalone
from standalone import plugins as module
from standalone.config import ConfigDef, Option, class_name
from standalone.errors import ConfigError, NotFoundError
from standalone.plugins import Plugins
from standalone.stage import Converter, FieldTransform, HeaderConverter, Predicate, Transform

SOURCE = """
from standalone import SourceConnector, SinkConnector, SourceTask

class TickSourceConnector(SourceConnector):
    java_name = "com.acme.TickSourceConnector"
    version = "7"

class TickTask(SourceTask):
    pass

class TockSinkConnector(SinkConnector):
    pass
"""

TRANSFORMS = """
from standalone import FieldTransform, Predicate, Transform

class Upper(FieldTransform):
    pass

class Drop(Transform):
    pass

class IsOdd(Predicate):
    pass
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of plugin.path; its modules are forgotten afterwards."""
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if not name.startswith(("standalone", "connectors")):
            del sys.modules[name]


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture
def stand_ins(monkeypatch):
    """Built-ins whose modules are made up, so that this test depends on no converter's being there."""
    made = type(sys)("stand_ins")
    made.JsonConverter = type("JsonConverter", (Converter, HeaderConverter), {"java_name": "x.json.JsonConverter", "__module__": "stand_ins"})
    made.OddHeaderConverter = type("OddHeaderConverter", (HeaderConverter,), {"java_name": "x.OddHeaderConverter", "__module__": "stand_ins"})
    made.Hoist = type("Hoist", (FieldTransform,), {"java_name": "x.transforms.Hoist", "__module__": "stand_ins"})
    made.Route = type("Route", (Transform,), {"java_name": "x.transforms.Route", "__module__": "stand_ins"})
    made.Odd = type("Odd", (Predicate,), {"java_name": "x.Odd", "__module__": "stand_ins"})
    made.__spec__ = ModuleSpec("stand_ins", None)
    monkeypatch.setitem(sys.modules, "stand_ins", made)
    both = ("converter", "header_converter")
    table = {
        "x.json.JsonConverter": ("stand_ins:JsonConverter", both, ()),
        "x.OddHeaderConverter": ("stand_ins:OddHeaderConverter", ("header_converter",), ()),
        "x.transforms.Hoist": ("stand_ins:Hoist", ("transform",), ("Key", "Value")),
        "x.transforms.Route": ("stand_ins:Route", ("transform",), ()),
        "x.Odd": ("stand_ins:Odd", ("predicate",), ()),
        "x.transforms.Later": ("standalone.transforms.not_yet_written:Later", ("transform",), ()),
    }
    monkeypatch.setattr(module, "BUILT_IN", table)
    return made


@pytest.mark.parametrize(
    "kind, name, expected",
    [
        param("converter", "x.json.JsonConverter", "x.json.JsonConverter", id="java name"),
        param("converter", "JsonConverter", "x.json.JsonConverter", id="simple name"),
        param("converter", "Json", "x.json.JsonConverter", id="without Converter"),
        param("header_converter", "Json", "x.json.JsonConverter", id="a converter of headers too"),
        param("header_converter", "Odd", "x.OddHeaderConverter", id="without HeaderConverter"),
        param("header_converter", "OddHeader", "x.OddHeaderConverter", id="without Converter only"),
        param("converter", "stand_ins:JsonConverter", "x.json.JsonConverter", id="python path with a colon"),
        param("converter", "stand_ins.JsonConverter", "x.json.JsonConverter", id="python path with dots"),
        param("transform", "x.transforms.Hoist$Value", "x.transforms.Hoist$Value", id="java name of an inner class"),
        param("transform", "x.transforms.Hoist$Key", "x.transforms.Hoist$Key", id="and of the other one"),
        param("transform", "Hoist$Value", "x.transforms.Hoist$Value", id="simple name of an inner class"),
        param("transform", "stand_ins:Hoist.Value", "x.transforms.Hoist$Value", id="python path of an inner class"),
        param("transform", "Route", "x.transforms.Route", id="transform"),
        param("predicate", "Odd", "x.Odd", id="a predicate is not mistaken for a converter"),
    ],
)
def test_a_plugin_is_found_by_each_of_its_names(stand_ins, kind, name, expected):
    assert class_name(Plugins().find(kind, name)) == expected


@pytest.mark.parametrize(
    "kind, name, error, message",
    [
        param("transform", "x.transforms.Hoist", ConfigError, r"Hoist\$Key' or 'x.transforms.Hoist\$Value", id="key or value is not said"),
        param("transform", "x.transforms.Hoist$Both", NotFoundError, r"No transform", id="neither key nor value"),
        param("transform", "Rout", NotFoundError, "Did you mean 'Route'", id="mistyped"),
        param("transform", "com.acme.Route", NotFoundError, "no Python counterpart.*'package.module:Class'", id="somebody's java class"),
        param("transform", "Later", NotFoundError, "No transform 'Later'", id="a built-in that is not there yet"),
        param("converter", "stand_ins:Route", ConfigError, "is a transform, but a converter is required", id="another kind"),
        param("converter", "pathlib:Path", ConfigError, "is not a plugin", id="any class"),
        param("connector", "", NotFoundError, "No connector ''", id="empty"),
        param("connector", "no.such.Klass", NotFoundError, "No connector 'no.such.Klass'", id="no such module"),
        param("connector", "1.2.3", NotFoundError, "No connector '1.2.3'", id="no name at all"),
    ],
)
def test_a_name_that_will_not_do_is_told_what_would(stand_ins, kind, name, error, message):
    with pytest.raises(error, match=message):
        Plugins().find(kind, name)


def test_files_in_plugin_path_are_found_by_every_name(folder):
    write(folder, "ticks.py", SOURCE)
    write(folder, "pack/__init__.py", "from .inner import Drop, IsOdd, Upper\n")
    write(folder, "pack/inner.py", TRANSFORMS)
    write(folder, "group/more.py", TRANSFORMS.replace("Drop", "Sink1"))
    found = Plugins([str(folder)])
    for name in ("TickSource", "TickSourceConnector", "com.acme.TickSourceConnector", "ticks.TickSourceConnector", "ticks:TickSourceConnector"):
        assert found.find("connector", name).version == "7"
    assert found.find("connector", "TockSink").__name__ == "TockSinkConnector"
    assert class_name(found.find("transform", "Drop")) == "pack.inner.Drop"
    assert class_name(found.find("transform", "Sink1")) == "more.Sink1"
    assert {"class": "com.acme.TickSourceConnector", "type": "source", "version": "7"} in found.list()
    with pytest.raises(ConfigError, match="is ambiguous: more.Upper.Value or pack.inner.Upper.Value"):
        found.find("transform", "Upper$Value")


def test_a_single_file_may_be_the_path(folder):
    assert Plugins([str(write(folder, "ticks.py", SOURCE))]).find("connector", "TickSource")


def test_nothing_is_imported_before_it_is_asked_for(folder):
    write(folder, "loud.py", "raise RuntimeError('imported')\n")
    write(folder, "ticks.py", SOURCE)
    assert Plugins([str(folder)]).find("connector", "TickSource")


def test_a_broken_plugin_hides_only_itself_with_one_warning(folder, caplog):
    write(folder, "broken.py", "import no_such_module\n" + SOURCE.replace("Tick", "Broken"))
    write(folder, "ticks.py", SOURCE)
    found = Plugins([str(folder)])
    names = [plugin["class"] for plugin in found.list() + found.list()]
    assert "com.acme.TickSourceConnector" in names and "com.acme.BrokenSourceConnector" not in names
    assert len([record for record in caplog.records if "broken.py" in record.getMessage()]) == 1
    with pytest.raises(ConfigError, match="broken.py cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"):
        found.find("connector", "BrokenSource")


def test_a_file_named_like_a_library_does_not_replace_it(folder):
    import json

    write(folder, "json.py", SOURCE)
    assert Plugins([str(folder)]).find("connector", "TickSource")
    assert sys.modules["json"] is json


def test_jars_are_skipped_with_one_line_and_a_missing_folder_warns(folder, caplog):
    caplog.set_level("INFO")
    for name in ("a.jar", "b/c.jar", "b/d.jar"):
        write(folder, name, "")
    Plugins([str(folder), str(folder / "absent"), ""])
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == ["WARNING", "INFO"]
    assert "absent does not exist" in told[0][1] and "3 jars" in told[1][1]


def test_entry_points_are_found_by_their_name_and_by_their_class(folder, monkeypatch):
    write(folder, "acme/__init__.py", "")
    write(folder, "acme/ticks.py", SOURCE)
    write(folder, "acme/transforms.py", TRANSFORMS)
    info = folder / "acme-2.5.dist-info"
    write(info, "METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 2.5\n")
    write(
        info,
        "entry_points.txt",
        """
        [connect_standalone.connectors]
        Ticker = acme.ticks:TickSourceConnector
        Gone = acme.gone:GoneSourceConnector
        [connect_standalone.transforms]
        Shout = acme.transforms:Upper
        """,
    )
    monkeypatch.syspath_prepend(str(folder))
    found = Plugins()
    for name in ("Ticker", "TickSource", "com.acme.TickSourceConnector", "acme.ticks.TickSourceConnector"):
        assert found.find("connector", name).__module__ == "acme.ticks"
    assert found.find("transform", "Shout$Value") is found.find("transform", "Upper$Value")
    assert found.version(found.find("transform", "Shout$Key")) == "2.5"
    with pytest.raises(ConfigError, match=r"'Shout\$Key' or 'Shout\$Value'"):
        found.find("transform", "Shout")
    with pytest.raises(ConfigError, match="acme.gone.*cannot be loaded"):
        found.find("connector", "Gone")


def test_a_java_name_that_only_the_class_knows_is_found_by_importing(folder, monkeypatch):
    write(folder, "acme_odd.py", SOURCE.replace("class TickSourceConnector", "class Metronome"))
    info = folder / "acme_odd-1.dist-info"
    write(info, "METADATA", "Metadata-Version: 2.1\nName: acme-odd\nVersion: 1\n")
    write(info, "entry_points.txt", "[connect_standalone.connectors]\nMetronome = acme_odd:Metronome\n")
    monkeypatch.syspath_prepend(str(folder))
    assert Plugins().find("connector", "com.acme.TickSourceConnector").__name__ == "Metronome"


def test_the_checkout_declares_its_own_connectors():
    names = [name for name, _ in module._checkout()["connect_standalone.connectors"]]
    assert {"FileStreamSource", "FileStreamSink"} <= set(names)


def test_every_built_in_that_exists_says_what_its_class_is_called():
    found = Plugins()
    for entry in found._built_in:
        if entry.is_there():
            top = entry.load()[0]
            assert class_name(top) == entry.java_name
            assert all(module._is_kind(top, kind) for kind in entry.kinds)
            assert found.version(top) == (module.KAFKA_VERSION if entry.java_name.startswith("org.apache.kafka.") else standalone.__version__)


def test_class_options_are_found_by_kind(stand_ins):
    definition = ConfigDef(Option("value.converter", "CLASS", "HIGH", "."), Option("other", "CLASS", "LOW", ".", default=None))
    finder = Plugins().class_finder(lambda option: "converter" if option.endswith(".converter") else None)
    config = definition.parse({"value.converter": "Json", "other": "java.lang.String"}, finder)
    assert config["value.converter"] is stand_ins.JsonConverter and class_name(config["other"]) == "java.lang.String"
    with pytest.raises(ConfigError) as caught:
        definition.parse({"value.converter": "Jsonn", "other": "no.such.Class"}, finder)
    assert set(caught.value.errors) == {"value.converter", "other"}
