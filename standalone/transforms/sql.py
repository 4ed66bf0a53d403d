"""Sql: an SQL statement on the fields of each record."""

import re

from standalone import HIGH, STRING, ConfigDef, ConfigError, Option, QueryTransform

_SELECT = re.compile(r"\s*select\b.*\bfrom\s+`?record`?\b", re.IGNORECASE | re.DOTALL)


def _selects_from_record(name, value):
    if value is not None and not _SELECT.match(value):
        raise ConfigError.of({name: f"'{value}' is not of the form SELECT … FROM record [LATERAL VIEW …] [WHERE …]"})


class Sql(QueryTransform):
    """Make of each record what a SELECT of Spark SQL makes of it: choose, compute and filter fields, or make multiple records of one.

    statement=SELECT *, upper(host) AS host_upper FROM record WHERE level <> 'DEBUG'
    statement=SELECT id, explode(tags) AS tag FROM record

    `record` has the fields of the value, and beside them `_topic`, `_partition`, `_offset`, `_timestamp` and `_key`. A result of the name
    `_topic`, `_partition`, `_timestamp` or `_key` becomes that of the record, all others its value. A record whose value is null passes.
    Statements work on one record at a time: there is no GROUP BY, no ORDER BY, no LIMIT, no JOIN.
    """

    config_def = ConfigDef(
        Option("statement", STRING, HIGH, "A SELECT of Spark SQL, FROM record.", check=_selects_from_record),
    )

    def configure(self, config):
        self.statement = config["statement"]
