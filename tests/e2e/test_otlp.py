"""serve --otlp: what a collector receives, read by OpenTelemetry's own messages."""

import collections
import http.server
import queue
import ssl
import subprocess
import threading
import time

import pytest

from test_serve import PATIENCE, Service, serving, wait_for

metrics_service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2",
                                      reason="opentelemetry-proto is missing (tests/requirements.txt)")
FAST = ("--otlp-interval", "1s")


class Collector:
    """Answers with `status`, and keeps what it receives."""

    def __init__(self, port=0, certificate=None):
        self.requests = queue.Queue()
        self.status, self.body, self.headers = 200, b"", {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = metrics_service.ExportMetricsServiceRequest.FromString(body)
                outer.requests.put((self.path, dict(self.headers), message))
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.port = self.server.server_port
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        return self.requests.get(timeout=PATIENCE)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


def text_of(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def metrics_of(message):
    """By name: the metric. There is one resource with one scope."""
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    assert len(found) == len(scope.metrics)
    return found


def points_of(metric):
    return [(text_of(p.attributes), p) for p in getattr(metric, metric.WhichOneof("data")).data_points]


def scraped(service):
    """Energy by domain and device, of all levels."""
    sums = collections.defaultdict(float)
    for (name, labels), value in service.samples().items():
        label = dict(labels)
        if name == "jouleprof_energy_joules_total":
            sums[label["domain"], label["device"]] += float(value)
    return sums


def test_a_collector_receives_what_metrics_has(gpu, collector):
    with serving(gpu, "--otlp", collector.url, *FAST, tick="1s") as service:
        collector.next()
        before = scraped(service)
        collector.next()  # may be of a tick before
        path, headers, message = collector.next()
        after = scraped(service)
        words = {tuple(dict(labels)[name] for name in ("domain", "device", "provenance"))
                 for name, labels in service.samples() if name == "jouleprof_energy_joules_total"}
    assert path == "/v1/metrics" and headers["Content-Type"] == "application/x-protobuf"
    resource = text_of(message.resource_metrics[0].resource.attributes)
    assert resource["service.name"] == "jouleprof" and resource["host.name"]
    found = metrics_of(message)
    energy = found["hw.energy"]
    assert energy.unit == "J" and energy.sum.is_monotonic and energy.sum.aggregation_temporality == 2
    seen = set()
    for attributes, point in points_of(energy):
        key = (attributes["jouleprof.domain"], attributes["hw.name"])
        seen.add(key)
        assert before[key] <= point.as_double <= after[key], key
        assert 0 < point.start_time_unix_nano < point.time_unix_nano
        assert (*key, attributes["jouleprof.provenance"]) in words
    assert seen == set(before)
    (attributes, power), = [p for p in points_of(found["hw.power"]) if p[0]["hw.type"] == "gpu"]
    assert power.as_double == pytest.approx(250, rel=0.01) and found["hw.power"].unit == "W"
    assert attributes["hw.id"].startswith("GPU-") and attributes["hw.model"]
    status = {(a["hw.id"], a["hw.state"]): p.as_double for a, p in points_of(found["hw.status"])}
    assert status[attributes["hw.id"], "ok"] == 1 and status[attributes["hw.id"], "failed"] == 0


def test_parts_sum_to_the_whole(gpu, collector):
    with serving(gpu, "--otlp", collector.url, *FAST, "--level", "user,job"):
        collector.next()
        *_, message = collector.next()
    found = metrics_of(message)
    assert "jouleprof.process.energy" not in found
    wholes = {a["hw.id"]: p.as_double for a, p in points_of(found["hw.energy"])}
    for family in ("user", "job"):
        parts = collections.defaultdict(float)
        names = [f"jouleprof.{family}.energy", "jouleprof.unattributed.energy", "jouleprof.rest.energy"]
        for name in names:
            for attributes, point in points_of(found[name]) if name in found else ():
                parts[attributes["hw.id"]] += point.as_double
        assert parts and parts == pytest.approx({key: wholes[key] for key in parts}, abs=1e-6)


def test_the_last_tick_is_sent_at_the_end(gpu, collector):
    service = Service(gpu, "--otlp", collector.url, "--otlp-interval", "1h").ready()
    collector.next()
    shown = scraped(service)
    service.end()
    *_, last = collector.next()
    sums = {(a["jouleprof.domain"], a["hw.name"]): p.as_double for a, p in points_of(metrics_of(last)["hw.energy"])}
    assert all(sums[key] > value for key, value in shown.items())
    assert collector.requests.empty()


def test_an_outage_is_said_once_and_loses_nothing(gpu, collector):
    port = collector.port
    collector.close()
    service = Service(gpu, "--otlp", f"http://127.0.0.1:{port}", *FAST).ready()
    begin = time.monotonic()
    first = scraped(service)
    assert time.monotonic() - begin < PATIENCE  # /metrics goes on
    time.sleep(4)
    again = Collector(port)
    *_, message = again.next()
    sums = {(a["jouleprof.domain"], a["hw.name"]): p.as_double for a, p in points_of(metrics_of(message)["hw.energy"])}
    assert all(sums[key] >= value for key, value in first.items())
    again.next()
    service.process.terminate()
    _, said = service.process.communicate(timeout=PATIENCE)
    again.close()
    lines = [line for line in said.splitlines() if "OTLP" in line]
    assert len(lines) == 2 and "Connection refused" in lines[0] and "it works again" in lines[1], said


@pytest.mark.parametrize("status,what", [(401, "it answered 401"), (503, "it answered 503")])
def test_a_refusal_is_said_with_its_reason(gpu, collector, status, what):
    collector.status = status
    service = Service(gpu, "--otlp", collector.url + "/in?key=hidden", *FAST)
    for _ in range(3):
        assert collector.next()[0] == "/in?key=hidden"
    collector.status = 200
    wait_for("a success", lambda: collector.next() and collector.next())
    service.process.terminate()
    _, said = service.process.communicate(timeout=PATIENCE)
    lines = [line for line in said.splitlines() if "OTLP" in line]
    assert len(lines) == 2 and what in lines[0], said
    assert "hidden" not in said


@pytest.mark.parametrize("status,advice", [(401, "--otlp-headers-file"), (413, "--max-series")])
def test_a_refusal_after_an_outage_is_said(gpu, collector, status, advice):
    collector.status = 503
    service = Service(gpu, "--otlp", collector.url, *FAST)
    collector.next()
    collector.status = status
    for _ in range(4):
        collector.next()
    service.process.terminate()
    _, said = service.process.communicate(timeout=PATIENCE)
    lines = [line for line in said.splitlines() if "OTLP" in line]
    assert len(lines) == 2 and "503" in lines[0] and f"it answered {status}" in lines[1], said
    assert advice in lines[1]


def test_rejected_points_are_said_once(gpu, collector):
    response = metrics_service.ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 3
    response.partial_success.error_message = "no such tenant"
    collector.body = response.SerializeToString()
    service = Service(gpu, "--otlp", collector.url, *FAST)
    for _ in range(3):
        collector.next()
    service.process.terminate()
    _, said = service.process.communicate(timeout=PATIENCE)
    assert said.count("3 points were rejected: no such tenant") == 1


def test_a_collector_that_never_answers_holds_nothing_up(gpu):
    """The port accepts connections and says nothing."""
    import socket
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(gpu, "--otlp", url, *FAST) as service:
            first = service.ticks()
            wait_for("more ticks", lambda: service.ticks() > first + 2)
            begin = time.monotonic()
            service.end()
            assert time.monotonic() - begin < PATIENCE / 2


ANSWERS = {
    # A length that was refused, with the body's begin in the same segment.
    b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 9999: "its answer is longer than 64 KiB",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n": None,
    b"SSH-2.0-OpenSSH_9.2\r\n\r\n": "its answer is not HTTP (bad version): check the port, and whether it needs https",
    b"": "it closed the connection without an answer",
}


@pytest.mark.parametrize("answer", ANSWERS, ids=["huge", "continue", "ssh", "nothing"])
def test_whatever_a_receiver_answers_it_goes_on(gpu, answer):
    import socketserver
    requests = queue.Queue()

    class Receiver(socketserver.StreamRequestHandler):
        def handle(self):
            length = 0
            for line in iter(self.rfile.readline, b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.rfile.read(length)
            requests.put(length)
            self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        service = Service(gpu, "--otlp", f"http://127.0.0.1:{receiver.server_address[1]}", *FAST)
        for _ in range(5):
            assert requests.get(timeout=PATIENCE) > 0
        service.process.terminate()
        _, said = service.process.communicate(timeout=PATIENCE)
        receiver.shutdown()
    lines = [line for line in said.splitlines() if "OTLP" in line]
    assert len(lines) == (1 if ANSWERS[answer] else 0), said
    assert not lines or ANSWERS[answer] + "; it is tried again" in lines[0]


def test_headers_come_from_a_file_and_the_environment(gpu, collector):
    gpu.environment["OTEL_EXPORTER_OTLP_HEADERS"] = "x-tenant=team%20a"
    secret = gpu.folder / "headers"
    secret.write_text("# of the collector\nAuthorization: Bearer one\n")
    with serving(gpu, "--otlp", collector.url, *FAST, "--otlp-headers-file", secret) as service:
        _, headers, _ = collector.next()
        assert headers["x-tenant"] == "team a" and headers["Authorization"] == "Bearer one"
        secret.write_text("Authorization: Bearer two\n")  # renewed
        wait_for("the new key", lambda: collector.next()[1]["Authorization"] == "Bearer two")
        command = open(f"/proc/{service.process.pid}/cmdline", "rb").read()
        assert b"Bearer" not in command


def test_tls_is_verified(gpu):
    key, certificate = gpu.folder / "key.pem", gpu.folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"],
                   check=True, capture_output=True)
    collector = Collector(certificate=(certificate, key))
    service = Service(gpu, "--otlp", collector.url, *FAST)
    wait_for("the refusal", lambda: "certificate verify failed (self-signed" in service.process.stderr.readline())
    service.process.kill()
    assert collector.requests.empty()
    for file, why in (("none.pem", "No such file or directory"), ("scenario.json", "must be a file in PEM")):
        gpu.environment["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(gpu.folder / file)
        said = gpu("serve", "--otlp", collector.url, status=2).err
        assert "cannot use the certificate" in said and file in said and why in said
    gpu.environment["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(certificate)
    with serving(gpu, "--otlp", collector.url, *FAST):
        assert wait_for("energy", lambda: "hw.energy" in metrics_of(collector.next()[2]))
    collector.close()


@pytest.mark.parametrize("arguments,what", [
    (("--otlp", "collector:4318"), "begins neither"), (("--otlp", "http://me:word@host"), "seen by all users"),
    (("--otlp", "http://:4318"), "no host"), (("--otlp", "http://host:0"), "port"),
    (("--otlp", "http://host", "--otlp-interval", "1ms"), "between 1s and 1h"),
    (("--otlp-interval", "2s"), "--otlp"),
])
def test_invalid_usage(gpu, arguments, what):
    assert what in gpu("serve", *arguments, status=2).err


def test_a_header_that_is_none_is_refused_without_its_value(gpu):
    (gpu.folder / "headers").write_text("Authorization Bearer secret\n")
    process = gpu("serve", "--otlp", "http://host", "--otlp-headers-file", "headers", status=2)
    assert "write Name: value" in process.err and "secret" not in process.err
    gpu("serve", "--otlp", "http://host", "--otlp-headers-file", "missing", status=3)
