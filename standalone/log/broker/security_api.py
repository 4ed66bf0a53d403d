"""DescribeAcls, CreateAcls, DeleteAcls; DescribeUserScramCredentials, AlterUserScramCredentials.

Each handler gets the node, its call and the decoded request, and returns the response. Without an authorizer
(embedded.log.authorizer.class.name) ACL requests fail with SECURITY_DISABLED, as in Kafka.
"""

from kafka.protocol.admin import (
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    DeleteAclsResponse,
    DescribeAclsResponse,
    DescribeUserScramCredentialsResponse,
)

from standalone.log.broker.acls import Acl, AclFilter
from standalone.log.broker.operations import CLUSTER
from standalone.log.broker.refusal import NONE, Refusal, codes


def _need_authorizer(node):
    if not node.authorizer.is_on:
        raise Refusal(codes.SecurityDisabledError, "The embedded log has no authorizer: set embedded.log.authorizer.class.name.")


def describe_acls(node, call, request):
    """Versions 1-3."""
    Resource = DescribeAclsResponse.DescribeAclsResource
    _need_authorizer(node)
    wanted = AclFilter(
        *(request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter),
        *(request.principal_filter, request.host_filter, request.operation, request.permission_type),
    )
    resources = {}
    for acl in node.authorizer.acls:
        if wanted.takes(acl):
            resources.setdefault(acl[:3], []).append(acl)
    described = [
        Resource(
            version=call.version,
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=[
                Resource.AclDescription(
                    version=call.version, principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
                )
                for acl in acls
            ],
        )
        for (kind, name, pattern), acls in resources.items()
    ]
    return DescribeAclsResponse(version=call.version, error_code=NONE, error_message=None, resources=described)


def create_acls(node, call, request):
    """Versions 1-3."""
    Result = CreateAclsResponse.AclCreationResult
    results = []
    for new in request.creations:
        result = Result(version=call.version, error_code=NONE, error_message=None)
        try:
            call.require(CLUSTER)
            _need_authorizer(node)
            node.authorizer.acls.add(
                Acl(
                    *(new.resource_type, new.resource_name, new.resource_pattern_type),
                    *(new.principal, new.host, new.operation, new.permission_type),
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
    for each in request.filters:
        result = Result(version=call.version, error_code=NONE, error_message=None, matching_acls=[])
        wanted = AclFilter(
            *(each.resource_type_filter, each.resource_name_filter, each.pattern_type_filter),
            *(each.principal_filter, each.host_filter, each.operation, each.permission_type),
        )
        try:
            call.require(CLUSTER)
            _need_authorizer(node)
            result.matching_acls = [
                Result.DeleteAclsMatchingAcl(
                    version=call.version,
                    error_code=NONE,
                    error_message=None,
                    resource_type=acl.resource,
                    resource_name=acl.name,
                    pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in node.authorizer.acls.remove(wanted)
            ]
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return DeleteAclsResponse(version=call.version, filter_results=results)


# --- Users


def describe_scram(node, call, request):
    """Version 0. A user's mechanisms and their iterations."""
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
    """Version 0. A user's changes apply all or not at all."""
    Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    names = list(dict.fromkeys(change.name for change in [*request.deletions, *request.upsertions]))
    results = []
    for name in names:
        result = Result(version=call.version, user=name, error_code=NONE, error_message=None)
        try:
            call.require(CLUSTER)
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
