"""Functions of Python in statements of SQL: of a file and of a module, called by rows and by columns."""

import pytest

from standalone.errors import ConfigError
from standalone.streams import udf
from tests.streams.on_worker import Sql

FILE = """
import pyarrow.compute as pc
from standalone.streams import function

STEP = 100


@function("double")
def with_tax(total: float, percent: float):
    return None if total is None else total * (1 + percent / STEP)


@function("string", name="SHOUTED", arrow=True)
def shout(text):
    return pc.utf8_upper(text)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "shop.py").write_text(FILE)
    return str(tmp_path / "shop.py")


@pytest.mark.spark
@pytest.mark.slow
def test_statements_call_functions_of_a_file(start_worker, tmp_path, file):
    with start_worker(tmp_path, sql__functions=file) as worker:
        sql = Sql(worker)
        sql("CREATE STREAM x_s (k STRING KEY, n DOUBLE) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1);")
        sql("INSERT INTO x_s VALUES ('a', 10.0), ('b', NULL);")
        assert sql.rows("SELECT shouted(k) AS k, with_tax(n, 25) AS n FROM x_s;") == [("A", 12.5), ("B", None)]
        sql("CREATE STREAM x_t WITH (kafka_topic = 'x_t') AS SELECT k, with_tax(n, 50) AS m FROM x_s WHERE SHOUTED(k) = 'A' EMIT CHANGES;")
        assert sql.topic("x_t", 1) == [(b"a", b'{"m":15.0}')]
        shown = dict(sql.rows("SHOW FUNCTIONS;"))
        assert shown["with_tax"] == f"with_tax(total, percent) → DOUBLE, of {file}"
        sql.clear()


def test_modules_have_functions_too(tmp_path, monkeypatch):
    (tmp_path / "functions_of_a_module.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    assert [each.text for each in udf.load(["functions_of_a_module"])] == ["SHOUTED(text) → STRING", "with_tax(total, percent) → DOUBLE"]


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("x = 1", "has no function", id="none is marked"),
        pytest.param("import not_there", "cannot be loaded: ModuleNotFoundError", id="it cannot be loaded"),
        pytest.param(FILE.replace("SHOUTED", "Len"), "function Len is already a SQL function", id="a name that is taken"),
        pytest.param(FILE.replace("SHOUTED", "With_Tax"), "has the function With_Tax twice|has the function with_tax twice", id="twice"),
    ],
)
def test_what_is_wrong_with_a_place_is_told(tmp_path, text, said):
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(ConfigError, match=said):
        udf.load([str(tmp_path / "wrong.py")])
