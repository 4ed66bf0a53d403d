"""Sql: an SQL statement on the fields of each record."""

import re

from standalone import HIGH, STRING, ConfigDef, ConfigError, Option, QueryTransform

_SELECT = re.compile(r"\s*select\b.*\bfrom\s+`?record`?\b", re.IGNORECASE | re.DOTALL)


def _selects_from_record(name, value):
    if value is not None and not _SELECT.match(value):
        raise ConfigError.of({name: f"'{value}' is not of the form SELECT … FROM record [LATERAL VIEW …] [WHERE …]"})


class Sql(QueryTransform):
    """Transform each record with a Spark SQL SELECT: select, compute and filter fields, or split a record into several.

    statement=SELECT *, upper(host) AS host_upper FROM record WHERE level <> 'DEBUG'
    statement=SELECT id, explode(tags) AS tag FROM record

    `record` has the fields of the value, and `_topic`, `_partition`, `_offset`, `_timestamp` and `_key`. Result columns named `_topic`,
    `_partition`, `_timestamp` or `_key` set that part of the record; the others become its value. Records with a null value pass unchanged.
    Statements work on one record at a time: there is no GROUP BY, no ORDER BY, no LIMIT, no JOIN.
    """

    config_def = ConfigDef(
        Option("statement", STRING, HIGH, "A SELECT of Spark SQL, FROM record.", check=_selects_from_record),
    )

    def configure(self, config):
        self.statement = config["statement"]
