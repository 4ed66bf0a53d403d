"""A search server that a test plays: it stores documents by their versions, and answers bulk requests as the test says.

    with FakeSearch() as server:
        server.answers = [status_of(429), …]      one a bulk request, in order; then all is taken
"""

import contextlib
import http.server
import json
import ssl
import threading

from tests.suite.patience import PATIENCE_SECONDS


class FakeSearch:
    def __init__(self, about=None, identity=None):
        self._identity = identity  # the path of a key and its certificate, for TLS
        self.about = {"version": {"number": "8.1.0"}} if about is None else about
        self.answers = []
        self.bulks = []  # bodies of bulk requests as (action, document or None) pairs
        self.headers = []  # of each request
        self.paths = []
        self.documents = {}  # id -> document
        self.versions = {}
        self.most_at_once = 0
        self.hold = threading.Event()  # while it is clear, bulk requests are not answered
        self.hold.set()
        self._now = 0
        self._lock = threading.Lock()

    def __enter__(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                with contextlib.suppress(ConnectionError):
                    super().handle_one_request()

            def log_message(self, *_):
                pass

            def _any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fake.headers.append({name.title(): value for name, value in self.headers.items()})
                fake.paths.append(self.path)
                answer = fake.answer(self.command, self.path, body)
                if answer is None:
                    self.close_connection = True  # it goes away in the middle of an answer
                    return self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                status, said = answer
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_HEAD = _any

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if self._identity is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._identity)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.port = self._server.server_address[1]
        self.url = f"http{'s' if self._identity else ''}://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_):
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method, path, body):
        if "/_bulk" in path:
            return self._bulk(body)
        if method == "GET" and path.endswith("/"):  # to a proxy it is a whole address
            return (200, self.about) if isinstance(self.about, dict) else self.about
        return 200, {}

    def _bulk(self, body):
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        self.hold.wait(PATIENCE_SECONDS)
        with self._lock:
            self._now -= 1
            actions = parsed(body)
            self.bulks.append(actions)
            said = self.answers.pop(0) if self.answers else None
            return said(self, actions) if said else self.take(actions)

    def take(self, actions):
        items = [self.apply(*action) for action in actions]
        return 200, {"errors": any("error" in next(iter(item.values())) for item in items), "items": items}

    def apply(self, action, about, document):
        version = about.get("version")
        if version is not None:
            if self.versions.get(about["_id"], -1) >= version:
                return refused(action, 409, "version_conflict_engine_exception")
            self.versions[about["_id"]] = version
        if action == "delete":
            self.documents.pop(about["_id"], None)
        elif action == "update":
            self.documents.setdefault(about["_id"], {}).update(document["doc"])
        else:
            self.documents[about["_id"]] = document
        return {action: {"status": 200}}


def parsed(body):
    """[(action, what is beside it, the document or None)]"""
    lines = [json.loads(line) for line in body.splitlines()]
    found = []
    while lines:
        ((action, about),) = lines.pop(0).items()
        found.append((action, about, None if action == "delete" else lines.pop(0)))
    return found


def refused(action, status, kind):
    return {action: {"status": status, "error": {"type": kind, "reason": f"because of {kind}"}}}


def whole(status, kind="some_exception"):
    """An answer to a whole request."""
    return lambda fake, actions: (status, {"error": {"type": kind, "reason": f"because of {kind}"}, "status": status})


def gone(fake, actions):
    """No answer."""
    return None


def taken_and_gone(fake, actions):
    """All is stored, and the answer never comes."""
    fake.take(actions)
    return None


def some(kinds):
    """Of these ids an error, {id: (status, kind)}; the others are taken."""

    def answer(fake, actions):
        items = [refused(each[0], *kinds[each[1]["_id"]]) if each[1]["_id"] in kinds else fake.apply(*each) for each in actions]
        return 200, {"errors": True, "items": items}

    return answer
