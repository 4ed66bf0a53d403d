"""A real HDFS for tests: a name node and a data node in one Java process; its jars come from Maven, once, into a cache folder.

    python -m tests.servers.hdfs      runs one until Ctrl-C and prints its address
"""

from tests.servers.server import HERE, Server, free_port, jars, java, run_until_interrupted
from tests.servers.server import JAVA_OPTIONS as QUICK_START

VERSION = "3.4.1"
START_SECONDS = 90
JAVA_OPTIONS = ["-Xmx512m", *QUICK_START]


class Hdfs(Server):
    """`url` stays the same, and so does the data, through kill and restart."""

    name = "hdfs"

    def __init__(self):
        super().__init__()
        self.port, self._http = free_port(), free_port()
        self.url = f"hdfs://127.0.0.1:{self.port}"

    def start(self):
        libs, is_new = jars(f"hadoop-{VERSION}", HERE / "hdfs.xml"), self._make_folder()
        details = self._folder / "details.json"
        details.unlink(missing_ok=True)
        options = ["dfs.replication=1", "dfs.namenode.edits.noeditlogchannelflush=true", "dfs.permissions.superusergroup=root"]
        command = [java(), *JAVA_OPTIONS, f"-Dtest.build.data={self._folder}", "-cp", f"{libs}/*", "org.apache.hadoop.test.MiniDFSClusterManager"]
        command += [*(["-format"] if is_new else []), "-datanodes", "1", "-nnport", self.port, "-httpport", self._http, "-writeDetails", details]
        self._begin(command + [word for option in options for word in ("-D", option)])
        self._wait_until(lambda: details.stat().st_size, START_SECONDS)
        return self

    def handed_over(self):
        return {"url": self.url, **super().handed_over()}


if __name__ == "__main__":
    run_until_interrupted(Hdfs(), lambda server: server.url)
