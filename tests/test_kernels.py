"""Kernels: machine code and plain Python mean the same, and nobody but the set-up's command ever runs a compiler."""

import ast
import importlib
import io
import json
import pathlib
import types
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba.core import event

from standalone import (
    ByteColumn,
    DataError,
    Field,
    Schema,
    SchemaBuilder,
    Struct,
    date_schema,
    decimal_schema,
    kernels,
    machine_code,
    timestamp_schema,
)
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.json import JsonConverter
from standalone.converters.protobuf.converter import ProtobufConverter
from standalone.converters.string import StringConverter
from standalone.data.column import to_arrow
from standalone.data.utf8_column import repair
from standalone.errors import CorruptBatchError
from standalone.kernels import BYTES, LONG, LONGS, Kernel, compiled, ready, written
from standalone.log import fetch
from standalone.log.batch_header import HEADER
from standalone.log.partitioner import partition_for_keys
from standalone.log.record_batch import pack_all, unpack
from standalone.log.record_loops import check_records
from standalone.schema_registry.client import RegistrySchema
from standalone.warm_up import compile_all
from tests.converters import avro_generated, generated
from tests.converters.fake_registry import FakeRegistry, with_registry
from tests.converters.test_json_shapes import batches
from tests.log.test_record_batch import log_of, records_of, rows
from tests.runtime.local import wait_for

ROOT = pathlib.Path(__file__).parents[1]
FILES = [path for folder in ("standalone", "connectors") for path in sorted((ROOT / folder).rglob("*.py"))]
OURS = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES}
few = settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any(isinstance(each, ast.Name) and each.id == "compiled" for each in node.decorator_list)


# --- Both ways ------------------------------------------------------------------------------------------------------


@pytest.fixture
def both_ways(monkeypatch):
    """Within it every call of a kernel is done both ways, each on its own arrays, and compared. The names of those that were called."""
    called = set()

    def run(kernel, *arguments):
        if not kernel.signature:  # a part of a kernel that is done the plain way
            return kernel.function(*arguments)
        called.add(kernel.name)
        copies = {}
        own = [own_of(each, copies) if isinstance(each, np.ndarray) and each.flags.writeable else each for each in arguments]
        expected, found = kernel._machine(*arguments), kernel.plain(*own)
        assert found == expected, kernel.name
        for one, other in zip(arguments, own):
            assert not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes(), kernel.name
        return expected

    compile_all()
    for kernel in kernels.kernels():
        assert not kernel.signature or kernel.load()
    monkeypatch.setattr(Kernel, "__call__", run)
    monkeypatch.setattr(kernels, "_as_python", lambda argument: Strict(argument) if _is_bytes(argument) else argument)
    return called


def _is_bytes(argument):
    return isinstance(argument, np.ndarray) and argument.dtype == np.uint8


class Strict:
    """Bytes of the plain way that refuse an index below 0 or behind the end, and a slice like that: machine code would read other rows' bytes, or
    all of them for one row."""

    def __init__(self, array):
        self._view = memoryview(array)

    def __len__(self):
        return len(self._view)

    def __getitem__(self, at):
        return self._view[self._checked(at)]

    def __setitem__(self, at, value):
        self._view[self._checked(at)] = value

    def _checked(self, at):
        low, high = (at.start or 0, len(self) if at.stop is None else at.stop) if isinstance(at, slice) else (at, at + 1)
        assert 0 <= low <= high <= len(self), f"[{low}:{high}] of {len(self)} bytes"
        return at


def own_of(array, copies):
    """A copy; of two arrays over the same bytes two over the same copy."""
    return copies.setdefault(array.ctypes.data if array.size else array.dtype, array.copy()).view(array.dtype)


@few
@given(rows=rows, limit=st.integers(62, 30_000), junk=st.tuples(st.integers(0, 2000), st.integers(0, 255)))
def codec(rows, limit, junk):
    records = records_of(rows)
    buffer = bytearray(log_of(list(pack_all(records, limit, keep_offsets=len(rows) % 2 == 0))))
    for column in (records.keys, records.values):
        if column is not None:
            partition_for_keys(column, 7)
            column.join(b"\r\n", b"null")
            column.take(np.arange(len(column))[::-1]).compact()
    unpack(buffer, from_offset=len(rows) // 3)
    fetch.next_offset(np.frombuffer(buffer, np.uint8), 0)
    check_records(kernels.readonly(np.frombuffer(buffer, np.uint8)), HEADER.size, len(rows), junk[1] % 2 == 0)
    buffer[junk[0] % len(buffer)] = junk[1]
    fetch.next_offset(np.frombuffer(buffer, np.uint8), 0)
    check_records(kernels.readonly(np.frombuffer(buffer, np.uint8)), HEADER.size, len(rows), junk[1] % 2 == 0)
    try:
        unpack(buffer, check_crc=False)
    except CorruptBatchError:
        pass


@few
@given(data=batches())
def json_without_schemas(data):
    converter, column = JsonConverter.of({"schemas.enable": "false"}), ByteColumn.of(data)
    decoded = converter.decode("t", column)
    if decoded is not None:
        StringConverter.of().encode("t", None, decoded[1], len(data))
        converter.encode("t", None, decoded[1], len(data))
    repair(column)


@few
@given(data=st.data(), props=st.sampled_from([{}, {"schemas.enable": "false"}, {"decimal.format": "numeric"}]))
def json_with_schemas(data, props):
    schema = data.draw(generated.schemas())
    items = data.draw(st.lists(generated.values(schema, data.draw(st.booleans())), min_size=1, max_size=6))
    converter = JsonConverter.of(props)
    converter.encode("t", schema, to_arrow(items, schema), len(items))
    messages = []
    for item in items:
        try:
            messages.append(converter.from_connect("t", schema, item))
        except DataError:
            messages.append(b"{}")
    converter.decode("t", ByteColumn.of(messages))


NUMBERS = st.sampled_from([pa.float64(), pa.float32(), pa.int64()])


@few
@given(bits=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=20), kind=NUMBERS, common=st.booleans())
def numbers(bits, kind, common):
    array = np.array(bits, np.int64)
    values = (array % 1000 / 8).astype(kind.to_pandas_dtype()) if common else array.view(kind.to_pandas_dtype())
    schema = {"double": "FLOAT64", "float": "FLOAT32", "int64": "INT64"}[str(kind)]
    for converter in (StringConverter.of(), JsonConverter.of()):
        converter.encode("t", getattr(Schema, f"OPTIONAL_{schema}"), pa.array(values, kind), len(values))


def decimals():
    items = [None if n % 7 == 0 else Decimal(n * 37).scaleb(-2) for n in range(-300, 300)] + [Decimal("1E+15").scaleb(-12)]
    for scale in (0, 2, 9):
        schema = decimal_schema(scale, optional=True)
        column = to_arrow([None if item is None else item.quantize(Decimal(1).scaleb(-scale)) for item in items], schema)
        JsonConverter.of({"decimal.format": "numeric"}).encode("t", schema, column, len(items))


@few
@given(data=st.data())
def avro(data):
    said, each = data.draw(avro_generated.records())
    registry, out = FakeRegistry(), io.BytesIO()
    registry.register("t-value", RegistrySchema(json.dumps(said)))
    converter = with_registry(AvroConverter, registry, enhanced__avro__schema__support="true")
    fastavro.schemaless_writer(out, said, data.draw(each))
    good = b"\0\0\0\0\1" + out.getvalue()
    spoiled = bytearray(good + data.draw(st.binary(max_size=3)))
    spoiled[data.draw(st.integers(5, len(spoiled))) - 1] ^= 0x80
    decoded = converter.decode("t", ByteColumn.of([good, bytes(spoiled), good[:-1], good]))
    if decoded is not None:
        converter.encode("t", decoded[0], decoded[1], 4)


DAY = SchemaBuilder.struct().name("Day").field("day", date_schema()).field("price", decimal_schema(2)).field("at", timestamp_schema()).build()
COLOURS = {"io.confluent.connect.protobuf.Enum" + each: value for each, value in (("", "Colour"), (".RED", "0"), (".BLUE", "1"))}
COLOURED = SchemaBuilder.struct().name("Coloured").field("colour", Schema("string", parameters=COLOURS)).build()
PROTOBUF = with_registry(ProtobufConverter)
PROTO = (
    SchemaBuilder.struct()
    .name("Proto")
    .field("numbers", SchemaBuilder.array(Schema.INT64).build())
    .field("kinds", Schema("struct", name="Kinds", fields=[Field(kind, at, Schema(kind)) for at, kind in enumerate(("int32", "float32", "float64", "boolean"))]))
    .field("days", SchemaBuilder.array(DAY).build())
    .field("names", SchemaBuilder.map(Schema.STRING, Schema.INT32).name("names").build())
    .field("sizes", SchemaBuilder.map(Schema.INT32, Schema.BYTES).name("sizes").build())
    .field("way", Schema("struct", True, name="io.confluent.connect.protobuf.Union.way", fields=[Field("a", 0, Schema.OPTIONAL_STRING), Field("b", 1, Schema.OPTIONAL_INT64)]))
    .build()
)


@settings(few, max_examples=12)
@given(data=st.data())
def protobuf(data):
    converter = PROTOBUF
    items = data.draw(st.lists(generated.values(PROTO).filter(lambda item: item["way"] is None or any(each is not None for each in item["way"].values)), min_size=2, max_size=3))
    good = [converter.from_connect("t", PROTO, item) for item in items]
    spoiled = bytearray(good[0] + data.draw(st.binary(max_size=3)))
    spoiled[data.draw(st.integers(6, len(spoiled))) - 1] ^= data.draw(st.sampled_from([0x80, 1, 8]))
    converter.decode("t", ByteColumn.of([*good, bytes(spoiled), good[0][:-1]]))
    converter.encode("t", PROTO, to_arrow(items, PROTO), len(items))
    colours = [Struct(COLOURED, {"colour": each}) for each in ("RED", "BLUE", "NONE")]
    converter.encode("t", COLOURED, to_arrow(colours, COLOURED), 3)


def test_machine_code_and_python_mean_the_same(both_ways):
    for work in (codec, json_without_schemas, json_with_schemas, numbers, decimals, avro, protobuf):
        work()
    assert both_ways == {kernel.name for kernel in kernels.kernels() if kernel.signature and kernel.function.__module__ in OURS}


def test_an_array_of_another_form_is_made_fit_without_a_compiler(compilations):
    column = ByteColumn.of([b"ab", b"c", b"de", b"f"])
    compile_all()
    starts, lengths, out = np.repeat(column.starts, 2)[::2], column.lengths.astype(np.int64), np.zeros(6, np.uint8)
    with compilations:
        assert kernels.gather(column.data, starts, lengths, out) == 6
    assert out.tobytes() == b"abcdef" and compilations.names == []


# --- Every kernel is compiled beforehand ----------------------------------------------------------------------------


def test_the_set_up_compiles_every_kernel_that_there_is():
    defined = {f"{module}.{node.name}" for module, path in OURS.items() for node in ast.walk(ast.parse(path.read_text())) if is_kernel(node)}
    known = {kernel.name for kernel in kernels.kernels() if kernel.function.__module__ in OURS}
    assert len(known) > 50 and known == defined
    compile_all()
    assert ready() and all(kernel.is_there() for kernel in kernels.kernels() if kernel.name in known)


def test_what_has_no_machine_code_of_its_own_is_called_by_kernels_only():
    """A kernel without annotations is a part of others: called from anywhere else it would be plain Python forever."""
    for module, path in OURS.items():
        text = path.read_text()
        if "kernels" not in text:
            continue
        names = vars(importlib.import_module(module))
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef) and not is_kernel(function):
                for found in _named(function, names):
                    assert not isinstance(found, Kernel) or found.signature, f"{module}.{function.name} calls {found.name}: annotate its arguments"


def _named(function, names):
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = names.get(node.value.id)
            yield getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None


# --- One kernel, from plain Python to machine code ------------------------------------------------------------------


class Compilations(event.Listener):
    """What numba compiles within it, in whichever thread."""

    def __init__(self):
        self.names = []

    def on_start(self, started):
        self.names.append(started.data["dispatcher"].py_func.__name__)

    def on_end(self, ended):
        pass

    def __enter__(self):
        event.register("numba:compile", self)

    def __exit__(self, *_):
        event.unregister("numba:compile", self)


@pytest.fixture
def compilations():
    return Compilations()


FACTOR = 3


@compiled
def _times(number):
    return number * FACTOR


def total(numbers: LONGS, more: LONG, out: written(BYTES)):
    for row in range(len(numbers)):
        more += _times(numbers[row])
    out[0] = 200
    return more + out[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for code, and nobody who compiles."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(kernels, "LOOK_SECONDS", 0)
    monkeypatch.setattr(kernels, "compile_elsewhere", lambda: None)
    monkeypatch.setattr(kernels, "_absent", {})
    monkeypatch.setattr(kernels, "_all", [])
    return tmp_path / "code"


def called(kernel):
    return kernel(np.arange(4), 1, np.zeros(1, np.uint8)), kernel.is_there()


def kept(folder):
    return [path.name for path in folder.glob("[!.]*")]


def test_a_kernel_is_python_until_its_machine_code_is_there_and_never_waits(folder, compilations):
    first, second = compiled(total), compiled(total)
    with compilations:
        assert called(first) == (219, False) and not ready()
    assert compilations.names == [] and not folder.exists()
    with compilations, machine_code.writing():
        second.compile()  # as another process does it
    assert compilations.names == ["total", "_times"] and len(kept(folder)) == 1
    compilations.names.clear()
    with compilations:
        assert ready() and called(first) == (219, True) and first._run == first._machine
    assert compilations.names == []


def test_code_is_found_by_what_it_means(folder, monkeypatch):
    """What a kernel calls may be in another file: were that not seen, an update would continue with the old code."""
    with machine_code.writing():
        compiled(total).compile()
    assert compiled(total).is_there()
    monkeypatch.setitem(total.__globals__, "FACTOR", 4)
    monkeypatch.setitem(total.__globals__, "_times", compiled(_times.function))  # as a process sees it that begins after the change
    changed = compiled(total)
    assert not changed.is_there() and called(changed) == (225, False)
    before = kept(folder)
    with machine_code.writing():
        changed.compile()
    assert called(changed) == (225, True) and len(kept(folder)) == 1 and kept(folder) != before


def test_damaged_code_is_thrown_away(folder):
    with machine_code.writing():
        compiled(total).compile()
    next(folder.glob("[!.]*")).write_bytes(b"no code")
    assert called(compiled(total)) == (219, False) and kept(folder) == []


def test_code_that_others_may_write_is_not_run(folder):
    with machine_code.writing():
        compiled(total).compile()
    folder.chmod(0o777)
    assert called(compiled(total)) == (219, False)


def test_what_a_set_up_compiled_serves_those_who_cannot_write_there(tmp_path, monkeypatch, folder):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(machine_code, "folders", lambda: [tmp_path / "set-up", tmp_path / "mine"])
    with machine_code.writing():
        compiled(total).compile()
    access = machine_code.os.access
    monkeypatch.setattr(machine_code.os, "access", lambda path, how: pathlib.Path(path).name != "set-up" and access(path, how))
    assert machine_code.writable_folder() == tmp_path / "mine" and called(compiled(total)) == (219, True)


def test_a_kernel_without_a_place_for_its_code_is_python(tmp_path, monkeypatch, folder):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert called(compiled(total)) == (219, False)
    with pytest.raises(OSError, match="set NUMBA_CACHE_DIR to a writable folder"):
        machine_code.writable_folder()


def test_a_folder_that_cannot_be_looked_into_has_no_code(tmp_path, monkeypatch, folder):
    """As a folder of another user: to ask for the file is itself an error."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / ("x" * 300)))
    assert called(compiled(total)) == (219, False)


def test_one_process_is_asked_to_compile_and_its_failure_is_said_once(folder, monkeypatch, caplog):
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    monkeypatch.setattr(kernels, "LOOK_SECONDS", 0)
    monkeypatch.setattr(kernels, "_elsewhere", kernels._Elsewhere())
    monkeypatch.setattr(kernels, "_absent", {})
    monkeypatch.setattr(kernels, "_all", [])
    strange = compiled(total)
    strange.function.__module__, name = "no_such_module", strange.function.__module__
    try:
        assert called(strange) == (219, False)
        child = kernels._elsewhere.process
        assert called(strange) == (219, False) and kernels._elsewhere.process in (child, None)
        wait_for(lambda: called(strange) and caplog.records, what="a warning")
        for _ in range(3):
            assert called(strange) == (219, False)
    finally:
        strange.function.__module__ = name
    assert len(caplog.records) == 1 and "no_such_module" in caplog.text and "plain Python" in caplog.text
    wait_for(lambda: kernels._elsewhere.process is None, what="the process to be followed to its end")
