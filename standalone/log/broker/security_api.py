"""DescribeAcls, CreateAcls, DeleteAcls; DescribeUserScramCredentials, AlterUserScramCredentials: what Kafka's tools manage users with.

Each gets the node, the call it answers and the decoded request, and returns the response. Without embedded.log.super.users there is no
authorizer, and ACLs are answered with SECURITY_DISABLED, as by a Kafka without one.
"""

from kafka.protocol.admin import (
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    DeleteAclsResponse,
    DescribeAclsResponse,
    DescribeUserScramCredentialsResponse,
)

from standalone.log.broker.acls import ALLOW, DENY, LITERAL, PREFIXED, Acl, Filter
from standalone.log.broker.operations import ALL, IDEMPOTENT_WRITE
from standalone.log.broker.refusal import NONE, Refusal, codes

_NO_AUTHORIZER = "The embedded log has no authorizer: set embedded.log.super.users to have ACLs."


def _acls(node):
    if node.acls is None:
        raise Refusal(codes.SecurityDisabledError, _NO_AUTHORIZER)
    return node.acls


def _filter(wanted):
    return Filter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )


def describe_acls(node, call, request):
    """Versions 1-3."""
    Resource = DescribeAclsResponse.DescribeAclsResource
    try:
        found = _acls(node).find(_filter(request))
    except Refusal as refusal:
        return DescribeAclsResponse(version=call.version, error_code=refusal.code, error_message=refusal.message, resources=[])
    by_resource = {}
    for acl in found:
        by_resource.setdefault((acl.resource_type, acl.name, acl.pattern), []).append(acl)
    resources = [
        Resource(
            version=call.version,
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=[
                Resource.AclDescription(
                    version=call.version,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            ],
        )
        for (kind, name, pattern), acls in by_resource.items()
    ]
    return DescribeAclsResponse(version=call.version, error_code=NONE, error_message=None, resources=resources)


def create_acls(node, call, request):
    """Versions 1-3."""
    Result = CreateAclsResponse.AclCreationResult
    results = []
    for wanted in request.creations:
        result = Result(version=call.version, error_code=NONE, error_message=None)
        try:
            acls = _acls(node)
            known = wanted.resource_pattern_type in (LITERAL, PREFIXED) and ALL <= wanted.operation <= IDEMPOTENT_WRITE
            if not known or wanted.permission_type not in (ALLOW, DENY) or ":" not in wanted.principal or not wanted.resource_name:
                raise Refusal(codes.InvalidRequestError, "An ACL needs a resource, a principal such as User:ann, an operation and a permission.")
            acls.add(
                Acl(
                    wanted.resource_type,
                    wanted.resource_name,
                    wanted.resource_pattern_type,
                    wanted.principal,
                    wanted.host,
                    wanted.operation,
                    wanted.permission_type,
                )
            )
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return CreateAclsResponse(version=call.version, results=results)


def delete_acls(node, call, request):
    """Versions 1-3."""
    Result = DeleteAclsResponse.DeleteAclsFilterResult
    results = []
    for wanted in request.filters:
        result = Result(version=call.version, error_code=NONE, error_message=None, matching_acls=[])
        try:
            result.matching_acls = [
                Result.DeleteAclsMatchingAcl(
                    version=call.version,
                    error_code=NONE,
                    error_message=None,
                    resource_type=acl.resource_type,
                    resource_name=acl.name,
                    pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in _acls(node).remove(_filter(wanted))
            ]
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return DeleteAclsResponse(version=call.version, filter_results=results)


# --- Users


def describe_scram(node, call, request):
    """Version 0: which mechanisms a user has a password for, and with how many iterations."""
    Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    wanted = sorted(node.users.names()) if not request.users else [user.name for user in request.users]
    results = []
    for name in wanted:
        found = node.users.mechanisms(name)
        result = Result(
            version=call.version,
            user=name,
            error_code=NONE,
            error_message=None,
            credential_infos=[
                Result.CredentialInfo(version=call.version, mechanism=mechanism, iterations=iterations) for mechanism, iterations in found
            ],
        )
        if wanted.count(name) > 1:
            result.error_code, result.error_message = codes.DuplicateResourceError.errno, f"User '{name}' is named more than once."
        elif not found:
            result.error_code, result.error_message = codes.ResourceNotFoundError.errno, f"There is no user '{name}'."
        results.append(result)
    return DescribeUserScramCredentialsResponse(version=call.version, error_code=NONE, error_message=None, results=results)


def alter_scram(node, call, request):
    """Version 0: all changes of a user or none."""
    Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    names = list(dict.fromkeys(change.name for change in [*request.deletions, *request.upsertions]))
    results = []
    for name in names:
        result = Result(version=call.version, user=name, error_code=NONE, error_message=None)
        try:
            node.users.alter(
                name,
                [change.mechanism for change in request.deletions if change.name == name],
                [
                    (change.mechanism, change.iterations, bytes(change.salt), bytes(change.salted_password))
                    for change in request.upsertions
                    if change.name == name
                ],
            )
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return AlterUserScramCredentialsResponse(version=call.version, results=results)
