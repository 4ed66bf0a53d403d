"""LogSource and a real worker: what every source must do, killed with -9 among it."""

from connectors.logs.source import LogSourceConnector
from standalone.testing import SourceSuite


class TestLogSource(SourceSuite):
    """One log: each of its records alone says where to continue."""

    connector = LogSourceConnector
    expected = [f"line {number}" for number in range(30)]

    def given(self, folder):
        (folder / "app.log").write_text("".join(f"line {number}\n" for number in range(30)))
        return {"topic": "logs", "paths": str(folder / "app.log*"), "rotate.wait.ms": "0"}
