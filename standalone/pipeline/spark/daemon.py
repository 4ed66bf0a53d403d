"""The Python daemon of an executor (spark.python.daemon.module): it imports what long jobs need, once, and forks a process for each of them.

    CONNECT_DAEMON_MODULES=a.b,c.d python -m standalone.pipeline.spark.daemon pyspark.worker      as Spark starts it

pyspark's own daemon leaves all imports to the processes that it forks. After an executor has died its tasks begin elsewhere, all at the same time,
and each would import the same on few cores.
"""

import gc
import importlib
import os
import traceback

from pyspark import daemon

MODULES = "CONNECT_DAEMON_MODULES"  # in the environment


def main():
    for name in filter(None, os.environ.get(MODULES, "").split(",")):
        try:
            importlib.import_module(name)
        except Exception:  # the job that needs it says so to who gave it, and where
            traceback.print_exc()
    gc.collect()
    gc.freeze()  # or each process would copy what it shares as soon as it collects garbage
    daemon.manager()


if __name__ == "__main__":
    main()
