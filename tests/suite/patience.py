"""How long a test waits at most for what has to come. Waits end as soon as it is there, so that this is only how slow a machine may be."""

import os

PATIENCE_SECONDS = 60
os.environ.setdefault("CONNECT_TEST_PATIENCE", str(PATIENCE_SECONDS))  # the test kit's own waits (standalone/local_worker.py)
