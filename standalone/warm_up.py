"""Have the loops compiled that the quickstart's records need, and kept: `python -m standalone.warm_up`, the last step of the set-up.

Otherwise the first lines of a new installation wait some seconds for it.
"""

import logging
import pathlib
import tempfile

from standalone.local_worker import LocalWorker, wait_for

FEW, MANY = 2, 20_000  # a few lines go other ways than many
SECONDS = 120


def main():
    logging.disable(logging.ERROR)  # nothing is wrong where nothing is compiled: it is done later
    json = "org.apache.kafka.connect.json.JsonConverter"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines, written = folder / "lines", folder / "written"
        lines.touch()
        with LocalWorker(folder, key__converter=json, value__converter=json, pipeline__engine="auto") as worker:
            worker.create("source", {"connector.class": "FileStreamSource", "file": lines, "topic": "warm-up"})
            worker.create("sink", {"connector.class": "FileStreamSink", "file": written, "topics": "warm-up"})
            for count in (FEW, MANY):
                with lines.open("a") as file:
                    file.write("a line of some length, as there are in logs\n" * count)
                wait_for(lambda: written.exists() and written.stat().st_size == lines.stat().st_size, SECONDS, "the lines")


if __name__ == "__main__":
    main()
