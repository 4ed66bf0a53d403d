"""Python functions for SQL statements, from the files and modules in `sql.functions`.

    from standalone.streams import function

    @function("double")
    def with_tax(total: float, percent: float):
        return total * (1 + percent / 100)

    @function("string", arrow=True)        # whole columns at once: pyarrow arrays in, one out
    def shortened(text): ...

A function is called once per row with Python values (None is null), or with `arrow` once per batch. Functions run in Spark's Python
workers: files are sent there; modules must be installed where Spark runs.
"""

import hashlib
import importlib
import importlib.util
import sys
from typing import Any, NamedTuple

from standalone.errors import ConfigError
from standalone.streams.sql.functions import RENAMED, REWRITTEN

KEY = "sql.functions"
_MARK = "__connect_function__"


class Function(NamedTuple):
    name: str
    returns: str  # a Spark SQL type
    arrow: bool
    call: Any
    place: str  # its file or module

    @property
    def parameters(self):
        code = self.call.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def text(self):
        """Signature and result type."""
        return f"{self.name}({', '.join(self.parameters)}) → {self.returns.upper()}"


def function(returns, name=None, arrow=False):
    """Mark a function as callable from SQL. `returns` is a Spark SQL type; `name` defaults to the function's name."""

    def marked(call):
        setattr(call, _MARK, (name or call.__name__, returns, arrow))
        return call

    return marked


def load(places):
    """Load the [Function]s of files (`….py`) and modules. Raise ConfigError naming the failing place."""
    found = {}
    for place in places:
        try:
            module = _module(place)
        except Exception as error:
            raise ConfigError.of({KEY: f"names {place}, which cannot be loaded: {type(error).__name__}: {error}"}) from error
        own = [value for value in vars(module).values() if callable(value) and hasattr(value, _MARK)]
        if not own:
            raise ConfigError.of({KEY: f"names {place}, which has no function: mark one with @function(type) from standalone.streams"})
        for call in own:
            name, returns, arrow = getattr(call, _MARK)
            if name.upper() in RENAMED or name.upper() in REWRITTEN:
                raise ConfigError.of({KEY: f"names {place}, whose function {name} is already a SQL function: rename it"})
            if (other := found.get(name.lower())) is not None:
                raise ConfigError.of({KEY: f"has the function {name} twice, in {other.place} and in {place}"})
            found[name.lower()] = Function(name, returns, arrow, call, place)
    return sorted(found.values())


def _module(place):
    if not place.endswith(".py"):
        return importlib.import_module(place)
    from pyspark import cloudpickle

    # Files may share a name. Other processes cannot import them, so Spark's workers get the code itself.
    name = f"connect_functions_{hashlib.sha256(place.encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        cloudpickle.register_pickle_by_value(module)
    return sys.modules[name]


def register(session, functions):
    """Register the functions in this session."""
    from pyspark.sql import functions as f

    for each in functions:
        try:
            made = f.arrow_udf(each.call, each.returns, f.ArrowUDFType.SCALAR) if each.arrow else f.udf(each.call, each.returns)
            session.udf.register(each.name, made)
        except Exception as error:
            raise ConfigError.of({KEY: f"names {each.place}, whose function {each.name} Spark rejects: {error}"}) from error
