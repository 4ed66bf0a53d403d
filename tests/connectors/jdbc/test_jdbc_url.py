"""URLs of Java's drivers, and that no secret of theirs is told."""

import pytest

from connectors.jdbc.url import Location, parse
from standalone import ConfigError


@pytest.mark.parametrize(
    "url, expected",
    [
        ("jdbc:postgresql://h:5433/db?user=u&password=p%26q&sslmode=require", Location("postgresql", (("h", 5433),), "db", "u", "p&q", {"sslmode": "require"})),
        ("jdbc:postgresql://a,b:6543/db", Location("postgresql", (("a", 5432), ("b", 6543)), "db")),
        ("jdbc:postgresql://[::1]:5432/db", Location("postgresql", (("::1", 5432),), "db")),
        ("jdbc:postgresql:db", Location("postgresql", (("localhost", 5432),), "db")),
        ("jdbc:postgresql:///db", Location("postgresql", (("localhost", 5432),), "db")),
        ("jdbc:mysql://u:p@h/db?useSSL=false", Location("mysql", (("h", 3306),), "db", "u", "p", {"useSSL": "false"})),
        ("jdbc:mariadb://h:3307/db?user=u", Location("mysql", (("h", 3307),), "db", "u")),
        ("jdbc:mariadb:sequential://a,b/db", Location("mysql", (("a", 3306), ("b", 3306)), "db")),
        ("jdbc:sqlite:/a/b.db", Location("sqlite", (), "/a/b.db")),
        ("jdbc:sqlite:b.db?foreign_keys=on", Location("sqlite", (), "b.db", properties={"foreign_keys": "on"})),
        ("jdbc:sqlite::memory:", Location("sqlite", (), ":memory:")),
    ],
)  # fmt: skip
def test_a_url_is_taken_apart(url, expected):
    assert parse(url) == expected


def test_the_configuration_goes_before_the_url():
    found = parse("jdbc:postgresql://h/db?user=u&password=p&a=1", "other", "secret", {"a": "2"})
    assert (found.user, found.password, found.properties) == ("other", "secret", {"a": "2"})


@pytest.mark.parametrize("url", ["postgresql://h/db", "jdbc:", "jdbc:postgresql://h:x/db"])
def test_what_is_no_url_is_refused_without_being_shown(url):
    with pytest.raises(ConfigError) as failure:
        parse(f"{url}?password=hunter22")
    assert "hunter22" not in str(failure.value)


def test_no_secret_is_told():
    found = parse("jdbc:postgresql://h/db?user=u&password=hunter%262&sslpassword=other-secret")
    assert found.shown == "jdbc:postgresql://h:5432/db"
    assert found.masked("login with hunter&2, hunter%262, other-secret failed") == "login with [hidden], [hidden], [hidden] failed"
