"""A real metastore of Hive for tests, 3.1, with Derby beneath; its jars come from Maven, once, into a cache folder.

    python -m tests.servers.hive_metastore      runs one until Ctrl-C and prints its address
"""

from tests.servers.server import HERE, JAVA_OPTIONS, Server, free_port, jars, java, run_until_interrupted, takes_connections

VERSION = "3.1.3"
START_SECONDS = 120
OPENED = ("java.base/java.lang", "java.base/java.net", "java.base/java.util", "java.base/java.util.concurrent", "java.base/java.lang.reflect")
SETTINGS = {
    "datanucleus.schema.autoCreateAll": "true",
    "metastore.schema.verification": "false",
    "hive.metastore.schema.verification": "false",
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
}


class Metastore(Server):
    name = "hive"

    def __init__(self):
        super().__init__()
        self._port = free_port()
        self.url = f"thrift://127.0.0.1:{self._port}"

    def start(self):
        libs = jars(f"hive-metastore-{VERSION}", HERE / "hive-pom.xml")
        if self._make_folder():
            self._write_settings()
        opens = [word for each in OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")]
        command = [java(), "-Xmx384m", *JAVA_OPTIONS, *opens, "-cp", f"{self._folder}:{libs}/*"]
        self._begin([*command, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", self._port])
        self._wait_until(lambda: takes_connections(self._port), START_SECONDS)
        return self

    def _write_settings(self):
        settings = {
            **SETTINGS, "metastore.warehouse.dir": f"file://{self._folder}/warehouse",
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self._folder}/metastore;create=true",
        }  # fmt: skip
        properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
        (self._folder / "metastore-site.xml").write_text(f"<configuration>{properties}</configuration>")


if __name__ == "__main__":
    run_until_interrupted(Metastore(), lambda server: server.url)
