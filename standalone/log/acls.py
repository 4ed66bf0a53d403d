"""ACLs of topics: read from one cluster, created on another. Fields hold Kafka's numeric codes, which no release changes."""

import collections

from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from standalone.log.broker_errors import raise_for

ANY = 1
TOPIC = 2
LITERAL = 3
ALL_OPERATIONS, READ, WRITE = 2, 3, 4
ALLOW = 3
SECURITY_DISABLED = 54

Acl = collections.namedtuple("Acl", "topic principal host operation permission")
Acl.__doc__ = """One rule: what a principal may or may not do with a topic, from which host."""


class Acls:
    """Topic ACLs through an Admin. Without an authorizer in the cluster, `read` returns None and `write` does nothing."""

    def __init__(self, admin):
        self._admin = admin

    def read(self):
        """Return every Acl whose resource is a topic with a literal name."""

        def attempt(cluster, timeout):
            request = DescribeAclsRequest(
                resource_type_filter=TOPIC, resource_name_filter=None, pattern_type_filter=LITERAL,
                principal_filter=None, host_filter=None, operation=ANY, permission_type=ANY,
            )  # fmt: skip
            answer = cluster.request(request, timeout=timeout)
            if answer.error_code == SECURITY_DISABLED:
                return None
            raise_for(answer.error_code, "Describing the ACLs of topics", answer.error_message)
            return [
                Acl(resource.resource_name, acl.principal, acl.host, acl.operation, acl.permission_type)
                for resource in answer.resources
                for acl in resource.acls
            ]

        return self._admin.ask(attempt)

    def write(self, acls):
        """Create ACLs; existing ones stay. Return False if the cluster has no authorizer."""
        kind = CreateAclsRequest.AclCreation
        wanted = [
            kind(
                resource_type=TOPIC, resource_name=acl.topic, resource_pattern_type=LITERAL, principal=acl.principal,
                host=acl.host, operation=acl.operation, permission_type=acl.permission,
            )
            for acl in acls
        ]  # fmt: skip

        def attempt(cluster, timeout):
            results = cluster.request(CreateAclsRequest(creations=wanted), cluster.controller(timeout), timeout).results
            for acl, result in zip(acls, results):
                if result.error_code == SECURITY_DISABLED:
                    return False
                raise_for(result.error_code, f"Creating an ACL of topic '{acl.topic}' for {acl.principal}", result.error_message)
            return True

        return self._admin.ask(attempt) if wanted else True
