"""SaslHandshake, SaslAuthenticate: authentication. The mechanisms are in logins.py.

Each handler gets the node, its call and the decoded request; it returns the response, or None if the response follows later.
"""

from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from standalone.log.broker.login_error import LoginError
from standalone.log.broker.refusal import NONE, codes

FAILED_LOGIN_SECONDS = 0.1  # delays the response to a failed login, which slows down password guessing


def handshake(node, call, request):
    """Versions 0-1. After version 0 the client sends raw tokens without request framing. Also used for re-authentication."""
    client = call.client
    mechanisms = client.listener.logins.mechanisms if client.listener.wants_login else []
    if not mechanisms:
        return SaslHandshakeResponse(version=call.version, error_code=codes.IllegalSaslStateError.errno, mechanisms=[])
    if request.mechanism not in mechanisms:
        client.exchange = None
        return SaslHandshakeResponse(version=call.version, error_code=codes.UnsupportedSaslMechanismError.errno, mechanisms=mechanisms)
    client.exchange = client.listener.logins.begin(request.mechanism)
    client.sends_tokens = call.version == 0
    return SaslHandshakeResponse(version=call.version, error_code=NONE, mechanisms=mechanisms)


def authenticate(node, call, request):
    """Versions 0-2. A login lasts as long as the connection; one by a token, as long as the token."""
    response = SaslAuthenticateResponse(version=call.version, error_code=NONE, error_message=None, auth_bytes=b"", session_lifetime_ms=0)
    if not call.client.listener.wants_login:
        response.error_code = codes.IllegalSaslStateError.errno
        return response
    try:
        response.auth_bytes = call.client.step(bytes(request.auth_bytes))
    except LoginError as error:
        response.error_code, response.error_message = codes.SaslAuthenticationFailedError.errno, str(error)
        why = f"a login that failed ({error})"
        node.timers.after(FAILED_LOGIN_SECONDS, lambda: call.answer_and_hang_up(response, why))
        return None
    if call.client.ends_ms is not None:
        response.session_lifetime_ms = max(call.client.ends_ms - node.clock.now_ms(), 1)
    return response
