"""ACLs, evaluated as by Kafka's StandardAuthorizer: who may do what with which topic, group, cluster or transactional id.

An ACL matches a resource by literal name, by prefix, or by `*` for all of a type. A deny outweighs every allow.
"""

import json
from typing import NamedTuple

from standalone.log.broker.operations import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    operations_on,
)
from standalone.log.broker.refusal import Refusal, codes

MATCH, LITERAL, PREFIXED = 2, 3, 4  # pattern types, after ANY
DENY, ALLOW = 2, 3
WILDCARD, EVERY_USER = "*", "User:*"
_KIND = "acl"
_REMEMBERED = 10_000  # cached decisions
_IMPLIED_BY = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}
_KINDS = (TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID)
FORBIDDEN = {
    TOPIC: codes.TopicAuthorizationFailedError,
    GROUP: codes.GroupAuthorizationFailedError,
    CLUSTER: codes.ClusterAuthorizationFailedError,
    TRANSACTIONAL_ID: codes.TransactionalIdAuthorizationFailedError,
}
_WORDS = {TOPIC: "topic", GROUP: "group", CLUSTER: "cluster", TRANSACTIONAL_ID: "transactional id"}


class Acl(NamedTuple):
    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def check(self):
        """Raise Refusal if the ACL is invalid."""
        why_not = None
        if self.resource not in _KINDS:
            why_not = f"ACLs are of topics, groups, transactional ids and the cluster, not of resource type {self.resource}."
        elif self.pattern not in (LITERAL, PREFIXED):
            why_not = "An ACL's pattern is literal or prefixed."
        elif not self.name:
            why_not = "An ACL names a resource."
        elif self.resource == CLUSTER and self.name != CLUSTER_NAME:
            why_not = f"The only name of a cluster is {CLUSTER_NAME}."
        elif self.operation != ALL and self.operation not in operations_on(self.resource):
            why_not = f"There is no operation {self.operation} on resource type {self.resource}."
        elif self.permission not in (DENY, ALLOW):
            why_not = "An ACL allows or denies."
        elif not self.principal.partition(":")[2]:
            why_not = f"'{self.principal}' is not a principal: write User:name."
        if why_not:
            raise Refusal(codes.InvalidRequestError, why_not)

    def is_about(self, resource, name):
        if self.resource != resource:
            return False
        return name.startswith(self.name) if self.pattern == PREFIXED else self.name in (name, WILDCARD)

    def is_for(self, principal, host):
        return self.principal in (principal, EVERY_USER) and self.host in (host, WILDCARD)


class AclFilter(NamedTuple):
    """A filter with Acl's fields; ANY or None matches everything."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def takes(self, acl):
        rest = ((self.resource, acl.resource), (self.operation, acl.operation), (self.permission, acl.permission))
        if any(wanted not in (ANY, found) for wanted, found in rest):
            return False
        if any(wanted not in (None, found) for wanted, found in ((self.principal, acl.principal), (self.host, acl.host))):
            return False
        if self.pattern == MATCH:  # every ACL that applies to this name
            return self.name is None or acl.is_about(acl.resource, self.name)
        return self.pattern in (ANY, acl.pattern) and self.name in (None, acl.name)


class Acls:
    """All ACLs, in memory and in the store. Owned by one thread."""

    def __init__(self, store):
        self._store = store
        self._acls = {Acl(*body) for body in store.documents(_KIND).values()}
        self.changes = 0

    def __iter__(self):
        return iter(sorted(self._acls))

    def add(self, acl):
        acl.check()
        if acl not in self._acls:
            self._store.save_document(_KIND, json.dumps(acl), acl)
            self._acls.add(acl)
            self.changes += 1

    def remove(self, wanted):
        """Remove the ACLs that match a filter; return them."""
        found = [acl for acl in self if wanted.takes(acl)]
        for acl in found:
            self._store.delete_document(_KIND, json.dumps(acl))
            self._acls.discard(acl)
            self.changes += 1
        return found


class Authorizer:
    """Authorize requests. Without `is_on`, everything is allowed."""

    def __init__(self, acls, is_on=False, super_users=(), open_without_acls=False):
        self.acls = acls
        self.is_on = is_on
        self._super_users = frozenset(super_users)
        self._open = open_without_acls
        self._decided, self._decided_at = {}, 0  # decisions since the ACLs last changed

    def allows(self, principal, host, operation, resource, name):
        if not self.is_on or principal in self._super_users:
            return True
        if self._decided_at != self.acls.changes or len(self._decided) > _REMEMBERED:
            self._decided, self._decided_at = {}, self.acls.changes
        asked = principal, host, operation, resource, name
        found = self._decided.get(asked)
        if found is None:
            found = self._decided[asked] = self._decide(*asked)
        return found

    def _decide(self, principal, host, operation, resource, name):
        about = [acl for acl in self.acls if acl.is_about(resource, name)]
        if not about:
            return self._open
        mine = [acl for acl in about if acl.is_for(principal, host)]
        if any(acl.permission == DENY and acl.operation in (operation, ALL) for acl in mine):
            return False
        enough = (operation, ALL, *_IMPLIED_BY.get(operation, ()))
        return any(acl.permission == ALLOW and acl.operation in enough for acl in mine)

    def allows_some(self, principal, host, operation, resource):
        """Whether the operation is allowed on any resource of this type: checked before a producer names topics."""
        if not self.is_on or principal in self._super_users or self._open:
            return True
        mine = [acl for acl in self.acls if acl.resource == resource and acl.is_for(principal, host) and acl.operation in (operation, ALL)]
        if any(acl.permission == DENY and acl.name == WILDCARD for acl in mine):
            return False
        denied = [acl for acl in mine if acl.permission == DENY]
        return any(
            acl.permission == ALLOW and not any(deny.pattern == PREFIXED and acl.name.startswith(deny.name) or deny[:3] == acl[:3] for deny in denied)
            for acl in mine
        )

    def require(self, principal, host, operation, resource, name):
        """Raise Refusal, with Kafka's error code for the resource type, if it is not allowed."""
        if not self.allows(principal, host, operation, resource, name):
            raise Refusal(FORBIDDEN[resource], f"{principal} may not do this with {_WORDS[resource]} '{name}'.")
