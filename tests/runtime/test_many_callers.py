"""Many callers at once on the same few names: every answer comes soon and is none of the worker's own faults, and nothing is left behind."""

import collections
import gc
import http.client
import json
import os
import random
import threading
import time

from standalone import SourceConnector, SourceTask
from tests.runtime.local import LocalWorker, wait_for

CALLERS = int(os.environ.get("CALLERS", 200))
SECONDS = float(os.environ.get("CALLERS_SECONDS", 20))
NAMES = [f"c{number}" for number in range(12)]
LONGEST_ANSWER = 60.0  # of 200 callers that share the worker's interpreter, on a busy machine; alone it is milliseconds
RUNNING = collections.Counter()  # name -> tasks that have started and not ended
TOO_MANY = []
_lock = threading.Lock()


class Task(SourceTask):
    def __init__(self):
        self.over = threading.Event()

    def start(self, config):
        self.name = config["name"]
        with _lock:
            RUNNING[self.name] += 1
            if RUNNING[self.name] > 1:
                TOO_MANY.append(self.name)

    def poll(self):
        self.over.wait(0.5)

    def stop(self):
        self.over.set()

    def close(self):
        with _lock:
            RUNNING[self.name] -= 1


class Source(SourceConnector):
    task_class = Task


def config(number):
    return {"connector.class": "tests.runtime.test_many_callers:Source", "n": str(number)}


def steps(chosen):
    """(method, path, body, statuses that may be) of one caller's next call."""
    name = chosen.choice(NAMES)
    path, number = f"/connectors/{name}", chosen.randrange(1000)
    yield "PUT", f"{path}/config", config(number), {200, 201, 409}
    for method, rest, body, fine in chosen.sample(
        [
            ("GET", "", None, {200, 404}),
            ("GET", "/status", None, {200, 404}),
            ("GET", "/tasks", None, {200, 404}),
            ("PATCH", "/config", {"n": str(number)}, {200, 404, 409}),
            ("PUT", "/pause", None, {202, 404, 409}),
            ("PUT", "/resume", None, {202, 404, 409}),
            ("PUT", "/stop", None, {204, 404, 409}),
            ("POST", "/restart", None, {204, 404, 409}),
            ("POST", "/restart?includeTasks=true", None, {202, 404, 409}),
            ("POST", "/tasks/0/restart", None, {204, 404, 409}),
            ("DELETE", "", None, {204, 404, 409}),
        ],
        4,
    ):
        yield method, path + rest, body, fine
    yield "GET", "/connectors?expand=status", None, {200}


class Caller(threading.Thread):
    def __init__(self, port, seed, until):
        super().__init__(daemon=True)
        self.random, self.until, self.wrong, self.calls, self.longest = random.Random(seed), until, [], 0, 0.0
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def run(self):
        while time.monotonic() < self.until:
            for method, path, body, fine in steps(self.random):
                begun = time.monotonic()
                self.connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
                answer = self.connection.getresponse()
                said = answer.read()
                self.calls, self.longest = self.calls + 1, max(self.longest, time.monotonic() - begun)
                if answer.status not in fine:
                    self.wrong.append((method, path, answer.status, said[:200]))
        self.connection.close()


def threads():
    return sorted(thread.name for thread in threading.enumerate() if not thread.name.startswith(("AnyIO", "Thread-")))


def files():
    return len(os.listdir("/proc/self/fd"))


def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def test_many_callers_on_the_same_names_leave_nothing_behind(tmp_path):
    RUNNING.clear()
    with LocalWorker(tmp_path) as worker:
        worker.create("warm", config(0))  # what is imported and opened once
        worker.wait_states("warm", "RUNNING", "RUNNING")
        worker.herder.delete("warm")
        wait_for(lambda: not worker.herder.runners())
        threads_before, files_before, memory_before = threads(), files(), memory()
        port = int(worker.process.rest.addresses[0].rpartition(":")[2].strip("/"))
        callers = [Caller(port, seed, time.monotonic() + SECONDS) for seed in range(CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(SECONDS + 120)
        wrong = [each for caller in callers for each in caller.wrong]
        assert not any(caller.is_alive() for caller in callers), "a call never came back"
        assert not wrong, (len(wrong), wrong[:5])
        assert not TOO_MANY, f"two tasks of one name ran at once: {TOO_MANY[:5]}"
        longest, calls = max(caller.longest for caller in callers), sum(caller.calls for caller in callers)
        print(f"{CALLERS} callers for {SECONDS:.0f} s: {calls} calls, the longest {longest:.2f} s")
        assert longest < LONGEST_ANSWER
        # What is shown is what runs.
        for name in worker.herder.names():
            worker.herder.resume(name)
            worker.wait_states(name, "RUNNING", "RUNNING")
            (runner,) = wait_for(lambda name=name: [runner for runner in worker.herder.runners() if runner.connector == name])
            assert runner.config["n"] == worker.herder.config(name)["n"]
        for name in worker.herder.names():
            worker.herder.delete(name)
        assert worker.herder.names() == [] and worker.herder.runners() == [] and not any(RUNNING.values()), RUNNING
        wait_for(lambda: threads() == threads_before, what=lambda: (threads_before, threads()))
        wait_for(lambda: files() <= files_before + 5, what=lambda: (files_before, files()))
        print(f"before and after: {len(threads_before)} and {len(threads())} threads, {files_before} and {files()} files, {memory_before} and {memory()} MiB")
        assert memory() < memory_before + 150, (memory_before, memory())
        assert worker.process.health_problem(5) is None
