"""connectctl dlq: letters in the format that the golden file records, shown and sent back; what was sent is sent once."""

import base64
import json
import pathlib

import pytest

from standalone.tools.replay import Done
from tests.runtime.local import wait_for

DATA, JSON = "org.apache.kafka.connect.errors.DataException", "org.apache.kafka.connect.json.JsonConverter"


def context(topic, offset, /, error=DATA, **more):
    """The context headers of a sink's letter, in Java's order."""
    named = {
        "topic": topic, "partition": "0", "offset": str(offset), "connector.name": "c", "task.id": "0", "stage": "VALUE_CONVERTER",
        "class.name": JSON, "exception.class.name": error, "exception.message": "not\nJSON", "exception.stacktrace": f"{error}: x\n\tat y",
        **{key.replace("_", "."): value for key, value in more.items()},
    }  # fmt: skip
    return [{"name": f"__connect.errors.{name}", "value": value} for name, value in named.items() if value is not None]


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def queue(request, worker, local, tmp_path):
    """A queue and the topic that its letters come from; `put(record, …)` writes letters, `back()` reads what was sent back."""
    bootstrap = worker.bootstrap if request.param == "embedded" else request.getfixturevalue("kafka")

    class Queue:
        name, topic = f"dlq-{tmp_path.name}", f"from-{tmp_path.name}"

        def run(self, *arguments, **more):
            return local(*arguments, "--bootstrap", bootstrap, **more)

        def json(self, *arguments, **more):
            return local.json(*arguments, "--bootstrap", bootstrap, **more)

        def put(self, *letters):
            self.run("produce", self.name, "--from-json", input="".join(json.dumps(letter) + "\n" for letter in letters))

        def letter(self, number, **more):
            own = [{"name": "h1", "value": "v1"}, {"name": "h2", "value": None}]
            return {"key": f"k{number}", "value": f"v{number}", "timestamp": 1000 + number, "headers": own + context(self.topic, number, **more)}

        def back(self, topic=None):
            lines = local.lines("consume", topic or self.topic, "--from-beginning", "--exit", "--bootstrap", bootstrap)
            return [(each["key"], each["value"]) for each in lines]

        def replay(self, *options, **more):
            found = self.json("dlq", "replay", self.name, *options, **more)
            return found["sent"], found["replayed_before"]

    queue = Queue()
    queue.run("topics", "create", queue.name, queue.topic, "--config", "retention.ms=-1")  # letters are of 1970, to be distinguished from later ones
    return queue


def pairs(*numbers):
    return [(f"k{number}", f"v{number}") for number in numbers]


def test_a_letter_goes_back_as_it_was_and_only_once(queue):
    queue.put(*(queue.letter(number) for number in range(3)))
    assert queue.replay() == ({queue.topic: 3}, 0)
    assert queue.replay() == ({}, 3)
    (first, *_) = [json.loads(line) for line in queue.run("consume", queue.topic, "--from-beginning", "--exit", "--json").splitlines()]
    assert first == {
        "topic": queue.topic, "partition": 0, "offset": 0, "timestamp": 1000, "key": "k0", "value": "v0",
        "headers": [{"name": "h1", "value": "v1"}, {"name": "h2", "value": None}],
    }  # fmt: skip
    queue.put(queue.letter(3))
    assert queue.replay() == ({queue.topic: 1}, 3)
    assert queue.back() == pairs(0, 1, 2, 3)
    assert queue.replay("--again") == ({queue.topic: 4}, 0)


def test_a_choice_is_remembered_as_one(queue):
    queue.put(*(queue.letter(number, error=DATA if number % 2 else "java.lang.NullPointerException") for number in range(6)))
    assert queue.replay("--error-class", "DataException") == ({queue.topic: 3}, 0)
    assert queue.replay("--offsets", "0-3") == ({queue.topic: 2}, 2)
    assert queue.replay("--offsets", "4", "--dry-run") == ({queue.topic: 1}, 0)
    assert queue.replay() == ({queue.topic: 1}, 5)
    assert queue.back() == pairs(1, 3, 5, 0, 2, 4)


def test_a_dry_run_sends_and_remembers_nothing(queue):
    queue.put(queue.letter(1))
    assert "1 would be sent" in queue.run("dlq", "replay", queue.name, "--dry-run")
    assert queue.back() == []
    assert "1 sent" in queue.run("dlq", "replay", queue.name)
    assert "nothing sent" in queue.run("dlq", "replay", queue.name)


def test_another_topic_and_at_most_so_many(queue):
    other = f"{queue.topic}-other"
    queue.run("topics", "create", other, "-p", "2")
    queue.put(*(queue.letter(number) for number in range(4)))
    assert queue.replay("--to", other, "-n", "3") == ({other: 3}, 0)
    assert queue.replay("--to", other) == ({other: 1}, 3)
    assert sorted(queue.back(other)) == pairs(0, 1, 2, 3)


def test_the_original_partition(queue):
    many = f"{queue.topic}-many"
    queue.run("topics", "create", many, "-p", "5")
    letters = [queue.letter(number, topic=many, partition=str(number)) for number in (0, 3, 4, 7)]
    queue.put(*letters)
    assert queue.replay() == ({many: 4}, 0)
    lines = queue.run("consume", many, "--from-beginning", "--exit", "--format", "%s %p\\n").splitlines()
    placed = dict(line.split() for line in lines)
    assert {"v0": "0", "v3": "3", "v4": "4"}.items() <= placed.items() and "v7" in placed


def test_bytes_that_are_no_text_and_nulls(queue):
    data = base64.b64encode(b"\xff\x00\xfe").decode()
    queue.put({"key": None, "value": {"base64": data}, "headers": context(queue.topic, 1)}, {"key": "gone", "value": None, "headers": context(queue.topic, 2)})
    queue.replay()
    assert queue.back() == [(None, {"base64": data}), ("gone", None)]
    assert "ff 00 fe" in queue.run("dlq", "show", queue.name)


def test_letters_that_cannot_go_back_say_why(queue):
    queue.put(
        {"value": "plain", "headers": [{"name": "h", "value": "1"}]},
        queue.letter(1, key_format="converter", value_format="json"),
        queue.letter(2, key_format="converter", value_format="omitted 123456 bytes"),
    )
    said = queue.run("dlq", "replay", queue.name)
    assert "--to" in said and "--as-polled" in said and "too large" in said and "nothing sent" in said
    assert queue.replay("--as-polled") == ({queue.topic: 1}, 0)
    assert queue.replay("--to", queue.topic) == ({queue.topic: 1}, 1)
    assert queue.back() == [("k1", "v1"), (None, "plain")]


def test_a_topic_that_is_gone_is_told_and_nothing_is_noted(queue):
    queue.put(queue.letter(1, topic="never-was"))
    assert "never-was" in queue.run("dlq", "replay", queue.name, code=1)
    assert queue.replay("--to", queue.topic) == ({queue.topic: 1}, 0)


def test_show_tells_what_went_wrong(queue):
    queue.put(*(queue.letter(number) for number in range(12)))
    said = queue.run("dlq", "show", queue.name, "-n", "1", "--traces")
    for expected in (f"{queue.topic}-0 offset 0", "VALUE_CONVERTER", JSON, DATA, "not\\nJSON", "k0", "h1=v1", "at y"):
        assert expected in said
    assert [each["offset"] for each in queue.json("dlq", "show", queue.name)] == list(range(10))
    assert [each["offset"] for each in queue.json("dlq", "show", queue.name, "--newest", "-n", "2")] == [10, 11]
    assert queue.json("dlq", "show", queue.name, "-n", "1")[0]["error"]["exception.class.name"] == DATA
    queue.replay("--offsets", "-9")
    assert [each["offset"] for each in queue.json("dlq", "show", queue.name, "--new")] == [10, 11]


def test_list_counts_by_error_class(queue):
    queue.put(*(queue.letter(number, error=DATA if number else None) for number in range(3)))
    queue.replay("--offsets", "1")
    (found,) = queue.json("dlq", "list", "--topic", queue.name)
    assert found == {"queue": queue.name, "connectors": [], "letters": 3, "replayed": 1, "errors": {DATA: 2, "(unknown)": 1}}
    assert DATA in queue.run("dlq", "list", "-t", queue.name)


def test_what_a_sink_of_ours_left_goes_back_and_through(ctl, worker, tmp_path):
    """Half of it is not JSON; the configuration is fixed; nothing is missing and nothing comes twice."""
    topic, out = f"in-{tmp_path.name}", tmp_path / "out.txt"
    on = ["--bootstrap", worker.bootstrap]
    ctl("topics", "create", topic, *on)
    ctl("produce", topic, *on, input="".join(f'{{"n":{n}}}\n' if n % 2 else f"bad {n}\n" for n in range(20)))
    config = {
        "value.converter": JSON, "value.converter.schemas.enable": "false", "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"dlq-{topic}", "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    worker.sink("half", out, topic, **config)
    wait_for(lambda: out.exists() and out.read_text().count("\n") == 10)
    wait_for(lambda: ctl.json("dlq", "list", *on)[0]["letters"] == 10)
    (found,) = ctl.json("dlq", "list", *on)
    assert found["connectors"] == ["half"] and found["errors"] == {DATA: 10}
    ctl("config", "patch", "half", "value.converter=org.apache.kafka.connect.storage.StringConverter")
    assert ctl.json("dlq", "replay", f"dlq-{topic}", *on)["sent"] == {topic: 10}
    wait_for(lambda: out.read_text().count("\n") == 20)
    assert sorted(line for line in out.read_text().splitlines() if line.startswith("bad")) == sorted(f"bad {n}" for n in range(0, 20, 2))


@pytest.mark.parametrize("said", ["x", "1-x", "-", "3--4"])
def test_offsets_that_are_none(local, worker, said):
    assert "--offsets" in local("dlq", "show", "q", "--offsets", said, "--bootstrap", worker.bootstrap, code=2)


@pytest.mark.parametrize(
    "done, offsets, expected",
    [
        (Done(), [0, 1, 2], (3, "")),
        (Done(), [1, 2, 5], (0, "done 1-2,5")),
        (Done(0, [[1, 2], [5, 5]]), [0], (3, "done 5")),
        (Done(3, [[5, 5]]), [3, 4], (6, "")),
        (Done(3, [[7, 9]]), [5, 6], (3, "done 5-9")),
        (Done(3), [1], (3, "")),
    ],
)
def test_what_is_done_is_noted_in_few_words(done, offsets, expected):
    noted = done.with_(offsets)
    assert noted.commit() == expected
    again = Done.of(*expected)
    assert again.commit() == expected and all(offset in again for offset in offsets)


def test_what_others_wrote_as_metadata_is_no_note():
    assert Done.of(4, "0b6b4a1c-uuid").commit() == (4, "")


def test_letters_here_are_as_the_genuine_worker_writes_them():
    golden = pathlib.Path(__file__).parent.parent / "golden" / "dead_letter.json"
    letter = json.loads(golden.read_text())
    names = [name.removeprefix("__connect.errors.") for name, _ in letter["headers"] if name.startswith("__connect.errors.")]
    assert names == [header["name"].removeprefix("__connect.errors.") for header in context("t", 1)]
