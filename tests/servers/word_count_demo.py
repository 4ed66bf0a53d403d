"""Kafka Streams' word count, the Java demo of its quick start: from streams-plaintext-input to streams-wordcount-output of a Kafka."""

from tests.servers.server import HERE, JAVA_OPTIONS, Server, jars, java

VERSION = "4.3.1"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
START_SECONDS = 160  # on a machine that has others to serve; five on one that has not


class WordCountDemo(Server):
    """The topics have to be there. It begins with the earliest record."""

    name = "word-count-demo"

    def __init__(self, bootstrap):
        super().__init__()
        self._bootstrap = bootstrap

    def start(self):
        libs = jars(f"kafka-streams-{VERSION}", HERE / "kafka-streams-pom.xml")
        self._make_folder()
        config = self._folder / "streams.properties"
        # The level at which Kafka Streams says that it runs; the broker's own file is quieter.
        log4j = self._folder / "log4j2.properties"
        log4j.write_text("rootLogger.level = info\nrootLogger.appenderRef.o.ref = o\nappender.o.type = Console\nappender.o.name = o\n")
        config.write_text(f"bootstrap.servers={self._bootstrap}\nstate.dir={self._folder / 'state'}\n")
        options = ["-Xmx256m", *JAVA_OPTIONS, f"-Dlog4j2.configurationFile={log4j}"]
        self._begin([java(), *options, "-cp", f"{libs}/*", "org.apache.kafka.streams.examples.wordcount.WordCountDemo", config])
        self._wait_until(lambda: "to RUNNING" in self._log.read_text(errors="replace"), START_SECONDS)
        return self
