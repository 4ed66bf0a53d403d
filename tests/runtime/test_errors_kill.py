"""scripts/soak/dead_letter.py, a small one: killed in the middle of dead letters, nothing is missing and nothing bad comes through."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "soak" / "dead_letter.py"


def test_no_bad_record_is_missing_in_the_queue_after_kills():
    done = subprocess.run([sys.executable, SCRIPT, "--kills", "2", "--records", "8000"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 missing in the queue" in done.stdout and "0 missing in the file" in done.stdout
