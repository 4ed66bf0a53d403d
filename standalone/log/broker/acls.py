"""Who may do what: Kafka's ACLs, kept in the store. Owned by one thread.

A principal may do an operation on a resource if it is a superuser, or if an ACL allows it and none denies it; what allows READ, WRITE,
DELETE or ALTER allows DESCRIBE, too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. Without any ACL on a resource nobody else may.
"""

from typing import NamedTuple

from standalone.log.broker.operations import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    ANY,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    WRITE,
)

MATCH, LITERAL, PREFIXED = 2, 3, 4  # kinds of patterns; in filters ANY, too
DENY, ALLOW = 2, 3
WILDCARD = "*"
ANYONE = "User:*"
_KIND = "acl"
_IMPLIED = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}


class Acl(NamedTuple):
    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class Filter(NamedTuple):
    """As an Acl; None, or the number ANY, is whatever there is."""

    resource_type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def fits(self, acl):
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._fits_name(acl)
        )

    def _fits_name(self, acl):
        if self.pattern not in (ANY, MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        return _covers(acl, self.name) if self.pattern == MATCH else self.name == acl.name


class Acls:
    def __init__(self, store, superusers=()):
        self._store = store
        self._superusers = set(superusers)
        self._acls = {name: Acl(*body) for name, body in store.documents(_KIND).items()}

    def add(self, acl):
        name = repr(tuple(acl))
        if name not in self._acls:
            self._store.save_document(_KIND, name, list(acl))
            self._acls[name] = acl

    def find(self, wanted):
        return [acl for acl in self._acls.values() if wanted.fits(acl)]

    def remove(self, wanted):
        """Those that were removed."""
        found = self.find(wanted)
        for acl in found:
            self._store.delete_document(_KIND, repr(tuple(acl)))
            del self._acls[repr(tuple(acl))]
        return found

    def allows(self, principal, host, operation, resource_type, name):
        if principal in self._superusers:
            return True
        found = [
            acl
            for acl in self._acls.values()
            if acl.resource_type == resource_type
            and acl.principal in (principal, ANYONE)
            and acl.host in (host, WILDCARD)
            and _covers(acl, name)
        ]
        if any(acl.permission == DENY and acl.operation in (operation, ALL) for acl in found):
            return False
        enough = (operation, ALL, *_IMPLIED.get(operation, ()))
        return any(acl.permission == ALLOW and acl.operation in enough for acl in found)


def _covers(acl, name):
    """Whether the ACL is about the resource of this name."""
    if acl.pattern == PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, WILDCARD)
