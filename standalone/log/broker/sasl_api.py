"""SaslHandshake, SaslAuthenticate: how a client says who it is. The mechanisms are in logins.py.

Each gets the node, the call it answers and the decoded request; it returns the response, or None if the call is answered later.
"""

from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from standalone.log.broker.login_error import LoginError
from standalone.log.broker.refusal import NONE, codes

FAILED_LOGIN_SECONDS = 0.1  # before the answer to a login that failed: who guesses passwords has time


def handshake(node, call, request):
    """Versions 0-1. After version 0 the client sends its tokens as they are, not in requests. Again on a connection that is logged in: again."""
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
    """Versions 0-2. A login lasts as long as the connection, one by a token as long as the token."""
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
