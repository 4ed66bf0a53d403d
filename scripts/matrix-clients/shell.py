"""kcat and Kafka's own tools against one log: each operation of the matrix as commands."""

import re
import subprocess

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC = 200
COUNT = PER_CODEC * len(CODECS)
SECONDS = 90


class Failed(Exception):
    """What a command said."""


def run(command, stdin="", seconds=SECONDS):
    try:
        done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} … {command[-1]}: not within {seconds} s") from None
    if done.returncode:
        raise Failed(f"ended with {done.returncode}: {(done.stderr + done.stdout)[-400:]}")
    return done.stdout


def same(what, wanted, found):
    if wanted != found:
        raise Failed(f"{what}: {str(found)[:200]}, not {str(wanted)[:200]}")


def outcomes(operations):
    """{operation: "ok", "none" or what went wrong}"""
    found = {}
    for name, work in operations.items():
        try:
            found[name] = "none" if work is None else work() or "ok"
        except Exception as error:  # whatever it is, it is this operation's
            found[name] = f"{type(error).__name__}: {error}".replace("\n", " ")
    return found


def lines(place):
    return [f"{number}\trecord {number:06d}, compressed, compressed, compressed" for number in range(place * PER_CODEC, (place + 1) * PER_CODEC)]


def all_lines():
    return sorted(line for place in range(len(CODECS)) for line in lines(place))


def kcat(bootstrap, topic):
    base = ["kcat", "-b", bootstrap, "-q"]

    def write():
        for place, codec in enumerate(CODECS):
            options = ["-z", codec, "-K", "\t", "-H", "number=1", "-X", "enable.idempotence=true"]
            run([*base, "-P", "-t", topic, *options], "\n".join(lines(place)) + "\n")

    def read():
        said = run([*base, "-C", "-t", topic, "-e", "-o", "beginning", "-f", "%k\t%s\t%h\n"])
        same("records", all_lines(), sorted(line.removesuffix("\tnumber=1") for line in said.splitlines()))

    def group():
        said = run([*base, "-G", f"{topic}-group", "-X", "auto.offset.reset=earliest", "-c", COUNT, "-f", "%k\t%s\n", topic])
        same("records", all_lines(), sorted(said.splitlines()))

    def times():
        said = run([*base, "-Q", "-t", f"{topic}:0:1"])  # it makes no topics: what is made for it has one partition
        same("the first offset", f"{topic} [0] offset 0", said.strip())

    return {"create": None, "write": write, "read": read, "group": group, "share": None, "times": times, "transaction": None,
            "configs": None, "groups": None, "delete": None}  # fmt: skip


class JavaTools:
    """The console, admin and perf tools of a Kafka whose jars are in a folder."""

    def __init__(self, jars, options):
        self._java = ["java", "-Xmx256m", *options, "-cp", f"{jars}/*"]

    def tool(self, main, *arguments, stdin="", seconds=SECONDS):
        return run([*self._java, main, *arguments], stdin, seconds)

    def operations(self, bootstrap, topic):
        tools, server = "org.apache.kafka.tools", ("--bootstrap-server", bootstrap)
        topics, groups, configs = f"{tools}.TopicCommand", f"{tools}.consumer.group.ConsumerGroupCommand", "kafka.admin.ConfigCommand"
        group, transactional = f"{topic}-group", f"{topic}-transactions"

        def create():
            for name in (topic, transactional):
                self.tool(topics, *server, "--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=-1")
            described = self.tool(topics, *server, "--describe", "--topic", topic)
            if "PartitionCount: 3" not in described or "retention.ms=-1" not in described:
                raise Failed(described)

        def write():
            for place, codec in enumerate(CODECS):
                properties = ("--reader-property", "parse.key=true")
                self.tool(f"{tools}.ConsoleProducer", *server, "--topic", topic, "--compression-codec", codec, *properties,
                          stdin="\n".join(lines(place)) + "\n")  # fmt: skip

        def console(*arguments):
            count = ("--max-messages", COUNT, "--timeout-ms", "30000", "--from-beginning", "--formatter-property", "print.key=true")
            return sorted(self.tool(f"{tools}.consumer.ConsoleConsumer", *server, "--topic", topic, *count, *arguments).splitlines())

        def in_groups():
            same("records of the classic protocol", all_lines(), console("--group", group))
            same("records of KIP-848", all_lines(), console("--group", f"{group}-848", "--command-property", "group.protocol=consumer"))
            said = self.tool(f"{tools}.ConsumerPerformance", *server, "--topic", topic, "--num-records", COUNT, "--group", f"{group}-perf")
            same("records of the perf tool", True, re.search(rf" {COUNT},", said) is not None)

        def share():
            shared, groups = f"{group}-share", f"{tools}.consumer.group.ShareGroupCommand"
            entity = ("--entity-type", "groups", "--entity-name", shared)
            self.tool(configs, *server, "--alter", *entity, "--add-config", "share.auto.offset.reset=earliest")
            asked = ("--group", shared, "--max-messages", COUNT, "--timeout-ms", "30000", "--formatter-property", "print.key=true")
            said = self.tool(f"{tools}.consumer.ConsoleShareConsumer", *server, "--topic", topic, *asked)
            same("records", all_lines(), sorted(said.splitlines()))
            same("listed", True, shared in self.tool(groups, *server, "--list").split())
            rows = [line.split() for line in self.tool(groups, *server, "--describe", "--group", shared).splitlines() if line.startswith(shared)]
            same("lag", [(str(partition), "0") for partition in range(3)], sorted((row[2], row[4]) for row in rows))
            self.tool(groups, *server, "--reset-offsets", "--to-earliest", "--execute", "--topic", topic, "--group", shared)
            said = self.tool(f"{tools}.ShareConsumerPerformance", *server, "--topic", topic, "--num-records", COUNT, "--group", shared)
            same("records of the perf tool", True, re.search(rf" {COUNT},", said) is not None)
            self.tool(groups, *server, "--delete-offsets", "--topic", topic, "--group", shared)
            same("deleted", True, "successful" in self.tool(groups, *server, "--delete", "--group", shared))  # it ends with 0 if it fails, too

        def times():
            said = self.tool(f"{tools}.GetOffsetShell", *server, "--topic", topic, "--time", "earliest")
            same("offsets", [f"{topic}:{partition}:0" for partition in range(3)], said.split())
            said = self.tool(f"{tools}.GetOffsetShell", *server, "--topic", topic, "--time", "max-timestamp")
            same("offsets", 3, len(said.split()))

        def transaction():
            self.tool(f"{tools}.ProducerPerformance", "--topic", transactional, "--num-records", "1000", "--record-size", "100", "--throughput",
                      "-1", "--transactional-id", transactional, "--bootstrap-server", bootstrap, "--transaction-duration-ms", "100")  # fmt: skip
            same("listed", True, transactional in self.tool(f"{tools}.TransactionsCommand", *server, "list"))
            said = self.tool(f"{tools}.TransactionsCommand", *server, "describe", "--transactional-id", transactional)
            same("completed", True, "CompleteCommit" in said)
            self.tool(f"{tools}.TransactionsCommand", *server, "describe-producers", "--topic", transactional, "--partition", "0")
            said = self.tool(f"{tools}.consumer.ConsoleConsumer", *server, "--topic", transactional, "--from-beginning", "--max-messages", "1000",
                             "--isolation-level", "read_committed", "--timeout-ms", "30000")  # fmt: skip
            same("committed records", 1000, len(said.splitlines()))

        def altered():
            entity = ("--entity-type", "topics", "--entity-name", topic)
            self.tool(configs, *server, "--alter", *entity, "--add-config", "retention.ms=123456789,cleanup.policy=[compact,delete]")
            same("retention.ms", True, "retention.ms=123456789" in self.tool(configs, *server, "--describe", *entity))

        def looked():
            same("listed", True, group in self.tool(groups, *server, "--list").split())
            said = self.tool(groups, *server, "--describe", "--group", group)
            rows = [line.split() for line in said.splitlines() if line.startswith(group)]
            same("lag", {"0"}, {row[5] for row in rows})
            self.tool(groups, *server, "--reset-offsets", "--to-earliest", "--execute", "--topic", topic, "--group", group)
            self.tool(groups, *server, "--delete", "--group", group)

        def delete():
            self.tool(topics, *server, "--alter", "--topic", topic, "--partitions", "4")
            for name in (topic, transactional):
                self.tool(topics, *server, "--delete", "--topic", name)

        return {"create": create, "write": write, "read": lambda: same("records", all_lines(), console()), "group": in_groups, "share": share,
                "times": times, "transaction": transaction, "configs": altered, "groups": looked, "delete": delete}  # fmt: skip
