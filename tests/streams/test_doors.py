"""Statements by `connectctl sql` and over REST; queries are looked at there, too."""

import json
import re
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from standalone.rest.metric_names import each
from standalone.testing import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PREFIX = "connect_standalone_query_"


@pytest.fixture
def url(worker):
    return worker.process.rest.addresses[0]


@pytest.fixture
def ctl(url):
    def run(*arguments, **how):
        from standalone.cli.ctl import main

        return CliRunner().invoke(main, ["--url", url, "sql", *arguments], **how)

    return run


def _ask(url, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=90) as response:
        content = response.read()
        return json.loads(content) if content else None


def test_statements_of_a_file_and_piped_in(ctl, sql, tmp_path):
    file = tmp_path / "s.sql"
    file.write_text(sql.text("CREATE STREAM x_s (k STRING KEY, n INT) WITH (kafka_topic = 'x_s', partitions = 1);\nINSERT INTO x_s VALUES ('a', 1), ('b', 2);"))
    done = ctl("-f", str(file))
    assert done.exit_code == 0 and "2 rows are in" in done.output
    assert re.search(r"a\s+1\s+b\s+2", ctl(input=sql.text("SELECT * FROM x_s;")).output)
    rows = ctl("--json", "-n", "2", sql.text("PRINT 'x_s' FROM BEGINNING;")).output.splitlines()
    assert [json.loads(row)["key"] for row in rows] == ["a", "b"]
    refused = ctl("SELECT a FROM x ORDER BY a;")
    assert refused.exit_code == 1 and "line 1, column 17" in refused.output
    ctl(sql.text("DROP STREAM x_s;"))


def test_queries_over_rest(url, sql):
    made = _ask(url, "POST", "/sql", {"sql": sql.text(
        "CREATE STREAM x_s (k STRING KEY, n INT) WITH (kafka_topic = 'x_s', partitions = 1);"
        "CREATE STREAM x_t WITH (kafka_topic = 'x_t') AS SELECT k, n * 2 AS m FROM x_s EMIT CHANGES; INSERT INTO x_s VALUES ('a', 1);")})  # fmt: skip
    assert [answer["kind"] for answer in made] == ["message"] * 3
    name = made[1]["query"]
    assert sql.topic("x_t", 1) == [(b"a", b'{"m":2}')]
    assert name in _ask(url, "GET", "/queries")
    wait_for(lambda: _ask(url, "GET", f"/queries/{name}")["figures"].get("query", {}).get("rows-written-total"), 60)
    _ask(url, "PUT", f"/queries/{name}/pause")
    wait_for(lambda: _ask(url, "GET", f"/queries/{name}")["tasks"][0]["state"] == "PAUSED", 60)
    assert "PAUSED" in [entry["state"] for entry in _ask(url, "GET", f"/queries/{name}/history")]
    (answer,) = _ask(url, "POST", "/sql", {"sql": sql.text("SELECT k, n FROM x_s EMIT CHANGES LIMIT 1;"), "properties": {"auto.offset.reset": "earliest"}})
    rows = []
    wait_for(lambda: rows.extend(_ask(url, "GET", f"/sql/cursors/{answer['cursor']}?wait.ms=2000")["rows"]) or rows, 60)
    assert rows == [["a", 1]]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        _ask(url, "POST", "/sql", {"sql": 7})


def test_metrics_of_queries_are_those_that_are_documented(sql, url):
    sql("CREATE STREAM x_m (k STRING KEY, n INT) WITH (kafka_topic = 'x_m', value_format = 'JSON', partitions = 1);")
    sql("INSERT INTO x_m VALUES ('a', 1), ('b', 2), ('a', 3);")
    query = sql("CREATE TABLE x_n WITH (kafka_topic = 'x_n') AS SELECT k, count(*) AS c FROM x_m GROUP BY k EMIT CHANGES;")["query"]

    def look():
        found = {}
        for family in text_string_to_metric_families(urllib.request.urlopen(f"{url}/metrics").read().decode()):
            found.update({sample.name: (sample.value, sample.labels) for sample in family.samples if sample.labels.get("query") == query})
        return {name.removeprefix(_PREFIX): each for name, each in found.items()}

    wait_for(lambda: look().get("rows_read_total", (0,))[0] == 3)
    found = look()
    assert {(_PREFIX + name, frozenset(labels)) for name, (_, labels) in found.items()} == {
        (name, frozenset(labels)) for _, name, labels, _ in each() if name.startswith(_PREFIX)
    }
    assert {name: found[name][0] for name in ("rows_written_total", "state_rows", "lag", "restarts_total")} == {
        "rows_written_total": 2, "state_rows": 2, "lag": 0, "restarts_total": 0,
    }  # fmt: skip
    assert found["status"][1]["status"] == "running" and found["batches_total"][0] >= 1 and found["last_batch_ms"][0] > 0
