"""Select the dialect: by dialect.name, otherwise by the protocol of the URL."""

from connectors.jdbc import url as u
from connectors.jdbc.dialects.generic import KINDS, Generic
from connectors.jdbc.dialects.mysql import MySql
from connectors.jdbc.dialects.postgresql import PostgreSql
from connectors.jdbc.dialects.sqlite import Sqlite
from standalone import ConfigError

DIALECTS = {u.MYSQL: MySql, u.POSTGRESQL: PostgreSql, u.SQLITE: Sqlite, **dict.fromkeys(KINDS, Generic)}
NAMES = (
    "", "Db2DatabaseDialect", "DerbyDatabaseDialect", "GenericDatabaseDialect", "MySqlDatabaseDialect", "OracleDatabaseDialect",
    "PostgreSqlDatabaseDialect", "SapHanaDatabaseDialect", "SqlServerDatabaseDialect", "SqliteDatabaseDialect", "SybaseDatabaseDialect",
    "VerticaDatabaseDialect",
)  # fmt: skip


def dialect_of(config, location, **options):
    """Return the dialect for a parsed configuration. Raises ConfigError if there is none."""
    name = config["dialect.name"]
    by_kind = DIALECTS.get(location.kind)
    found = by_kind if not name or by_kind is Generic else next((each for each in DIALECTS.values() if each.name == name), None)
    if found is None or found is Generic and by_kind is not Generic:
        known = ", ".join(f"jdbc:{kind}:" for kind in DIALECTS if kind != u.SQLALCHEMY)
        raise ConfigError.of({
            "connection.url": f"has the protocol '{location.kind}', which is not supported. Supported: {known} and SQLAlchemy's URLs "
            f"(driver://host/database)"
        })  # fmt: skip
    return found(location, quote=config["quote.sql.identifiers"], zone=config["db.timezone"], **options)
