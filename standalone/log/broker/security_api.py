"""DescribeAcls, CreateAcls, DeleteAcls; DescribeUserScramCredentials, AlterUserScramCredentials.

Each gets the node, the call it answers and the decoded request, and returns the response. The embedded log has no authorizer: ACLs are
answered with SECURITY_DISABLED, as by a Kafka without one. Users are kept and shown; the listener asks nobody for a password.
"""

from kafka.protocol.admin import (
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    DeleteAclsResponse,
    DescribeAclsResponse,
    DescribeUserScramCredentialsResponse,
)

from standalone.log.broker.refusal import NONE, Refusal, codes

_ERROR = codes.SecurityDisabledError.errno
_NO_AUTHORIZER = "The embedded log has no authorizer: everyone who reaches its listener may do everything."


def describe_acls(node, call, request):
    """Versions 1-3."""
    return DescribeAclsResponse(version=call.version, error_code=_ERROR, error_message=_NO_AUTHORIZER, resources=[])


def create_acls(node, call, request):
    """Versions 1-3."""
    Result = CreateAclsResponse.AclCreationResult
    results = [Result(version=call.version, error_code=_ERROR, error_message=_NO_AUTHORIZER) for _ in request.creations]
    return CreateAclsResponse(version=call.version, results=results)


def delete_acls(node, call, request):
    """Versions 1-3."""
    Result = DeleteAclsResponse.DeleteAclsFilterResult
    results = [
        Result(version=call.version, error_code=_ERROR, error_message=_NO_AUTHORIZER, matching_acls=[]) for _ in request.filters
    ]
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
