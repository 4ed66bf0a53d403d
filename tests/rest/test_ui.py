"""The web page in a headless Chromium, against a worker on the embedded log: what a person sees, presses and types."""

import json
import os
import re
import shutil
import time

import pytest
from confluent_kafka import Producer

from standalone import properties
from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
from standalone.schema_registry.values import Writer
from tests.rest.conftest import SINK, SOURCE, Api
from tests.rest.ui_plugins import MARKUP
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
GONE = "status of 404"  # a connector may be deleted while its page asks for it; Chromium writes that into its console
TICKER, FAILING = "tests.rest.ui_plugins:TickerSource", "tests.rest.ui_plugins:FailingSource"
expect = playwright.expect
expect.set_options(timeout=1000 * PATIENCE_SECONDS)

pytestmark = pytest.mark.skipif(not os.path.exists(CHROMIUM), reason=f"there is no Chromium at {CHROMIUM} (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def ui_worker(tmp_path_factory):
    """Of this module's own: topics of other tests do not be in its lists."""
    with LocalWorker(tmp_path_factory.mktemp("ui"), embedded__registry__enable="true") as worker:
        yield worker


@pytest.fixture
def api(ui_worker):
    api = Api(ui_worker)
    yield api
    api.clear()


@pytest.fixture(scope="module")
def kept_page(browser):
    """One page for all tests, which leave it blank: a new context with its processes takes a second of CPU."""
    return browser.new_context(locale="en-GB").new_page()


@pytest.fixture
def open_page(browser, kept_page, api):
    """open_page("#/…") gives the page there. No script may fail, and nothing offend the policy, meanwhile."""
    pages, troubles = [], []
    listens = {
        "console": lambda said: troubles.append(said.text) if said.type in ("error", "warning") and GONE not in said.text else None,
        "pageerror": lambda error: troubles.append(str(error)),
    }

    def opened(address="", **options):
        page = browser.new_context(locale="en-GB", **options).new_page() if pages or options else kept_page
        pages.append(page)
        for event, call in listens.items():
            page.on(event, call)
        page.goto(f"{str(api.http.base_url).rstrip('/')}/ui/{address}")
        page.troubles = troubles
        return page

    yield opened
    hacked = [page.evaluate("window.hacked") for page in pages]
    for page in pages:
        for event, call in listens.items():
            page.remove_listener(event, call)
        if page is not kept_page:
            page.context.close()
            continue
        page.unroute_all()
        page.emulate_media(color_scheme="null")
        page.mouse.move(0, 0)
        page.goto("about:blank")
    assert not any(hacked), "a script out of data has run"
    assert troubles == []


def ticker(**more):
    return {"connector.class": TICKER, "topic": "ticks", **more}


def field(page, key):
    """The input of a key in the form."""
    return page.locator(".field", has=page.locator("label, code").get_by_text(key, exact=True)).locator("input:visible, select:visible").first


def error_of(page, key):
    """What an input's description says is wrong with it: as a screen reader would find it."""
    described = (field(page, key).get_attribute("aria-describedby") or "").split()
    return " ".join(page.locator(f"#{each}.error").inner_text() for each in described if page.locator(f"#{each}.error").count())


def state(page):
    return page.locator("main .head .badge")


# ---- a connector's life


def test_a_connector_is_created_paused_resumed_and_deleted(open_page, api):
    page = open_page()
    page.get_by_role("link", name="Create the first one").click()
    page.get_by_label("Kind of connector").select_option(SOURCE)
    field(page, "name").fill("lines")
    field(page, "file").fill(__file__)
    field(page, "topic").fill("lines")
    page.get_by_role("button", name="Create").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("lines")
    expect(state(page)).to_have_text("Running")
    expect(page.get_by_text(re.compile(r"[1-9]\d* records since its tasks started"))).to_be_visible()
    assert api.state("lines") == "RUNNING"

    page.get_by_role("button", name="Pause").click()
    expect(state(page)).to_have_text("Paused")
    assert api.state("lines") == "PAUSED"
    page.get_by_role("button", name="Resume").click()
    expect(state(page)).to_have_text("Running")
    page.get_by_role("button", name="Restart", exact=True).click()
    expect(page.locator(".task .badge")).to_have_text("Running")
    page.get_by_role("button", name="Stop").click()
    expect(state(page)).to_have_text("Stopped")
    expect(page.get_by_text("It has no tasks now.")).to_be_visible()
    assert api.state("lines") == "STOPPED"

    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("lines")
    dialog.get_by_role("button", name="Cancel").click()
    assert api.json("GET", "/connectors") == ["lines"]
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connectors")
    assert api.json("GET", "/connectors") == []


def test_a_failed_task_shows_its_trace_and_is_restarted(open_page, api):
    api.create("failing", {"connector.class": FAILING})
    page = open_page()
    row = page.get_by_role("row", name="failing")
    expect(row).to_contain_text("Task failed")
    expect(row).to_contain_text("1 failed")
    row.get_by_role("link").click()
    expect(state(page)).to_have_text("Task failed")
    page.get_by_text("Trace of task 0").click()
    expect(page.get_by_label("Trace of task 0")).to_contain_text("at poll(")
    with page.expect_response(lambda answer: answer.url.endswith("/tasks/0/restart")) as answer:
        page.get_by_role("button", name="Restart task 0").click()
    assert answer.value.status == 204
    expect(page.locator(".task .badge")).to_have_text("Failed")  # it fails again
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No connector yet")).to_be_visible()


def test_throughput_is_drawn_while_records_flow(open_page, api):
    api.create("ticks", ticker())
    page = open_page("#/connectors/ticks")
    expect(page.get_by_role("img", name=re.compile(r"Records per second: now [1-9]"))).to_be_visible()
    wait_for(lambda: "L" in page.locator(".chart .line").first.get_attribute("d"), what="a line")
    page.goto(page.url.split("#")[0])
    expect(page.get_by_role("row", name="ticks").locator(".number")).to_have_text(re.compile("[1-9]"))


def test_what_others_change_is_seen_and_told(open_page, api):
    api.create("watched", ticker())
    page = open_page()
    expect(page.get_by_role("row", name="watched")).to_contain_text("Running")
    api("PUT", "/connectors/watched/pause")
    expect(page.get_by_role("row", name="watched")).to_contain_text("Paused")
    expect(page.locator("#announcer")).to_contain_text("watched: Paused")
    api("DELETE", "/connectors/watched")
    expect(page.locator("#announcer")).to_contain_text("watched is gone")


def test_a_refused_action_is_told(open_page, api):
    api.create("gone", ticker())
    page = open_page("#/connectors/gone")
    expect(state(page)).to_have_text("Running")
    page.route("**/connectors/gone/pause", lambda route: route.fulfill(status=409, json={"error_code": 409, "message": "It hangs."}))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("alert")).to_contain_text("It hangs.")
    assert "409" in page.troubles.pop()  # Chromium writes each refusal into its console


# ---- the form


def test_errors_stand_at_their_fields(open_page):
    page = open_page("#/new")
    page.get_by_label("Kind of connector").select_option(SOURCE)
    expect(field(page, "topic")).to_be_visible()
    assert field(page, "topic").get_attribute("aria-invalid") is None  # who has typed nothing has done nothing wrong
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="It cannot be created like this")).to_be_visible()
    assert field(page, "topic").get_attribute("aria-invalid") == "true"
    assert "missing" in error_of(page, "topic")
    page.get_by_role("button", name=re.compile("^topic is missing")).click()
    expect(field(page, "topic")).to_be_focused()
    field(page, "topic").fill("t")
    expect(field(page, "topic")).not_to_have_attribute("aria-invalid", "true")
    field(page, "tasks.max").fill("many")
    expect(field(page, "tasks.max")).to_have_attribute("aria-invalid", "true")
    assert "many" in error_of(page, "tasks.max")


def test_an_error_in_what_is_folded_opens_it(open_page, api):
    api.create("ticks", ticker())
    page = open_page("#/connectors/ticks/edit")
    expect(field(page, "topic")).to_have_value("ticks")
    page.get_by_role("button", name="JSON").click()
    page.get_by_role("textbox", name="Configuration as JSON").fill('{"connector.class": "%s", "name": "ticks", "topic": "t", "errors.retry.timeout": "soon"}' % TICKER)
    page.get_by_role("button", name="Form").click()
    page.get_by_role("button", name="Save").click()
    expect(field(page, "errors.retry.timeout")).to_be_visible()
    assert "soon" in error_of(page, "errors.retry.timeout")
    assert api.json("GET", "/connectors/ticks/config")["topic"] == "ticks"


def test_recommended_values_are_chosen_from_a_list(open_page, api):
    api.create("ticks", ticker())
    page = open_page("#/connectors/ticks/edit")
    field(page, "mode").select_option("odd")
    field(page, "loud").select_option("true")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    config = api.json("GET", "/connectors/ticks/config")
    assert (config["mode"], config["loud"]) == ("odd", "true")
    page.goto(f"{page.url}/edit")
    field(page, "mode").select_option("other value…")
    field(page, "mode").fill("strange")
    expect(field(page, "mode")).to_have_attribute("aria-invalid", "true")
    assert "strange" in error_of(page, "mode")


def test_a_transform_gets_fields_of_its_own(open_page, api):
    api.create("ticks", ticker())
    page = open_page("#/connectors/ticks/edit")
    field(page, "transforms").fill("hoist")
    field(page, "transforms.hoist.type").select_option("org.apache.kafka.connect.transforms.HoistField$Value")
    field(page, "transforms.hoist.field").fill("line")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    config = api.json("GET", "/connectors/ticks/config")
    assert config["transforms.hoist.field"] == "line" and config["transforms.hoist.type"].endswith("HoistField$Value")


def test_a_password_is_never_shown_and_stays_when_it_is_left_alone(open_page, api):
    api.create("ticks", ticker(secret="hunter2"))
    stored = lambda: api.worker.herder._connectors["ticks"].config["secret"]  # noqa: E731
    page = open_page("#/connectors/ticks/edit")
    secret = field(page, "secret")
    expect(secret).to_have_attribute("type", "password")
    expect(secret).to_have_value("")
    field(page, "pause.ms").fill("30")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    assert "hunter2" not in page.content() and stored() == "hunter2"

    page.goto(f"{page.url}/edit")
    field(page, "secret").fill("better")
    page.get_by_role("button", name="JSON").click()
    assert "better" not in page.get_by_role("textbox", name="Configuration as JSON").input_value()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    assert stored() == "better"


def test_other_keys_are_added_and_removed(open_page, api):
    api.create("ticks", ticker(**{"of.my.own": "1"}))
    page = open_page("#/connectors/ticks/edit")
    page.get_by_role("button", name="Remove of.my.own").click()
    page.get_by_label("Key to add").fill("another.one")
    page.keyboard.press("Enter")
    expect(field(page, "another.one")).to_be_focused()
    page.keyboard.type("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    config = api.json("GET", "/connectors/ticks/config")
    assert config.get("another.one") == "2" and "of.my.own" not in config


def test_json_takes_what_can_be_posted(open_page, api):
    page = open_page("#/new")
    page.get_by_label("Kind of connector").select_option(SOURCE)
    page.get_by_role("button", name="JSON").click()
    text = page.get_by_role("textbox", name="Configuration as JSON")
    text.fill("{")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert").filter(has_text="This is not JSON")).to_be_visible()
    text.fill('{"name": "posted", "config": {"connector.class": "%s", "topic": "ticks", "burst": 3}}' % TICKER)
    page.get_by_label("Begin as").select_option("PAUSED")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("posted")
    assert api.state("posted") == "PAUSED" and api.json("GET", "/connectors/posted/config")["burst"] == "3"


# ---- schemas


def registered(worker, subject, *fields):
    """One more version of a subject: a record of numbers with these fields."""
    client = SchemaRegistryClient.from_config({"schema.registry.url": worker.process.worker.schemas.embedded_url()})
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": each, "type": "int", "default": 0} for each in fields]})
    client.register(subject, RegistrySchema(text))
    return client


def test_subjects_versions_and_what_differs_are_shown(open_page, ui_worker):
    subject = "orders/<b>value</b>"
    for fields in ("a", "ab"):
        registered(ui_worker, subject, *fields)
    page = open_page("#/schemas")
    page.get_by_role("link", name=subject).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(subject)
    expect(page.get_by_text("2 versions; a new one has to be compatible: BACKWARD")).to_be_visible()
    expect(page.locator(".diff .new").filter(has_text='"name": "b"')).to_be_visible()
    expect(page.get_by_role("heading", name="Version 1,")).to_be_visible()
    page.get_by_label("Older version").select_option("2")
    expect(page.locator(".diff")).to_have_text("No difference")


def test_records_of_a_schema_are_shown_as_what_they_say(open_page, ui_worker):
    client = registered(ui_worker, "said-value", "a")
    ui_worker.send("said", [Writer(client, "said-value", client.latest("said-value")[2]).data({"a": 7})])
    page = open_page("#/topics/said")
    expect(page.locator(".records .preview").filter(has_text='{"a": 7}')).to_contain_text("schema")


PROTO = 'syntax = "proto3";\nmessage Order { int32 a = 1; string note = 2; }'
DOCUMENT = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
KINDS = [("AVRO", None, '{"a": 7}', '{"a": "x"}', "must be an int"), ("PROTOBUF", PROTO, '{"a": 7}', '{"b": 1}', "does not fit the message Order"),
         ("JSON", DOCUMENT, '{"a": 7}', "{}", "'a' is a required property")]  # fmt: skip


@pytest.mark.parametrize("kind, text, good, bad, said", KINDS, ids=[each[0] for each in KINDS])
def test_a_record_of_a_schema_is_written(open_page, ui_worker, kind, text, good, bad, said):
    topic = f"typed-{kind.lower()}"
    client = registered(ui_worker, f"{topic}-value", "a") if text is None else SchemaRegistryClient.from_config({"schema.registry.url": ui_worker.process.worker.schemas.embedded_url()})
    if text is not None:
        client.register(f"{topic}-value", RegistrySchema(text, kind))
    ui_worker.send(topic, [b"first"])
    page = open_page(f"#/topics/{topic}")
    page.get_by_text("Write a record").click()
    expect(page.get_by_label("Value is")).to_have_value(f"schema {topic}-value")
    expect(page.get_by_label("Schema of the value")).to_contain_text("a")
    page.get_by_label("Value to write").fill(bad)
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    page.get_by_label("Value to write").fill(good)
    page.get_by_label("Key is").select_option("text")
    page.get_by_label("Key to write").fill("k")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("Written to partition 0 at offset 1")).to_be_visible()
    expect(page.locator(".records .preview").filter(has_text=good)).to_contain_text("schema")
    page.troubles[:] = [each for each in page.troubles if "status of 400" not in each]  # which Chromium writes of the refused one


@pytest.mark.parametrize(
    "body, said",
    [
        ({"value": {"text": "7", "subject": "no-such", "version": 1}}, "no-such"),
        ({"value": {"text": "{", "subject": "s", "version": 1}}, "is not JSON"),
        ({"value": {"text": "7", "subject": "s"}}, "The 'version' of the value's schema must be a number"),
        ({"value": 7}, "'value' must be null, or have a 'text'"),
        ({"values": None}, "The body must be an object"),
        ([], "The body must be an object"),
    ],
)
def test_a_record_that_cannot_be_written_says_why(api, ui_worker, body, said):
    ui_worker.send("refused", [b"first"])
    answer = api.http.post("/ui/api/topics/refused/send", json=body)
    assert answer.status_code in (400, 404) and said in answer.json()["message"]
    assert api.http.post("/ui/api/topics/no-such-topic/send", json={"value": None}).status_code == 404


# ---- topics and offsets


def test_records_are_browsed(open_page, api):
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    producer.produce("browsed", key=b"k1", value=b'{"a":12345678901234567890,"b":[]}', headers=[("h", b"header value")])
    producer.produce("browsed", key=None, value=b"\xff\xfe")
    assert producer.flush(10) == 0
    page = open_page("#/topics")
    page.get_by_role("link", name="browsed").click()
    expect(page.get_by_role("row", name="0").filter(has_text="k1")).to_be_visible()
    expect(page.get_by_text("ff fe")).to_be_visible()
    button = page.get_by_role("button", name="Offset 0: details")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_label("Value", exact=True)).to_have_text('{\n  "a": 12345678901234567890,\n  "b": []\n}')
    expect(page.get_by_label("Header h")).to_have_text("header value")
    page.get_by_label("Only with this text").fill("header value")
    expect(page.get_by_text(re.compile("^1 record of 2"))).to_be_visible()
    page.get_by_label("Only with this text").fill("")
    page.get_by_label("Keep looking").check()
    producer.produce("browsed", value=b"the third")
    producer.flush(10)
    expect(page.get_by_text("the third")).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")


def test_the_worker_searches_a_topic_beyond_what_is_shown(open_page, api):
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    producer.produce("searched", value=b"the Needle", headers=[("h", b"x")])
    for number in range(60):
        producer.produce("searched", value=b"hay %d" % number)
    assert producer.flush(10) == 0
    page = open_page("#/topics/searched")
    expect(page.get_by_text(re.compile("^50 records of 61"))).to_be_visible()
    page.get_by_label("Only with this text").fill("needle")
    expect(page.get_by_text(re.compile("^0 records of 61"))).to_be_visible()
    page.get_by_role("button", name="Search the topic").click()
    expect(page.get_by_text(re.compile("^1 record of 61 searched of 61"))).to_be_visible()
    expect(page.get_by_text("the Needle")).to_be_visible()
    page.get_by_label("Only with this text").fill("")
    expect(page.get_by_text(re.compile("^50 records of 61"))).to_be_visible()


def test_a_search_reads_on_from_an_offset_or_a_time_and_says_whether_it_was_complete(api, ui_worker):
    ui_worker.send("sought", [b"one a", b"two", b"three a", b"four A"])
    answer = api.json("GET", "/ui/api/topics/sought/records?contains=a&offset=1")
    assert [record["offset"] for record in answer["records"]] == [2, 3]
    assert answer["searched"] == {"records": 3, "complete": True}
    answer = api.json("GET", "/ui/api/topics/sought/records?contains=a&limit=1")
    assert [record["offset"] for record in answer["records"]] == [0] and not answer["searched"]["complete"]
    assert api.json("GET", f"/ui/api/topics/sought/records?contains=a&timestamp={1 << 50}")["records"] == []


def test_errors_are_drawn_and_counted(open_page, api, ui_worker, tmp_path):
    ui_worker.send("partly-bad", [b"no JSON", b'{"schema":{"type":"string","optional":false},"payload":"good"}', b"nor this"])
    api.create("tolerant", {"connector.class": SINK, "topics": "partly-bad", "file": str(tmp_path / "out"), "errors.tolerance": "all", "value.converter": "JsonConverter"})
    page = open_page("#/connectors/tolerant")
    errors = page.get_by_role("region", name="Errors")
    expect(errors.get_by_text("2 records failed since its tasks started")).to_be_visible()
    expect(errors.get_by_role("img", name=re.compile("Errors per second: now"))).to_be_visible()


def test_offsets_are_set_and_reset_once_the_connector_is_stopped(open_page, api, tmp_path):
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    for _ in range(7):
        producer.produce("drained", value=b"v")
    assert producer.flush(10) == 0
    api.create("drain", {"connector.class": SINK, "topics": "drained", "file": str(tmp_path / "out")})
    page = open_page("#/connectors/drain")
    offsets = page.get_by_role("region", name="Offsets")
    expect(offsets.get_by_role("row", name="drained")).to_contain_text(re.compile(r"7\s*7\s*0"))

    offsets.get_by_role("button", name="Set offsets…", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    dialog = page.get_by_role("dialog", name="Set offsets")
    dialog.get_by_label("drained, partition 0").fill("five")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("five")
    dialog.get_by_label("drained, partition 0").fill("5")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(offsets.get_by_role("row", name="drained")).to_contain_text(re.compile(r"5\s*7\s*2"))
    expect(offsets).to_contain_text("2 records behind")
    assert api.state("drain") == "STOPPED"

    offsets.get_by_role("button", name="Reset offsets…").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    expect(page.locator("#notes")).to_contain_text("have been reset")
    assert api.json("GET", "/connectors/drain/offsets") == {"offsets": []}


def test_a_topic_is_created_altered_and_sought_in(open_page, api):
    page = open_page("#/topics")
    page.get_by_text("New topic").click()
    page.get_by_label("Name", exact=True).fill("made-here")
    page.get_by_label("Settings, as key=value").fill("retention.ms=60000, cleanup.policy=compact,delete")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_role("link", name="made-here").click()
    page.get_by_text("Settings of the topic").click()
    expect(page.locator(".config > div").filter(has_text="cleanup.policy")).to_contain_text("compact,delete (set on the topic)")
    page.get_by_label("Setting", exact=True).fill("retention.ms")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".config > div").filter(has_text="retention.ms").first).not_to_contain_text("60000")
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    began = int(time.time()) - 3600  # what is older than retention.ms would be released
    for number in range(5):
        producer.produce("made-here", key=b"k", value=b"value %d" % number, timestamp=1000 * (began + number))
    assert producer.flush(10) == 0
    page.get_by_label("From offset or time").fill("3")
    page.get_by_label("From offset or time").press("Enter")
    expect(page.locator(".records tbody")).to_have_count(2)
    expect(page.locator(".records tbody").first).to_contain_text("value 3")
    page.get_by_label("From offset or time").fill(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began + 4)))
    page.get_by_label("From offset or time").press("Enter")
    expect(page.locator(".records tbody")).to_have_count(1)


def test_dead_letters_are_browsed_and_replayed(open_page, api, ui_worker, tmp_path):
    context = {"topic": "came-from", "partition": "0", "offset": "7", "exception.class.name": "a.b.DataException", "exception.message": MARKUP}
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    producer.produce("dead", key=b"k", value=b"bad one", headers=[(f"__connect.errors.{name}", value.encode()) for name, value in context.items()])
    assert producer.flush(10) == 0
    ui_worker.send("came-from", [b"first"])
    dead = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    api.create("with-letters", {"connector.class": SINK, "topics": "came-from", "file": str(tmp_path / "out"), **dead}, initial_state="STOPPED")
    page = open_page("#/dead-letters")
    page.get_by_role("link", name="dead", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="came-from-0-7")).to_contain_text(f"DataException: {MARKUP}")
    page.get_by_role("button", name="Offset 0: details").click()
    expect(page.get_by_label("Message", exact=True)).to_have_text(MARKUP)
    page.get_by_role("button", name="Replay offset 0").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 record to came-from")
    page.get_by_role("dialog").get_by_role("button", name="Replay").click()
    expect(page.locator("#notes")).to_contain_text("Replayed: 1 record to came-from")
    expect(page.get_by_text("Replayed", exact=True)).to_be_visible()
    page.goto(f"{page.url.split('#')[0]}#/topics/came-from")
    expect(page.locator(".records .preview").filter(has_text="bad one")).to_be_visible()


def test_groups_plugins_and_log_levels_have_pages(open_page, api, ui_worker, tmp_path):
    ui_worker.send("grouped", [b"v"])
    api.create("grouping", {"connector.class": SINK, "topics": "grouped", "file": str(tmp_path / "out")})
    wait_for(lambda: api.json("GET", "/connectors/grouping/offsets")["offsets"], what="a commit")
    page = open_page("#/groups")
    expect(page.get_by_role("row", name="connect-grouping")).to_contain_text(re.compile(r"grouped\s*0\s*\w+\s*1\s*1\s*0"))
    page.get_by_role("link", name="Plugins").click()
    page.get_by_label("Filter by name").fill("hoistfield$value")
    page.get_by_text("HoistField$Value", exact=False).first.click()
    expect(page.get_by_role("rowheader", name="field", exact=True)).to_be_visible()
    page.get_by_role("link", name="Log levels").click()
    page.get_by_label("Logger").fill("tests.nobody")
    page.get_by_label("Level", exact=True).select_option("DEBUG")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("row", name="tests.nobody")).to_contain_text("DEBUG")
    assert api.json("GET", "/admin/loggers/tests.nobody")["level"] == "DEBUG"


def test_a_connector_shows_its_history_its_tasks_keys_and_copies_itself(open_page, api):
    api.create("ticks", ticker(text="it's\nso", secret="hunter2"))
    page = open_page("#/connectors/ticks")
    expect(page.get_by_role("region", name="History")).to_contain_text("task 0 running")
    page.get_by_text("Configuration of task 0").click()
    expect(page.locator(".keys > div").filter(has_text="topic")).to_contain_text("ticks")
    page.get_by_role("button", name="Copy as…").click()
    text = page.get_by_role("dialog").get_by_label("Text")
    expect(text).to_have_value(re.compile(r"^curl -X PUT .*/connectors/ticks/config'"))
    assert "it'\\''s" in text.input_value()
    page.get_by_role("dialog").get_by_label("As").select_option("properties")
    loaded = properties.parse(text.input_value())
    assert (loaded["name"], loaded["text"]) == ("ticks", "it's\nso") and "hunter2" not in text.input_value()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Edit").click()
    field(page, "topic").fill("tocks")
    changes = page.get_by_role("region", name="What will change")
    expect(changes).to_contain_text("topic: ticks → tocks")
    expect(changes.get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ticks")
    config = api.json("GET", "/connectors/ticks/config")
    assert (config["topic"], config["text"]) == ("tocks", "it's\nso"), "a field that nobody edits keeps its newline"


def test_what_failed_is_restarted_by_itself(open_page, api):
    api.create("failing", {"connector.class": FAILING})
    page = open_page("#/connectors/failing")
    with page.expect_response(lambda answer: "onlyFailed=true" in answer.url) as answer:
        page.get_by_role("button", name="Restart failed").click()
    assert answer.value.status == 202


# ---- hostile names and values


HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload='window.hacked=1'>",
    "javascript:window.hacked=1",
    "'-window.hacked=1-'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "a b&c=d?e#f;é😀",
    "__proto__",
    "constructor",
]


def test_a_hostile_name_is_text_and_can_be_worked_with(open_page, api):
    page = open_page()
    for name in HOSTILE:
        work_with(page, api, name)


def work_with(page, api, name):
    """From the list of connectors, which is empty, back to it."""
    api.create(name, ticker(**{MARKUP: MARKUP, "text": "x"}))
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(state(page)).to_have_text("Running")
    expect(page.locator(".config dd").filter(has_text=MARKUP)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(state(page)).to_have_text("Paused")
    page.get_by_role("link", name="Edit").click()
    expect(field(page, "name")).to_have_value(name)
    expect(field(page, MARKUP)).to_have_value(MARKUP)
    page.go_back()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(name)
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#notes")).to_contain_text(name)
    assert api.json("GET", "/connectors") == []


def test_a_name_that_no_path_can_hold_is_shown_and_told(open_page, api):
    api.create("../a%2f", ticker())
    page = open_page()
    page.get_by_role("link", name="../a%2f").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("../a%2f")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("alert").first).to_contain_text("cannot address")
    api.worker.herder.delete("../a%2f")


def test_hostile_records_traces_and_errors_are_text(open_page, api):
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    producer.produce("hostile", key=MARKUP.encode(), value=MARKUP.encode(), headers=[(MARKUP, MARKUP.encode())])
    assert producer.flush(10) == 0
    page = open_page("#/topics/hostile")
    page.get_by_role("button", name="Offset 0: details").click()
    assert [each.inner_text() for each in page.locator(".more pre").all()] == [MARKUP] * 3
    assert page.locator(".more h3").last.inner_text().startswith(f"Header {MARKUP}")

    api.create("failing", {"connector.class": FAILING})
    page = open_page("#/connectors/failing")
    expect(page.locator(".first")).to_have_text(f"RuntimeError: It cannot continue: {MARKUP}")
    page.get_by_text("Trace of task 0").click()
    expect(page.get_by_label("Trace of task 0")).to_contain_text(MARKUP)

    api.create("ticks", ticker(markup=MARKUP))
    page = open_page("#/connectors/ticks/edit")
    expect(page.get_by_text(f"Documentation with {MARKUP} in it.")).to_be_visible()
    field(page, "tasks.max").fill(MARKUP)
    expect(field(page, "tasks.max")).to_have_attribute("aria-invalid", "true")
    assert MARKUP in error_of(page, "tasks.max")


def test_the_policy_lets_no_text_become_markup_or_code(open_page):
    page = open_page()
    attempts = {
        "markup": "document.body.innerHTML = '<b>x</b>'",
        "an inline script": "document.head.append(Object.assign(document.createElement('script'), {text: 'window.hacked = 1'}))",
        "a handler as text": "document.body.setAttribute('onclick', 'window.hacked = 1')",
        "a timer with text": "setTimeout('window.hacked = 1')",
    }
    for what, attempt in attempts.items():
        outcome = page.evaluate(f"() => {{ try {{ {attempt} }} catch (error) {{ return error.name }} }}")
        assert outcome == "TypeError", what
    page.evaluate("fetch('https://elsewhere.invalid/').catch(() => {})")
    wait_for(lambda: page.wait_for_timeout(50) or any("elsewhere.invalid" in trouble for trouble in page.troubles), what="the refusal")
    assert page.evaluate("window.hacked") is None
    page.troubles.clear()


# ---- for everybody


def test_it_can_be_walked_by_keyboard_alone(open_page, api):
    api.create("ticks", ticker())
    page = open_page()
    expect(page.get_by_role("row", name="ticks")).to_be_visible()
    focused = lambda: page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()")  # noqa: E731

    def tab_to(name):
        seen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.append(focused())
            if seen[-1] == name:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus on {name} cannot be seen"
                return
        pytest.fail(f"Tab does not lead to {name}: {seen}")

    page.keyboard.press("Tab")
    assert focused() == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to("Pause ticks")
    page.keyboard.press("Space")
    expect(page.get_by_role("row", name="ticks")).to_contain_text("Paused")
    assert focused() == "Resume ticks"  # the focus stays where it was
    page.keyboard.press("Shift+Tab")
    assert focused() == "ticks"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    tab_to("Delete")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert focused() == "Delete"  # where it was before
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No connector yet")).to_be_visible()


COLOURS = {**axe.DEFAULT_OPTIONS, "runOnly": ["color-contrast", "link-in-text-block"]}  # all that look at colours, of the rules that a run has


def test_no_barrier_is_found_on_any_page(open_page, api, ui_worker, tmp_path):
    """Light and dark differ in their colours alone."""
    api.create("ticks", ticker(secret="x", transforms="h", **{"transforms.h.type": "HoistField$Value", "transforms.h.field": "f"}))
    api.create("failing", {"connector.class": FAILING})
    api.create("sink", {"connector.class": SINK, "topics": "ticks", "file": str(tmp_path / "out")})
    api("PUT", "/connectors/ticks/pause")

    page = open_page()
    ui = page.url.partition("#")[0]

    def shown(address, ready):
        page.goto(f"{ui}{address}")
        expect(ready(page)).to_be_visible()
        return page

    def check(page):
        for scheme, options in (("dark", COLOURS), ("light", axe.DEFAULT_OPTIONS)):
            page.emulate_media(color_scheme=scheme)
            found = axe.Axe().run(page, options=options).response["violations"]
            assert not found, (scheme, [(each["id"], each["help"], [node["html"] for node in each["nodes"]]) for each in found])

    check(shown("#/", lambda page: page.get_by_role("row", name="failing").get_by_text("Task failed")))
    check(shown("#/connectors/sink", lambda page: page.get_by_role("row", name="ticks")))
    check(shown("#/topics/ticks", lambda page: page.locator(".records tbody").first))
    for fields in ("a", "ab"):
        registered(ui_worker, "barrier", *fields)
    for address in ("#/schemas", "#/groups", "#/loggers"):
        check(shown(address, lambda page: page.locator("main tbody tr").first))
    check(shown("#/plugins", lambda page: page.locator("main details").first))
    check(shown("#/dead-letters", lambda page: page.get_by_text("No connector has a dead letter queue.")))
    check(shown("#/schemas/barrier", lambda page: page.locator(".diff .new").first))
    shown("#/connectors/failing", lambda page: page.get_by_text("Trace of task 0"))
    page.get_by_text("Trace of task 0").click()
    check(page)
    page.get_by_role("button", name="Delete").click()
    check(page)
    page.get_by_role("button", name="Cancel").click()
    shown("#/connectors/ticks/edit", lambda page: field(page, "transforms.h.field"))
    field(page, "tasks.max").fill("many")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="It cannot be saved like this")).to_be_visible()
    check(page)
    page.get_by_role("button", name="JSON").click()
    check(page)


def test_a_phone_need_not_scroll_sideways(open_page, api, tmp_path):
    api.create("a-connector-with-a-rather-long-name-that-goes-on-and-on-without-a-space", ticker(text="word" * 60))
    page = open_page(viewport={"width": 360, "height": 740})
    page.get_by_role("link", name="a-connector").click()
    for address in ("#/", page.url, f"{page.url}/edit", "#/topics", "#/topics/ticks", "#/new"):
        page.goto(address if address.startswith("http") else f"{page.url.split('#')[0]}{address}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_load_state("networkidle") if address == "#/new" else page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_a_worker_that_is_gone_is_told(open_page, tmp_path, api):
    with LocalWorker(tmp_path) as worker:
        page = open_page()
        page.goto("http://{}:{}/ui/".format(*worker.process.rest.address))
        expect(page.get_by_role("status").first).to_have_text("Live")
    expect(page.get_by_role("status").first).to_contain_text("Offline")
    page.troubles.clear()  # Chromium reports each request that failed
    page.goto("about:blank")
    page.troubles.clear()


def test_a_chain_is_told_with_its_engines(open_page, api):
    """Which engine did how much, and why."""
    api.create("chained", {"connector.class": TICKER, "topic": "chained", "transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "n"})
    wait_for(lambda: api.json("GET", "/connectors/chained/pipeline")["tasks"][0]["records"]["rows"] > 0)
    page = open_page("#/connectors/chained")
    chain = page.get_by_role("region", name="Chain")
    expect(chain).to_contain_text(re.compile(r"Task 0.*rows \d+.*\(100 %\)"))
    expect(chain).to_contain_text("by rows: pipeline.engine=rows")
    expect(chain).to_contain_text("source: h (")


def test_offsets_beyond_what_javascript_counts_stay_exact(open_page, api, config):
    """9007199254740993 is 2^53 + 1: as a JavaScript number it would be one less."""
    api.create("far", config)
    api.json("PUT", "/connectors/far/stop", status=204)
    api.wait_state("far", "STOPPED")
    partition = {"filename": config["file"], "lsn": 9007199254740993}
    entries = [{"partition": partition, "offset": {"position": 9223372036854775807}}, {"partition": {"filename": "other"}, "offset": {"position": 1}}]
    api.json("PATCH", "/connectors/far/offsets", {"offsets": entries})
    page = open_page("#/connectors/far")
    offsets = page.get_by_role("region", name="Offsets")
    expect(offsets.get_by_role("row", name="9007199254740993")).to_contain_text("9223372036854775807")
    offsets.get_by_role("button", name="Set offsets…", exact=True).click()
    dialog = page.get_by_role("dialog", name="Set offsets")
    field = dialog.get_by_label("9007199254740993")
    expect(field).to_have_value('{"position":9223372036854775807}')
    field.fill('{"position": 9007199254740995}')
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(offsets.get_by_role("row", name="9007199254740993")).to_contain_text("9007199254740995")
    found = {entry["partition"]["filename"]: entry for entry in api.json("GET", "/connectors/far/offsets")["offsets"]}
    assert found[config["file"]] == {"partition": partition, "offset": {"position": 9007199254740995}}
