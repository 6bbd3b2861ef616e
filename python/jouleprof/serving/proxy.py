"""A proxy for servers with OpenAI's API, which shows no batches: energy is divided by the tokens in flight.

    jouleprof run --serving -o server.jprof -- \\
        python -m jouleprof.serving.proxy --listen :8000 --upstream http://127.0.0.1:8080 -- llama-server -m MODEL

Requests pass unchanged, but for `stream_options.include_usage`, which counts the tokens of a stream. With the header
X-Jouleprof-Wait: SECONDS a response waits for its final figures."""

from __future__ import annotations

import argparse
import http.client
import json
import select
import signal
import socket
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterable
from urllib.parse import SplitResult, urlsplit

from .._errors import Error, InvalidArgument, Unsupported
from ._engine import chosen_devices
from ._flight import Flight, ResponseReader, TokensInFlight
from ._recorder import Recorder
from ._requests import ProvisionalEnergies
from ._spool import recording_of_run

# OpenAI's and Anthropic's, llama.cpp's and SGLang's own.
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/completion", "/completions",
         "/chat/completions", "/responses", "/infill", "/generate")
_LAST = ("response.completed", "response.incomplete", "message_stop")  # events of streams that have no [DONE]
_FAILED = 500, 502, 504  # statuses of requests that may have computed; others refuse
MOST_BODY = 256 << 20  # bytes of a request
_PIECE = 1 << 16
# Of one connection (RFC 9110, 7.6.1); the lengths are set anew.
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
               "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "host"}


class Proxy(ThreadingHTTPServer):
    """Listens on `address` and forwards to `upstream`, a URL. start() serves from a thread of its own."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], upstream: str, *, recorder: Recorder | None = None,
                 energies: ProvisionalEnergies | None = None, tenant_header: str = "", timeout: float = 600.0) -> None:
        parts = _server_of(upstream)
        super().__init__(address, _Handler)
        self.upstream = parts
        self.upstream_timeout = timeout
        self.recorder = recorder or Recorder(devices=chosen_devices(), batches=False)
        self.flights = TokensInFlight(self.recorder)
        self.energies = energies
        self.tenant_header = tenant_header
        self.watched: dict[int, tuple[socket.socket, socket.socket]] = {}  # of each response: client, upstream
        self.lock = threading.Lock()
        self.timed: set[str] = set()  # models of llama.cpp's server, which counts its streams without being asked
        self._uncounted = False
        self._ended = threading.Event()
        self._runners = [threading.Thread(target=run, name=f"jouleprof-{name}", daemon=True)
                         for name, run in (("proxy", self.serve_forever), ("flights", self._watch))]

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        if self.energies is not None:
            self.energies.start()
        for thread in self._runners:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        self.shutdown()
        self.server_close()
        if self.energies is not None:
            self.energies.stop()
        self.flights.flush(all=True)
        self.recorder.close()

    def connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self.upstream.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.upstream.hostname or "", self.upstream.port, timeout=self.upstream_timeout)
        connection.connect()
        return connection

    def finish(self, flight: Flight) -> None:
        if flight.counts.tokens_in is None and not self._uncounted:
            self._uncounted = True
            print("jouleprof: responses without `usage`: the tokens of their prompts are not known, and the energy of "
                  "their prefill is not theirs", file=sys.stderr)
        if flight.is_partial and not self._uncounted:
            self._uncounted = True
            print("jouleprof: the server counted the tokens of one of several answers (`n`): the energy of the others is "
                  "not their request's. As streams they are counted", file=sys.stderr)
        self.flights.end(flight)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a client that has gone
            print(f"jouleprof: proxy: {type(error).__name__}: {error}", file=sys.stderr)

    def _watch(self) -> None:
        """Records spans, and ends the requests of clients that have gone: their server then stops computing."""
        while not self._ended.wait(0.25):
            self.flights.flush()
            with self.lock:
                watched = list(self.watched.values())
            for client, upstream in watched:
                try:
                    gone = bool(select.select([client], [], [], 0)[0]) and not client.recv(1, socket.MSG_PEEK)
                except (OSError, ValueError):
                    gone = True
                if gone:
                    try:
                        upstream.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy
    timeout = 600.0

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _forward(self) -> None:
        body = self._body()
        if body is None:
            return
        flight, wants_usage, body = self._begin(body)
        try:
            connection = self.server.connect()
        except OSError as error:
            self._abandon(flight)
            self._refuse(502, f"the server at {self.server.upstream.geturl()} cannot be reached: {error}")
            return
        key = id(connection)
        try:
            with self.server.lock:
                self.server.watched[key] = self.connection, connection.sock
            try:
                self._send(connection, body, tracked=flight is not None)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:  # what it computed until then is the request's
                self._refuse(502, f"the server at {self.server.upstream.geturl()} gave no response: "
                                  f"{type(error).__name__} {error}")
                return
            answered = flight if response.status == 200 else None
            if answered is None and response.status not in _FAILED:
                self._abandon(flight)
                flight = None
            self._respond(response, answered, wants_usage)
        except OSError:  # the client or the server has gone within the response
            self.close_connection = True
        finally:
            if flight is not None:
                self.server.finish(flight)
            with self.server.lock:
                self.server.watched.pop(key, None)
            connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _forward

    def _body(self) -> bytes | None:
        """Absent: it was refused."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            parts: list[bytes] = []
            length = 0
            while True:
                line = self.rfile.readline(1024).split(b";")[0].strip()
                try:
                    size = int(line, 16)
                except ValueError:
                    size = -1
                length += size
                if size < 0 or length > MOST_BODY:
                    self._refuse(400, "the chunks of the request's body cannot be read")
                    return None
                if size == 0:
                    while self.rfile.readline(_PIECE) not in (b"\r\n", b"\n", b""):  # trailers
                        pass
                    return b"".join(parts)
                parts.append(self.rfile.read(size))
                self.rfile.readline(8)
        try:
            size = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            size = -1
        if not 0 <= size <= MOST_BODY:
            self._refuse(413 if size > 0 else 400, f"the request's body may have {MOST_BODY >> 20} MiB")
            return None
        return self.rfile.read(size)

    def _begin(self, body: bytes) -> tuple[Flight | None, bool, bytes]:
        """Of requests that compute tokens. The body asks for the usage of a stream then."""
        if self.command != "POST" or self.path.split("?")[0] not in PATHS:
            return None, True, body
        try:
            asked = json.loads(body)
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return None, True, body  # what the server says of it is the client's
        tenant = self.headers.get(self.server.tenant_header, "") if self.server.tenant_header else asked.get("user")
        model = asked.get("model")
        flight = self.server.flights.begin(self.headers.get("X-Request-Id") or f"proxy-{uuid.uuid4().hex[:16]}",
                                           model=model if isinstance(model, str) else "",
                                           tenant=tenant if isinstance(tenant, str) else "")
        options = asked.get("stream_options")
        wants = bool(isinstance(options, dict) and options.get("include_usage"))
        if asked.get("stream") is True and not wants and "/v1/" in self.path and "completions" in self.path \
                and flight.asked not in self.server.timed:
            asked["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
            return flight, False, json.dumps(asked).encode()
        return flight, True, body

    def _abandon(self, flight: Flight | None) -> None:
        if flight is not None:
            self.server.flights.abandon(flight)

    def _send(self, connection: http.client.HTTPConnection, body: bytes, *, tracked: bool) -> None:
        path = self.server.upstream.path.rstrip("/") + self.path
        connection.putrequest(self.command, path, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP_BY_HOP and not (tracked and name.lower() == "accept-encoding"):
                connection.putheader(name, value)
        if tracked:
            connection.putheader("Accept-Encoding", "identity")
        if body or self.command in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)

    def _respond(self, response: http.client.HTTPResponse, flight: Flight | None, wants_usage: bool) -> None:
        if flight is None:
            self._pass(response, iter(lambda: response.read1(_PIECE), b""))
        elif response.headers.get_content_type() == "text/event-stream":
            self._pass(response, self._events(response, flight, wants_usage), changes_length=True)
        else:
            try:
                body = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._refuse(502, f"the server's response was cut off: {type(error).__name__}")
                return
            extra = {}
            try:
                found = json.loads(body)
                if isinstance(found, (dict, list)):
                    self._read(flight, found)
                    energy = self._energy(flight)
                    extra["X-Jouleprof-Request"] = flight.id
                    if energy is not None:
                        extra["X-Jouleprof-Energy"] = json.dumps(energy)
                        if isinstance(found, dict) and isinstance(found.get("usage"), dict):
                            found["usage"]["jouleprof"] = energy
                            body = json.dumps(found, ensure_ascii=False).encode()
            except ValueError:
                pass
            self._pass(response, iter((body,)), length=len(body), extra=extra)

    def _read(self, flight: Flight, found: dict[str, Any] | list[Any]) -> None:
        if "timings" in found:
            self.server.timed.add(flight.asked)
        try:
            if isinstance(found, list):
                ResponseReader(flight).objects(found)
            else:
                ResponseReader(flight).object(found)
        except Unsupported as error:
            self.server.recorder.fail(str(error))

    def _energy(self, flight: Flight) -> dict[str, Any] | None:
        self.server.finish(flight)
        if self.server.energies is None:
            return None
        try:
            seconds = min(float(self.headers.get("X-Jouleprof-Wait", 0)), 60.0)
        except ValueError:
            seconds = 0.0
        if seconds > 0:
            final = self.server.energies.wait(flight.id, seconds)
            if final is not None:
                return {name: value for name, value in final.to_dict().items()
                        if "joules" in name or name in ("simulated", "provisional")}
        if flight.counts.tokens_in is None:
            return None
        return self.server.energies.of(flight.counts.tokens_in, flight.tokens_out())

    def _events(self, response: http.client.HTTPResponse, flight: Flight, wants_usage: bool) -> Iterable[bytes]:
        """The events of a stream, each as soon as it is whole, and the energy before the last one."""
        reader = ResponseReader(flight)
        waiting = b""
        for piece in iter(lambda: response.read1(_PIECE), b""):
            waiting += piece
            out = b""
            while True:
                ends = [at + len(end) for end in (b"\n\n", b"\r\n\r\n") if (at := waiting.find(end)) >= 0]
                if not ends:
                    break
                event, waiting = waiting[:min(ends)], waiting[min(ends):]
                out += self._event(event, reader, flight, wants_usage)
            if out:
                yield out
        if waiting:
            yield waiting

    def _event(self, event: bytes, reader: ResponseReader, flight: Flight, wants_usage: bool) -> bytes:
        data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        if data == b"[DONE]":
            return self._energy_event(flight) + event
        try:
            found = reader.event(data) if data else None
        except Unsupported as error:
            self.server.recorder.fail(str(error))
            return event
        if found is not None and "timings" in found:
            self.server.timed.add(flight.asked)
        if found is not None and found.get("type") in _LAST:
            return self._energy_event(flight) + event
        only_usage = found is not None and isinstance(found.get("usage"), dict) and found.get("choices") == []
        return b"" if only_usage and not wants_usage else event

    def _energy_event(self, flight: Flight) -> bytes:
        energy = self._energy(flight)
        if energy is None:
            return b""
        return b": jouleprof " + json.dumps({"request": flight.id, **energy}).encode() + b"\n\n"

    def _pass(self, response: http.client.HTTPResponse, pieces: Iterable[bytes], *, length: int | None = None,
              extra: dict[str, str] | None = None, changes_length: bool = False) -> None:
        has_body = self.command != "HEAD" and response.status not in (204, 304) and response.status >= 200
        if not changes_length and length is None and response.length is not None \
                and response.headers.get("Content-Length"):
            length = int(response.headers["Content-Length"])
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        chunked = length is None and has_body and self.request_version == "HTTP/1.1"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif length is not None:
            self.send_header("Content-Length", str(length))
        elif has_body:
            self.close_connection = True
        self.end_headers()
        if not has_body:
            return
        try:
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        except http.client.HTTPException as error:  # cut off: so must the client's be
            raise ConnectionAbortedError(str(error)) from error
        if response.length:  # of what the server announced
            raise ConnectionAbortedError("the server's response was cut off")
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, message: str) -> None:
        body = json.dumps({"error": {"message": f"jouleprof's proxy: {message}", "type": "proxy_error", "param": None,
                                     "code": status}}).encode()
        self.close_connection = True
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _server_of(upstream: str) -> SplitResult:
    try:
        parts = urlsplit(upstream)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        known = False
    if not known:
        raise InvalidArgument(f"--upstream {upstream}: it is no URL of a server; give http://HOST:PORT or https://HOST:PORT")
    return parts


def _address_of(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidArgument(f"--listen {listen}: it is no address; give HOST:PORT with a port from 0 to 65535, as "
                              "127.0.0.1:8000")
    return host, int(port)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m jouleprof.serving.proxy", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", required=True, metavar="URL", help="the server, as http://127.0.0.1:8080")
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="HOST:PORT", help="default: 127.0.0.1:8000")
    parser.add_argument("--tenant-header", default="", metavar="NAME",
                        help="the header with a request's tenant (default: `user` of its body)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds without a byte of the server")
    parser.add_argument("--period", type=float, default=5.0, help="seconds between two looks at finished requests")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server to start; the proxy ends with it")
    given = parser.parse_args()
    recording = recording_of_run()
    try:
        host, port = _address_of(given.listen)
        proxy = Proxy((host, port), given.upstream, tenant_header=given.tenant_header, timeout=given.timeout,
                      energies=ProvisionalEnergies(recording, given.period) if recording is not None else None)
    except Error as error:
        print(f"jouleprof: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"jouleprof: the proxy cannot listen on {given.listen}: {error}", file=sys.stderr)
        return 2
    ended = threading.Event()
    child = subprocess.Popen(given.command) if given.command else None

    def end(number: int, _: Any) -> None:
        if child is not None:
            child.send_signal(number)
        else:
            ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    proxy.start()
    print(f"jouleprof: {given.upstream} by way of http://{host or '0.0.0.0'}:{proxy.port}"
          + ("" if proxy.recorder.is_recorded else "; nothing is recorded without `jouleprof run --serving`"),
          file=sys.stderr, flush=True)
    if child is not None:
        status = child.wait()
    else:
        ended.wait()
        status = 0
    proxy.stop()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
