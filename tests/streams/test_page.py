"""The page of streams in a headless Chromium: statements typed, rows that come, and a query paused, resumed, restarted and terminated."""

import re
import shutil

import pytest

from tests.suite.patience import PATIENCE_SECONDS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium")
expect = playwright.expect

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH (apt-get install chromium)"),
]


@pytest.fixture
def page(worker):
    expect.set_options(timeout=1000 * PATIENCE_SECONDS)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(locale="en-GB")
        troubles = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("http://{}:{}/ui/#/streams".format(*worker.process.rest.address))
        yield page
        browser.close()
        assert troubles == []


def test_statements_are_typed_and_queries_are_steered(page, worker, sql):
    def run(text):
        page.get_by_label(re.compile("Statements of SQL")).fill(sql.text(text))
        page.get_by_role("button", name="Run").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Streams")
    run("CREATE STREAM x_s (k STRING KEY, n INT) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1)")
    expect(page.get_by_text(re.compile(sql.text("Stream x_s is created")))).to_be_visible()
    run("INSERT INTO x_s VALUES ('<b>', 1); SELECT k, n FROM x_s;")
    expect(page.get_by_role("cell", name="<b>")).to_be_visible()
    run("SELECT nothing FROM x_s;")
    expect(page.get_by_role("alert").filter(has_text="nothing")).to_be_visible()

    run("CREATE STREAM x_t WITH (kafka_topic = 'x_t') AS SELECT k, n + 1 AS m FROM x_s EMIT CHANGES;")
    row = page.get_by_role("row", name=re.compile(sql.text("CSAS_x_t")))
    expect(row).to_contain_text("Running")
    expect(row.locator("td").nth(3)).to_have_text("1")  # written
    row.get_by_role("button", name=re.compile("^Pause")).click()
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name=re.compile("^Resume")).click()
    expect(row).to_contain_text("Running")
    row.get_by_role("button", name=re.compile("^Restart")).click()
    expect(row.locator("td").nth(6)).to_have_text("1")  # restarts

    page.get_by_label("Streams are read from").select_option("earliest")
    run("SELECT k, n * 100 AS h FROM x_s EMIT CHANGES;")
    expect(page.get_by_role("cell", name="100", exact=True)).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. 1 rows came.")).to_be_visible()

    row.get_by_role("button", name=re.compile("^Terminate")).click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    expect(row).to_have_count(0)
    assert sql.text("CSAS_x_t") not in str(sql.engine.queries.names())
