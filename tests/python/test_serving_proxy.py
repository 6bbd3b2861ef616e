"""The proxy between clients and servers of a toy, with the shapes of several engines' responses."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import jouleprof
from jouleprof.serving import ProvisionalEnergies, Recorder, RequestEnergy, read_requests
from jouleprof.serving._flight import SPAN, Counts, Flight, ResponseReader, TokensInFlight, counts_of
from jouleprof.serving.proxy import Proxy

TOOL = os.environ.get("JOULEPROF_TOOL", "")
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL), reason="JOULEPROF_TOOL is not built")

USAGE = {"prompt_tokens": 120, "completion_tokens": 6, "total_tokens": 126, "prompt_tokens_details": {"cached_tokens": 20}}
TIMINGS = {"cache_n": 30, "prompt_n": 90, "prompt_ms": 60.0, "predicted_n": 8, "predicted_ms": 80.0}
META = {"id": "sg-1", "prompt_tokens": 50, "completion_tokens": 4, "cached_tokens": 10, "finish_reason": {"type": "length"}}


class Upstream(BaseHTTPRequestHandler):
    """What it does follows from the model that is asked for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer({"path": self.path})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body) if body.startswith(b"{") else {}
        self.server.seen.append((dict(self.headers), asked))
        kind = asked.get("model", "plain")
        if kind == "refuse":
            return self.answer({"error": {"message": "no such model", "odd": "\u00e9"}}, 404, {"X-Odd": "kept"})
        if kind == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"half":')
            self.close_connection = True
            return None
        if kind == "fail":
            time.sleep(0.05)
            return self.answer({"error": "out of time"}, asked["status"])
        if asked.get("stream"):
            return self.stream(asked, kind)
        if kind == "silent":
            self.rfile.read(1)  # until the connection ends
            self.close_connection = True
            return None
        time.sleep(0.15)
        if kind == "llama":
            return self.answer({"id": "chatcmpl-l", "choices": [], "usage": USAGE, "timings": TIMINGS})
        if kind == "llama-changed":
            return self.answer({"id": "l", "timings": {n: v for n, v in TIMINGS.items() if n != "cache_n"}})
        if kind == "sglang":
            return self.answer({"text": "a b c d", "meta_info": META})
        return self.answer({"id": "cmpl-p", "choices": [{"text": "a"}], "usage": USAGE})

    def stream(self, asked, kind):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if kind.startswith("whole"):
            data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (
                {"id": "cmpl-s", "choices": [{"delta": {"content": "t"}}]}, {"id": "cmpl-s", "choices": [], "usage": USAGE}))
            self.send_header("Content-Length", str(len(data) + (9 if kind == "whole-cut" else 0)))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.server.streams += 1
        try:
            for i in range(200 if kind == "long" else 6):
                time.sleep(0.03)
                self.event({"id": "cmpl-s", "choices": [{"delta": {"content": f"t{i}"}}]})
                if kind == "broken" and i == 2:
                    self.close_connection = True
                    return
            if kind == "llama":
                self.event({"id": "cmpl-s", "choices": [{"delta": {}}], "timings": TIMINGS})
            elif asked.get("stream_options", {}).get("include_usage"):
                self.event({"id": "cmpl-s", "choices": [], "usage": USAGE})
            self.piece(b"data: [DONE]\n\n")
            self.piece(b"")
        except OSError:
            self.server.gone.set()

    def event(self, body):
        data = b"data: " + json.dumps(body).encode() + b"\n\n"
        self.piece(data[:11])  # an event in two pieces
        self.piece(data[11:])

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, body, status=200, headers=None):
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class Heard:
    def __init__(self):
        self.requests, self.steps, self.finished = {}, [], []

    def on_request(self, number, request):
        self.requests[number] = request

    def on_step(self, begin, end, shares):
        assert 0 < end - begin <= SPAN
        self.steps.append((begin, end, [tuple(shares[i:i + 7]) for i in range(0, len(shares), 7)]))

    def on_finish(self, number, request):
        self.finished.append(request)

    def of(self, request):
        """Its tokens: of the prompt, of the answer, cached and rejected."""
        shares = [s for _, _, step in self.steps for s in step if s[0] == request.number]
        return (sum(s[1] for s in shares if s[6]), sum(s[1] for s in shares if not s[6]), sum(s[3] for s in shares),
                sum(s[4] for s in shares))


@pytest.fixture
def upstream():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.daemon_threads = True
    server.seen, server.streams, server.gone = [], 0, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(upstream):
    recorder = Recorder(batches=False)
    heard = Heard()
    recorder.listen(heard)
    made = Proxy(("127.0.0.1", 0), f"http://127.0.0.1:{upstream.server_port}", recorder=recorder)
    made.heard = heard
    made.start()
    yield made
    made.stop()


def ask(proxy, body, path="/v1/chat/completions", method="POST", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
    response = connection.getresponse()
    return response, response.read()


def finished(proxy, count=1):
    deadline = time.monotonic() + 20
    while len(proxy.heard.finished) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(proxy.heard.finished) == count
    return proxy.heard.finished[-1]


def test_an_answer_in_one_piece(proxy):
    response, body = ask(proxy, {"model": "plain", "user": "alice"})
    assert response.status == 200 and json.loads(body)["usage"] == USAGE
    request = finished(proxy)
    assert (request.id, request.model, request.tenant) == ("cmpl-p", "plain", "alice")
    assert (request.tokens_in, request.tokens_out) == (120, 6)
    # The first token comes from the prefill.
    assert proxy.heard.of(request) == (100, 5, 20, 0)


def test_a_stream_is_counted_and_looks_as_it_was_asked_for(proxy, upstream):
    _, body = ask(proxy, {"model": "plain", "stream": True, "stream_options": {"other": 1}})
    assert upstream.seen[0][1]["stream_options"] == {"other": 1, "include_usage": True}
    assert body.count(b"data: ") == 7 and b"usage" not in body and body.endswith(b"data: [DONE]\n\n")
    request = finished(proxy)
    assert (request.tokens_in, request.tokens_out, request.id) == (120, 6, "cmpl-s")
    assert proxy.heard.of(request) == (100, 5, 20, 0)
    _, body = ask(proxy, {"model": "plain", "stream": True, "stream_options": {"include_usage": True}})
    assert body.count(b"data: ") == 8 and json.loads(body.split(b"data: ")[7])["usage"] == USAGE


def test_spans_are_shared_and_do_not_overlap(proxy):
    threads = [threading.Thread(target=ask, args=(proxy, {"model": "plain", "stream": True})) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finished(proxy, 5)
    assert [proxy.heard.of(r) for r in proxy.heard.finished] == [(100, 5, 20, 0)] * 5
    steps = proxy.heard.steps
    assert all(a[1] <= b[0] for a, b in zip(steps, steps[1:]))
    assert max(len(step) for _, _, step in steps) >= 2
    assert len({r.id for r in proxy.heard.finished}) == 5  # the toy gives all the same id


def test_llama_cpp_says_when_it_computed(proxy):
    ask(proxy, {"model": "llama"})
    request = finished(proxy)
    assert (request.tokens_in, request.tokens_out) == (120, 8)
    assert proxy.heard.of(request) == (90, 7, 30, 0)
    prefill = [(b, e) for b, e, step in proxy.heard.steps if any(s[6] and s[1] for s in step)]
    assert sum(e - b for b, e in prefill) == pytest.approx(60e6, rel=0.35)


def test_streams_of_llama_cpp_are_counted_without_asking(proxy, upstream):
    for _ in range(2):
        _, body = ask(proxy, {"model": "llama", "stream": True})
        assert body.count(b"timings") == 1
    finished(proxy, 2)
    assert [asked.get("stream_options") for _, asked in upstream.seen] == [{"include_usage": True}, None]
    assert [(r.tokens_in, r.tokens_out) for r in proxy.heard.finished] == [(120, 8)] * 2


def test_other_models_are_asked_for_their_usage_beside_llama_cpp(proxy, upstream):
    for model in ("llama", "plain"):
        ask(proxy, {"model": model, "stream": True})
    finished(proxy, 2)
    assert [asked.get("stream_options") for _, asked in upstream.seen] == [{"include_usage": True}] * 2
    assert [(r.tokens_in, r.tokens_out) for r in proxy.heard.finished] == [(120, 8), (120, 6)]


def test_a_stream_with_a_length_may_become_shorter(proxy):
    response, body = ask(proxy, {"model": "whole", "stream": True})
    assert response.status == 200 and b"usage" not in body and body.count(b"data: {") == 1
    assert finished(proxy).tokens_in == 120
    with pytest.raises(http.client.HTTPException):
        ask(proxy, {"model": "whole-cut", "stream": True})


def test_sglang(proxy):
    ask(proxy, {"model": "sglang"}, path="/generate")
    request = finished(proxy)
    assert (request.tokens_in, request.tokens_out) == (50, 4)
    assert proxy.heard.of(request) == (40, 3, 10, 0)


def test_an_engine_that_changed_is_refused(proxy, capsys):
    response, body = ask(proxy, {"model": "llama-changed"})
    assert response.status == 200 and "timings" in json.loads(body)
    assert "llama.cpp: the response has no number cache_n" in capsys.readouterr().err


@pytest.mark.parametrize("place, lacking", [("timings", "prompt_ms"), ("timings", "predicted_n"),
                                            ("meta_info", "cached_tokens"), ("meta_info", "completion_tokens")])
def test_a_field_that_is_missing_or_no_number(place, lacking):
    whole = {"timings": TIMINGS, "meta_info": META}[place]
    assert counts_of({place: whole}).tokens_in in (120, 50)
    for value in (None, "7", -1, True, float("nan")):
        with pytest.raises(jouleprof.Unsupported, match=lacking):
            counts_of({place: {**whole, lacking: value}})


def test_drafts_that_llama_cpp_rejected():
    assert counts_of({"timings": {**TIMINGS, "draft_n": 12, "draft_n_accepted": 5}}).rejected == 7
    # Of an embedding there is no answer; of no usage nothing.
    assert counts_of({"usage": {"prompt_tokens": 3}}).tokens_out is None
    assert counts_of({"usage": None}) == Counts()


def test_errors_pass_unchanged_and_have_no_energy(proxy):
    response, body = ask(proxy, {"model": "refuse"})
    assert response.status == 404 and response.headers["X-Odd"] == "kept"
    assert json.loads(body) == {"error": {"message": "no such model", "odd": "\u00e9"}}
    response, body = ask(proxy, b"no JSON")
    assert response.status == 200
    response, body = ask(proxy, b"", path="/v1/models?x=1", method="GET")
    assert json.loads(body) == {"path": "/v1/models?x=1"}
    ask(proxy, {"model": "plain"})
    assert finished(proxy).id == "cmpl-p" and len(proxy.heard.requests) == 1


def test_a_server_that_is_down(proxy, upstream):
    upstream.shutdown()
    upstream.server_close()
    response, body = ask(proxy, {"model": "plain"})
    assert response.status == 502 and "cannot be reached" in json.loads(body)["error"]["message"]


def test_a_response_that_is_cut_off(proxy):
    response, body = ask(proxy, {"model": "cut"})
    assert response.status == 502 and "cut off" in json.loads(body)["error"]["message"]
    with pytest.raises(http.client.IncompleteRead):
        ask(proxy, {"model": "broken", "stream": True})
    request = finished(proxy, 2)
    assert request.tokens_out == 3  # those that were seen


def test_a_client_that_goes_ends_the_servers_work(proxy, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "long", "stream": True}))
    response = connection.getresponse()
    assert response.read1(10)
    response.close()
    connection.sock.close()
    assert upstream.gone.wait(20)
    assert 0 < finished(proxy).tokens_out < 200


def test_a_request_that_ends_without_a_response_is_recorded(proxy, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "silent", "user": "alice"}))
    while not upstream.seen:
        time.sleep(0.02)
    connection.sock.close()
    request = finished(proxy)
    assert (request.tenant, request.tokens_in, request.tokens_out) == ("alice", 0, 0)
    begin, end = proxy.heard.steps[0][0], proxy.heard.steps[-1][1]
    assert (begin, end) == (request.arrival, request.finish)


def test_a_request_that_fails_within_the_server_is_recorded(proxy):
    for status in (503, 429, 504, 500):
        response, body = ask(proxy, {"model": "fail", "status": status})
        assert (response.status, json.loads(body)) == (status, {"error": "out of time"})
    finished(proxy, 2)
    assert [r.finish > r.arrival for r in proxy.heard.finished] == [True, True]


def test_the_id_of_an_answer_is_that_of_the_recording(proxy):
    ids = []
    for _ in range(2):  # a client that tries again
        response, _ = ask(proxy, {"model": "sglang"}, "/generate", headers={"X-Request-Id": "again"})
        ids.append(response.headers["X-Jouleprof-Request"])
    finished(proxy, 2)
    assert ids[0] == "again" != ids[1] and [r.id for r in proxy.heard.finished] == ids


def test_a_body_in_chunks_and_a_connection_that_is_kept(proxy, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for _ in range(2):
        connection.request("POST", "/v1/completions", iter([b'{"model": ', b'"plain"}']), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"})
        assert connection.getresponse().read()
    assert [asked for _, asked in upstream.seen] == [{"model": "plain"}] * 2
    with socket.create_connection(("127.0.0.1", proxy.port)) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")


def test_a_request_that_goes_on_holds_back_steps_for_two_minutes(monkeypatch):
    now = [10**12]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    heard = Heard()
    recorder = Recorder(batches=False)
    recorder.listen(heard)
    flights = TokensInFlight(recorder)
    long = flights.begin("long")
    long.first, long.chunks = now[0] + 10**9, 100
    short = flights.begin("short")
    now[0] += 10**9
    short.counts = Counts(tokens_in=10, tokens_out=5)
    flights.end(short)
    flights.flush()
    assert not heard.steps
    now[0] += 130 * 10**9
    flights.flush()
    assert [r.id for r in heard.finished] == ["short"] and heard.of(heard.finished[0]) == (10, 4, 0, 0)
    long.counts = Counts(tokens_in=50, tokens_out=200)
    flights.end(long)
    flights.flush(all=True)
    assert heard.of(heard.finished[1])[1] == 199  # in all, though a part was recorded before its end was known


def flights_at(monkeypatch, now):
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    heard = Heard()
    recorder = Recorder(batches=False)
    recorder.listen(heard)
    return TokensInFlight(recorder), heard


def test_a_request_that_fails_after_two_minutes_has_no_later_spans(monkeypatch):
    now = [10**12]
    flights, heard = flights_at(monkeypatch, now)
    failed = flights.begin("failed")
    now[0] += 130 * 10**9
    flights.flush()
    flights.abandon(failed)
    now[0] += 10**9
    later = flights.begin("later")
    later.counts = Counts(tokens_in=10, tokens_out=5)
    now[0] += 10**9
    flights.end(later)
    flights.flush()
    assert [r.id for r in heard.finished] == ["failed", "later"]
    assert max(end for _, end, shares in heard.steps if failed.number in {s[0] for s in shares}) == failed.end


def test_an_answer_that_waits_for_its_figures_has_ended(monkeypatch):
    now = [10**12]
    flights, heard = flights_at(monkeypatch, now)
    other, waits = flights.begin("other"), flights.begin("waits")
    now[0] += 10**9
    flights.end(waits)
    now[0] += 20 * 10**9
    flights.end(waits)
    flights.end(other)
    flights.flush()
    assert {r.id: r.finish - r.arrival for r in heard.finished} == {"other": 21 * 10**9, "waits": 10**9}


def energy_of(i, tokens_in, tokens_out, joules):
    zeros = dict.fromkeys(("calibration_joules", "regression_joules", "marginal_joules", "prefill_joules",
                           "decode_joules", "recomputed_joules", "rejected_joules", "idle_joules", "shared_with"), 0.0)
    return RequestEnergy(request=f"r{i}", model=None, tenant=None, pid=1, energy_joules=joules,
                         interval_joules=(0.95 * joules, 1.05 * joules), joules_per_token=None, tokens_in=tokens_in,
                         tokens_out=tokens_out, tokens_computed=0, tokens_cached=0, steps=1, prefix_of=None,
                         arrival_nanoseconds=0, finish_nanoseconds=1, **zeros)


def test_provisional_energy_is_learned_and_absent_before():
    energies = ProvisionalEnergies("none.jprof")

    def true_joules(i):
        return (0.01 * (50 + 7 * i) + 0.5 * (5 + i % 40)) * (0.9 if i % 2 else 1.1)

    rows = [energy_of(i, 50 + 7 * i, 5 + i % 40, true_joules(i)) for i in range(200)]
    energies.learn(rows[:38])
    assert energies.of(100, 10) is None
    energies.learn(rows[:100])
    inside = 0
    for i, row in enumerate(rows[100:]):
        found = energies.of(row.tokens_in, row.tokens_out)
        low, high = found["interval_joules"]
        assert found["provisional"] and low <= found["energy_joules"] <= high
        inside += low <= row.energy_joules <= high
    assert inside >= 95
    assert high / low < 2
    assert energies.wait("r7", 0).energy_joules == rows[7].energy_joules and energies.wait("r500", 0) is None
    energies.learn([*rows, energy_of("cmpl-7-0-0a1b2c3d", 1, 1, 5.0)])
    assert energies.wait("rcmpl-7", 0).energy_joules == 5.0 and energies.wait("r", 0) is None


SERVED = """
import http.client, json, sys, threading, time
sys.path.insert(0, sys.argv[1])
from http.server import ThreadingHTTPServer
import test_serving_proxy as toy

server = ThreadingHTTPServer(("127.0.0.1", 0), toy.Upstream)
server.seen, server.streams, server.gone = [], 0, threading.Event()
threading.Thread(target=server.serve_forever, daemon=True).start()

from jouleprof.serving import ProvisionalEnergies
from jouleprof.serving._spool import recording_of_run
from jouleprof.serving.proxy import Proxy
recording = recording_of_run()
assert recording is not None
proxy = Proxy(("127.0.0.1", 0), f"http://127.0.0.1:{server.server_port}", energies=ProvisionalEnergies(recording, 0.5))
proxy.start()
time.sleep(0.6)

def ask(i, **headers):
    return toy.ask(proxy, {"model": "plain", "user": "even" if i % 2 == 0 else "odd", "stream": i % 3 == 0},
                   headers={"X-Request-Id": f"q{i}", **headers})

for round in range(12):
    threads = [threading.Thread(target=ask, args=(4 * round + i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(0.1)
deadline = time.monotonic() + 30
while proxy.energies.of(1, 1) is None and time.monotonic() < deadline:
    time.sleep(0.1)
response, body = ask(100)
print("PIECE", json.dumps([dict(response.headers), json.loads(body)]))
_, body = ask(102)
print("STREAM", json.dumps([line for line in body.decode().splitlines() if line.startswith(": jouleprof")]))
proxy.stop()
time.sleep(0.6)
"""


@needs_tool
def test_a_recording_of_a_proxy(tmp_path):
    (tmp_path / "served.py").write_text(SERVED)
    (tmp_path / "scenario.json").write_text(json.dumps({"devices": [
        {"generation": "hopper", "idle_watts": 100,
         "power": {"shape": "square", "low_watts": 200, "high_watts": 600, "period_seconds": 0.7}}]}))
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"],
                   "JOULEPROF_NVML_SCENARIO": str(tmp_path / "scenario.json"), "HOME": str(tmp_path)}
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", sys.executable,
                          tmp_path / "served.py", os.path.dirname(__file__)], env=environment, cwd=tmp_path,
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if line.startswith(("PIECE", "STREAM")))
    headers, body = json.loads(said["PIECE"])
    energy = body["usage"]["jouleprof"]
    low, high = energy["interval_joules"]
    assert energy["provisional"] and energy["simulated"] and 0 <= low <= energy["energy_joules"] <= high
    assert json.loads(headers["X-Jouleprof-Energy"]) == energy and headers["X-Jouleprof-Request"]
    (comment,) = json.loads(said["STREAM"])
    assert json.loads(comment.removeprefix(": jouleprof "))["provisional"]

    made = subprocess.run([TOOL, "report", tmp_path / "x.jprof", "--by", "request", "--json"], capture_output=True,
                          text=True, check=False)
    document = json.loads(made.stdout)
    assert document["division"] == "tokens in flight" and any("no batches" in w for w in document["warnings"])
    assert len(document["requests"]) == 50 and {r["tenant"] for r in document["requests"]} == {"even", "odd"}
    (board,) = document["boards"]
    parts = ("idle_joules", "between_joules", "requests_joules", "unattributed_joules")
    assert sum(round(1e6 * board[part]) for part in parts) == round(1e6 * board["energy_joules"])
    assert board["requests_joules"] > 0
    assert all(r["marginal_joules"] is None for r in document["requests"] + document["tenants"])
    assert all(r["tokens_computed"] == 105 and r["finish_nanoseconds"] for r in document["requests"])
    text = subprocess.run([TOOL, "report", tmp_path / "x.jprof", "--by", "request"], capture_output=True, text=True,
                          check=True).stdout
    assert "division: tokens in flight" in " ".join(text.split())
    rows = read_requests(tmp_path / "x.jprof")
    assert len(rows) == 50 and "marginal" not in str(rows[0])
    assert "jouleprof.request.marginal_joules" not in rows[0].span_attributes()


def test_the_command_of_the_proxy(tmp_path):
    server = tmp_path / "server.py"
    server.write_text("import sys, time\ntime.sleep(0.5)\nsys.exit(7)\n")
    ran = subprocess.run([sys.executable, "-m", "jouleprof.serving.proxy", "--listen", "127.0.0.1:0", "--upstream",
                          "http://127.0.0.1:9", "--", sys.executable, server], capture_output=True, text=True,
                         check=False, timeout=60)
    assert ran.returncode == 7 and "nothing is recorded" in ran.stderr
    taken = socket.create_server(("127.0.0.1", 0))
    for wrong, said in ((["--upstream", "ftp://x"], "--upstream ftp://x: it is no URL of a server; give http://"),
                        (["--upstream", "http://x:99999"], "--upstream http://x:99999: it is no URL of a server"),
                        (["--upstream", "http://x", "--listen", "127.0.0.1:x"], "--listen 127.0.0.1:x: it is no address"),
                        (["--upstream", "http://x", "--listen", "foo"], "--listen foo: it is no address; give HOST:PORT"),
                        (["--upstream", "http://x", "--listen", ":70000"], "0 to 65535"),
                        (["--upstream", "http://x", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"],
                         "cannot listen")):
        ran = subprocess.run([sys.executable, "-m", "jouleprof.serving.proxy", *wrong], capture_output=True, text=True,
                             check=False, timeout=60)
        assert ran.returncode == 2 and said in ran.stderr, ran.stderr
    taken.close()


def test_no_begin_of_decoding_is_known_of_an_answer_in_one_piece():
    flight = Flight("a", "", "", 10**9, end=2 * 10**9)
    flight.counts = Counts(tokens_in=100, tokens_out=11)
    assert flight.edges(0) == (10**9, 10**9 + SPAN, 2 * 10**9)
    assert flight.until(0, 10**9 + SPAN) == (100, 0) and flight.until(0, 2 * 10**9) == (100, 10)
    flight.end = 10**9 + SPAN
    assert flight.edges(0) == (10**9, 10**9 + SPAN // 2, 10**9 + SPAN)


def read_stream(*events):
    flight = Flight("a", "", "", 0)
    reader = ResponseReader(flight)
    for event in events:
        reader.event(json.dumps(event).encode())
    return flight


def test_a_stream_of_sglang_without_its_tokenizer_shows_its_first_token():
    flight = read_stream({"output_ids": [107], "meta_info": {**META, "completion_tokens": 1}},
                         {"output_ids": [107, 4], "meta_info": {**META, "completion_tokens": 2}})
    assert flight.first is not None and flight.chunks == 2 and flight.counts == Counts(50, 10, 2)


def timed(out, cached=30):
    return {**TIMINGS, "cache_n": cached, "predicted_n": out}


def test_several_answers_of_llama_cpp_are_all_counted():
    """Shapes of llama.cpp 0.7.0: each answer ends with its own timings."""
    def chunk(index, **more):
        return {"id": "c", "choices": [{"index": index, "delta": {"content": "a"}}], **more}

    flight = read_stream(chunk(1), chunk(0), chunk(1, timings=timed(5)), chunk(0, timings=timed(3)))
    assert (flight.counts.tokens_in, flight.counts.cached, flight.counts.tokens_out, flight.answer()) == (240, 60, 8, 6)
    # With `include_usage` the timings are in events without an answer's index.
    last = {"id": "c", "choices": [], "usage": USAGE}
    flight = read_stream(chunk(1), chunk(0), {**last, "timings": timed(5)}, {**last, "timings": timed(3)})
    assert (flight.counts.tokens_in, flight.counts.tokens_out, flight.answer()) == (240, 8, 6)
    # With `timings_per_token` they grow.
    flight = read_stream(chunk(0, timings=timed(1)), chunk(0, timings=timed(2)))
    assert (flight.counts.tokens_in, flight.counts.tokens_out, flight.answer()) == (120, 2, 1)
    flight = Flight("a", "", "", 0)
    ResponseReader(flight).objects([{"index": 0, "timings": timed(5)}, {"index": 1, "timings": timed(3)}])
    assert (flight.counts.tokens_in, flight.counts.tokens_out, flight.answer()) == (240, 8, 6)
    # In one piece of OpenAI's shape there are those of the first only.
    flight = Flight("a", "", "", 0)
    ResponseReader(flight).object({"choices": [{"index": 0}, {"index": 1}], "usage": USAGE, "timings": timed(3)})
    assert flight.is_partial


def test_responses_and_messages_are_counted():
    usage = {"input_tokens": 59, "output_tokens": 8, "total_tokens": 67, "input_tokens_details": {"cached_tokens": 26}}
    assert counts_of({"object": "response", "usage": usage}) == Counts(59, 26, 8)
    flight = read_stream({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
                         {"type": "response.output_text.delta", "delta": "a"},
                         {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}})
    assert flight.counts == Counts(59, 26, 8) and flight.id == "resp_1" and flight.chunks == 1 and flight.first
    # Anthropic's input tokens are those that are not from the cache.
    whole = {"type": "message", "usage": {"cache_read_input_tokens": 58, "input_tokens": 1, "output_tokens": 8}}
    assert counts_of(whole) == Counts(59, 58, 8)
    flight = read_stream(
        {"type": "message_start", "message": {"id": "msg_1", "usage": {
            "cache_read_input_tokens": 26, "input_tokens": 38, "output_tokens": 0}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"})
    assert flight.counts == Counts(64, 26, 4) and flight.id == "msg_1" and flight.chunks == 1


def message(parts, chunks, *ends):
    events = [{"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 100, "output_tokens": 1}}}]
    for part in range(parts):
        events += [{"type": "content_block_delta", "index": part, "delta": {"type": "text_delta", "text": "a"}}] * chunks
    return read_stream(*events, *ends)


def test_parts_of_a_message_are_one_answer():
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 50}}
    flight = message(4, 1, end)  # thinking, texts, calls of tools
    assert (flight.answers, flight.tokens_out(), flight.answer()) == (1, 50, 49)


def test_a_message_that_was_not_read_to_its_end_has_the_tokens_that_came():
    flight = message(1, 200)
    assert (flight.counts.tokens_in, flight.tokens_out(), flight.answer()) == (100, 200, 199)
