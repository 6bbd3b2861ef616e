"""Steps of a toy engine with continuous batching, from its process to the joules of each request."""

import csv
import datetime
import http.server
import io
import itertools
import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import types
import urllib.error
import urllib.parse
import urllib.request

import pytest

import jouleprof
from jouleprof import serving
from jouleprof.serving import _engine, _spool

TOOL = os.environ.get("JOULEPROF_TOOL", "")
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL), reason="JOULEPROF_TOOL is not built")

SQUARE = {"generation": "hopper", "idle_watts": 100,
          "power": {"shape": "square", "low_watts": 100, "high_watts": 600, "period_seconds": 1.0}}

ENGINE = """
import time
from jouleprof.serving import Recorder, Share

class Listener:
    def on_request(self, number, request): pass
    def on_step(self, begin, end, shares): self.shares = list(shares)
    def on_finish(self, number, request): print("finished", request.id, request.tokens_out, flush=True)

time.sleep(0.7)
with Recorder(model="toy") as recorder:
    listener = Listener()
    recorder.listen(listener)
    for batch in range(4):
        names = [f"r{batch}-{i}" for i in range(3)]
        numbers = [recorder.request(n, tenant="even" if i % 2 == 0 else "odd", prefix_of=names[0] if i else None)
                   for i, n in enumerate(names)]
        for step in range(12):
            begin = recorder.now()
            time.sleep(0.02)
            shares = [Share(n, tokens=100 + 50 * i if step == 0 else 2, context=100 * bool(step) + step,
                            cached=10 if step == 0 and i else 0, rejected=int(step > 0),
                            recomputed=0, prefill=int(step == 0)) for i, n in enumerate(numbers)]
            recorder.step(begin, recorder.now(), shares)
        for name in names:
            recorder.finish(name, tokens_in=100, tokens_out=12)
        time.sleep(0.3)
    assert recorder.is_recorded and recorder.lost == (0, 0), recorder.lost
time.sleep(0.5)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    (folder / "engine.py").write_text(ENGINE)
    (folder / "scenario.json").write_text(json.dumps({"devices": [SQUARE]}))
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"],
                   "JOULEPROF_NVML_SCENARIO": str(folder / "scenario.json"), "HOME": str(folder)}
    path = folder / "toy.jprof"
    ran = subprocess.run([TOOL, "run", "--serving", "-o", path, "--", sys.executable, folder / "engine.py"],
                         env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("finished") == 12
    assert "between steps" in ran.stderr and "--by request" in ran.stderr, ran.stderr
    return path


def report(path, *arguments):
    ran = subprocess.run([TOOL, "report", path, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def microjoules(joules):
    return round(1e6 * joules)


@needs_tool
def test_parts_sum_to_the_counter(recording):
    document = json.loads(report(recording, "--by", "request", "--json"))
    assert document["schema"] == "jouleprof.requests/1" and document["simulated"]
    (board,) = document["boards"]
    parts = ("idle_joules", "between_joules", "requests_joules", "unattributed_joules")
    assert sum(microjoules(board[part]) for part in parts) == microjoules(board["energy_joules"])
    requests = sum(microjoules(r["energy_joules"]) for r in document["requests"])
    assert requests == microjoules(board["requests_joules"]) > 0
    assert requests == sum(microjoules(t["energy_joules"]) for t in document["tenants"])
    assert board["steps"] == 48
    for r in document["requests"]:
        assert microjoules(r["prefill_joules"]) + microjoules(r["decode_joules"]) == microjoules(r["energy_joules"])
        assert r["interval_joules"][0] <= r["energy_joules"] <= r["interval_joules"][1]
        assert r["marginal_joules"] <= r["energy_joules"]
        assert (r["steps"], r["tokens_out"], r["shared_with"]) == (12, 12, 2.0)


@needs_tool
def test_a_part_has_its_own_requests(recording):
    document = json.loads(report(recording, "--by", "request", "--json"))
    first = [r for r in document["requests"] if r["request"].startswith("r1-")]
    text = json.loads(report(recording, "--json"))["start_time"]
    started = datetime.datetime.fromisoformat(text[:23] + "+00:00")
    begin = 1e-9 * first[0]["arrival_unix_nanoseconds"] - started.timestamp()
    part = json.loads(report(recording, "--by", "request", "--json", "--from", f"{begin + 0.05:f}s",
                             "--to", f"{begin + 0.15:f}s"))
    assert 0 < len(part["requests"]) < len(document["requests"])
    assert sum(t["requests"] for t in part["tenants"]) == len(part["requests"])
    for r in part["requests"]:
        assert r["energy_joules"] > 0 and r["joules_per_token"] is None  # each has 0.24 s
    assert all(t["joules_per_token"] is None for t in part["tenants"])
    assert all(r["joules_per_token"] for r in first)
    ran = subprocess.run([TOOL, "report", recording, "--by", "request", "--to", "0.1s"], capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 4 and "no request was served in this part" in ran.stderr


@needs_tool
def test_a_reuser_of_the_cache_names_the_filler(recording):
    rows = {r.request: r for r in serving.read_requests(recording)}
    assert len(rows) == 12 and all(not r.provisional and r.simulated for r in rows.values())
    assert rows["r0-1"].prefix_of == "r0-0" and rows["r0-1"].tokens_cached == 10
    assert rows["r0-0"].prefix_of is None and rows["r0-0"].tokens_cached == 0
    assert rows["r1-2"].rejected_joules > 0 and rows["r1-2"].recomputed_joules == 0
    assert "rest and held" in str(rows["r0-0"]) and str(rows["r0-0"]).endswith("SIMULATED")
    small = dataclasses.replace(rows["r0-0"], energy_joules=0.0412, interval_joules=(0.036, 0.0471), prefill_joules=0.0061,
                                decode_joules=0.0351)
    assert str(small).startswith("41.20 mJ [36.00 mJ, 47.10 mJ]: prefill 6.100 mJ, decode 35.10 mJ; ")  # and not 0.0 J
    attributes = rows["r0-0"].span_attributes()
    assert attributes["jouleprof.request.energy_joules"] == rows["r0-0"].energy_joules
    assert attributes["gen_ai.usage.output_tokens"] == 12
    json.dumps(rows["r0-0"].to_dict())


@needs_tool
def test_tables(recording):
    text = report(recording, "--by", "tenant")
    assert "even" in text and "odd" in text and "unattributed" in text
    assert "r3-0" in report(recording, "--by", "request", "--top", "12")
    rows = list(csv.DictReader(io.StringIO(report(recording, "--by", "request", "--csv"))))
    assert len(rows) == 12 and {r["tenant"] for r in rows} == {"even", "odd"}


def data_of_page(recording, path, *arguments):
    subprocess.run([TOOL, "report", recording, "--html", path, *arguments], check=True, capture_output=True)
    return json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', path.read_text(), re.S)[1])


@needs_tool
def test_the_page_has_the_requests(recording, tmp_path):
    found = data_of_page(recording, tmp_path / "page.html")["serving"]
    document = json.loads(report(recording, "--by", "request", "--json"))
    rows = [dict(zip(found["requests"]["keys"], row)) for row in found["requests"]["rows"]]
    assert sorted(rows, key=lambda r: r["request"]) == sorted(document["requests"], key=lambda r: r["request"])
    energies = [r["energy_joules"] for r in rows]
    assert energies == sorted(energies, reverse=True) and found["requests_left_out"] == 0
    assert found["boards"] == document["boards"] and found["tenants"] == document["tenants"]

    hidden = data_of_page(recording, tmp_path / "hidden.html", "--redact")["serving"]
    assert {t["tenant"] for t in hidden["tenants"]} == {"tenant 1", "tenant 2"}
    rows = [dict(zip(hidden["requests"]["keys"], row)) for row in hidden["requests"]["rows"]]
    assert [r["request"] for r in rows] == [f"request {i}" for i in range(1, 13)]
    assert not {"toy", "even", "odd", "r0-0"} & {str(value) for r in rows for value in r.values()}
    for t in hidden["tenants"]:
        assert sum(microjoules(r["energy_joules"]) for r in rows if r["tenant"] == t["tenant"]) == \
            microjoules(t["energy_joules"])


WRONG = """
import sys, time
from jouleprof.serving import Recorder, Share

wrong = sys.argv[1]
time.sleep(0.3)
with Recorder(model="toy", devices=[] if wrong == "devices" else ["gpu0"]) as recorder:
    for n in range(10):
        number = recorder.request(f"r{n}", tenant="even" if n % 2 == 0 else "odd")
        for step in range(6):
            begin = recorder.now()
            time.sleep(0.03)
            end = recorder.now()
            if wrong == "clock" or wrong == "one" and n == 4 and step == 1:
                begin, end = time.time_ns() - (end - begin), time.time_ns()
            recorder.step(begin, end, [Share(number, tokens=1, context=9)])
        recorder.finish(f"r{n}", tokens_in=9, tokens_out=6)
        time.sleep(0.03)
time.sleep(0.3)
"""


def recorded(folder, program, argument, devices):
    (folder / "engine.py").write_text(program)
    (folder / "scenario.json").write_text(json.dumps({"devices": devices}))
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"],
                   "JOULEPROF_NVML_SCENARIO": str(folder / "scenario.json"), "HOME": str(folder)}
    ran = subprocess.run([TOOL, "run", "--serving", "-o", folder / "x.jprof", "--", sys.executable,
                          folder / "engine.py", argument], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "x.jprof"


@needs_tool
@pytest.mark.parametrize("wrong", ["devices", "clock", "one"])
def test_a_request_whose_steps_do_not_count_has_no_energy(tmp_path, wrong):
    path = recorded(tmp_path, WRONG, wrong, [SQUARE, {"generation": "hopper", "idle_watts": 70}])
    document = json.loads(report(path, "--by", "request", "--json"))
    assert document["simulated"]
    reason = "name no GPU of the recording" if wrong == "devices" else "lie outside of the recording"
    without = [r for r in document["requests"] if r["energy_joules"] is None]
    assert [r["request"] for r in without] == (["r4"] if wrong == "one" else [f"r{n}" for n in range(10)])
    for r in without:
        assert reason in r["reason"]
        assert all(value is None for name, value in r.items() if "joules" in name), r
    assert any("lie outside" in w or "name no GPU" in w for w in document["warnings"])
    assert len(document["boards"]) == (2 if wrong == "devices" else 1)
    for board in document["boards"]:
        parts = [board[part + "_joules"] for part in ("idle", "between", "requests", "unattributed")]
        assert sum(microjoules(part) for part in parts if part is not None) == microjoules(board["energy_joules"])
        assert (board["requests_joules"] is None) == (wrong != "one")
    known = sum(microjoules(r["energy_joules"]) for r in document["requests"] if r["energy_joules"] is not None)
    assert known == microjoules(document["boards"][0]["requests_joules"] or 0)
    assert sum(t["requests_without_energy"] for t in document["tenants"]) == len(without)
    text = report(path, "--by", "request")
    assert wrong == "one" or not re.search(r"(?<![\d.])0 J", text.split("\ngpu0")[0])
    assert reason in " ".join(text.split()), text
    rows = list(csv.DictReader(io.StringIO(report(path, "--by", "tenant", "--csv"))))
    assert all((row["energy_joules"] == "") == (wrong != "one") for row in rows)
    ran = subprocess.run([sys.executable, "-m", "jouleprof.serving", path, "--prometheus", tmp_path / "x.prom"],
                         capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert sum("no energy: " in line for line in lines) == len(without) and all("SIMULATED" in line for line in lines)
    metrics = (tmp_path / "x.prom").read_text()
    counted = re.findall(r'energy_joules_count\{[^}]*\} (\d+)', metrics)
    assert sum(map(int, counted)) == 10 - len(without)
    missing = re.findall(r'jouleprof_request_without_energy_total\{[^}]*\} (\d+)', metrics)
    assert sum(map(int, missing)) == len(without)
    serving.RequestMetrics().add(serving.read_requests(path)[4])
    assert "jouleprof.request.energy_joules" not in serving.read_requests(path)[4].span_attributes()


IMPOSSIBLE = """
import sys, time
from jouleprof.serving import Recorder, Share

wrong = sys.argv[1]
time.sleep(0.3)
with Recorder(model="toy") as recorder:
    for n in range(8):
        number = recorder.request(f"r{n}")
        for step in range(5):
            begin = recorder.now()
            time.sleep(0.02)
            end = recorder.now()
            recorder.step(begin, end, [Share(number, tokens=1, context=9)])
            if n == 3:
                if wrong == "rejected": recorder.step(begin, end, [Share(number, tokens=1, context=9, rejected=2)])
                if wrong == "recomputed": recorder.step(begin, end, [Share(number, tokens=1, context=9, recomputed=2)])
                if wrong == "backward": recorder.step(end, begin, [Share(number, tokens=1, context=9)])
                if wrong == "day": recorder.step(begin, end + 10**14, [Share(number, tokens=1, context=9)])
                if wrong == "list": recorder.step_of(begin, end, [number, 1, 9])
                if wrong == "bytes": recorder.step_of(begin, end, b"1" * 29)
                if wrong == "negative": recorder.step(begin, end, [Share(number, tokens=-1, context=9)])
                if wrong == "float": recorder.step(begin * 1.0, end, [Share(number, tokens=1, context=9)])
                if wrong == "far": recorder.step(1 << 70, 1 << 71, [Share(number, tokens=1, context=9)])
        recorder.finish(f"r{n}", tokens_in=9, tokens_out=5)
time.sleep(0.3)
"""


@needs_tool
@pytest.mark.parametrize("wrong", ["rejected", "recomputed", "backward", "day", "list", "bytes", "negative", "float",
                                   "far"])
def test_a_step_that_cannot_be_costs_no_other_step(tmp_path, wrong):
    path = recorded(tmp_path, IMPOSSIBLE, wrong, [SQUARE])
    document = json.loads(report(path, "--by", "request", "--json"))
    assert [(r["request"], r["steps"], r["tokens_out"]) for r in document["requests"]] == \
        [(f"r{n}", 5, 5) for n in range(8)]
    (warning,) = [w for w in document["warnings"] if "left out" in w]
    assert "5 steps cannot be" in warning, warning
    assert wrong not in ("rejected", "recomputed") or f"request r3: 2 {wrong} of 1 tokens" in warning


AGAIN = """
import os, sys, time
from jouleprof.serving import Recorder, Share

time.sleep(0.3)
recorder = Recorder(model="toy", devices=["gpu0"])

def serve(name):
    for n in range(8):
        number = recorder.request(f"{name}{n}")
        for step in range(5):
            begin = recorder.now()
            time.sleep(0.02)
            recorder.step(begin, recorder.now(), [Share(number, tokens=1 + n, context=9)])
        recorder.finish(f"{name}{n}", tokens_in=9, tokens_out=5)
    recorder.close()

if sys.argv[1] == "restarted":
    serve("before")
    serve("after")
else:
    child = os.fork()
    if child == 0:
        serve("child")
        os._exit(0)
    os.waitpid(child, 0)
time.sleep(0.3)
"""


@needs_tool
@pytest.mark.parametrize("how, names", [("restarted", ("before", "after")), ("forked", ("child",))])
def test_an_engine_that_starts_again_or_in_a_forked_process_is_recorded(tmp_path, how, names):
    document = json.loads(report(recorded(tmp_path, AGAIN, how, [SQUARE, SQUARE]), "--by", "request", "--json"))
    assert [(r["request"], r["steps"]) for r in document["requests"]] == [(f"{w}{n}", 5) for w in names for n in range(8)]
    assert all(r["energy_joules"] is not None for r in document["requests"]), document


@pytest.mark.parametrize("wrong", [{"tokens_in": -1}, {"tokens_out": -3}, {"tokens_out": 1.5}, {"at": -1},
                                   {"at": 1 << 70}])
def test_a_wrong_count_leaves_the_request_open(wrong):
    recorder = serving.Recorder()
    recorder.request("chat-7")
    with pytest.raises(jouleprof.InvalidArgument) as raised:
        recorder.finish("chat-7", **wrong)
    assert "chat-7" in str(raised.value) and repr(next(iter(wrong.values()))) in str(raised.value)
    assert list(recorder.begun) == ["chat-7"]
    recorder.finish("chat-7", tokens_in=9, tokens_out=1 << 40)
    assert not recorder.begun
    with pytest.raises(jouleprof.InvalidArgument, match="chat-8.*-5"):
        recorder.request("chat-8", arrival=-5)
    assert not recorder.begun


def test_a_step_that_cannot_be_is_named_once(capsys):
    recorder = serving.Recorder()
    number = recorder.request("chat")
    for _ in range(3):
        recorder.step(2, 1, [serving.Share(number, tokens=1, context=0)])
    heard = capsys.readouterr().err
    assert heard.count("a step cannot be") == 1 and "from 2 to 1 ns" in heard


@needs_tool
def test_metrics_of_requests(recording):
    metrics = serving.RequestMetrics()
    found = list(serving.follow_requests(recording))
    for request in found:
        metrics.add(request)
    lines = metrics.text().splitlines()
    assert 'jouleprof_request_energy_joules_count{model="toy",tenant="even"} 8' in lines
    assert 'jouleprof_request_output_tokens_total{model="toy",tenant="odd"} 48' in lines
    (board,) = json.loads(report(recording, "--by", "request", "--json"))["boards"]
    metrics.set_boards([board])
    gauges = {part: float(value) for part, value in re.findall(
        r'jouleprof_serving_joules{device="gpu0",part="(\w+)"} (\S+)', metrics.text())}
    assert sum(gauges.values()) == pytest.approx(board["energy_joules"]) and gauges["idle"] == board["idle_joules"]
    buckets = [int(line.split()[-1]) for line in lines if "_bucket" in line and "even" in line]
    assert buckets == sorted(buckets) and buckets[-1] == 8


def panels():
    board = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "grafana" / "requests.json"
    return [(panel["title"], target["expr"], target["legendFormat"])
            for panel in json.loads(board.read_text())["panels"] for target in panel["targets"]]


@needs_tool
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_each_panel_of_the_dashboard_has_figures(recording, tmp_path):
    found = serving.read_requests(recording)
    (board,) = json.loads(report(recording, "--by", "request", "--json"))["boards"]
    metrics = serving.RequestMetrics()
    scrapes = itertools.count(1)

    class Scraped(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            for request in found:  # each scrape finds twelve more of them
                metrics.add(request)
            n = next(scrapes)
            metrics.set_boards([{**board, **{key: n * board[key] for key in board if key.endswith("_joules") and board[key]}}])
            data = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with http.server.HTTPServer(("127.0.0.1", 0), Scraped) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s"}, "scrape_configs": [{"job_name": "requests", "static_configs": [
                {"targets": [f"127.0.0.1:{server.server_port}"]}]}]}))
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def ask(text):
                url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
                try:
                    with urllib.request.urlopen(url, timeout=20) as answer:
                        return json.load(answer)["data"]["result"]
                except (ConnectionError, urllib.error.URLError):
                    return []

            deadline = time.monotonic() + 60
            while not ask("count_over_time(jouleprof_request_energy_joules_count[1m]) > 5"):
                assert time.monotonic() < deadline
                time.sleep(0.3)
            values = {}
            for title, expression, legend in panels():
                series = ask(expression.replace("$__rate_interval", "15s").replace("$model", ".+"))
                assert series, title
                assert all(set(re.findall(r"{{(\w+)}}", legend)) <= set(s["metric"]) for s in series), title
                values[title] = {s["metric"].get("tenant"): float(s["value"][1]) for s in series}
        finally:
            prometheus.kill()
            prometheus.wait()
            server.shutdown()
    assert values["Share of rest and held in the GPU's energy"][None] == pytest.approx(
        board["idle_joules"] / board["energy_joules"], rel=1e-3)
    for tenant in ("even", "odd"):
        own = [r for r in found if r.tenant == tenant]
        joules = sum(r.energy_joules for r in own)
        assert values["Joules a request"][tenant] == pytest.approx(joules / len(own), rel=1e-3)
        assert values["Joules a token out"][tenant] == pytest.approx(joules / sum(r.tokens_out for r in own), rel=1e-3)


@needs_tool
def test_the_module_prints_a_line_for_each_request(recording, tmp_path):
    ran = subprocess.run([sys.executable, "-m", "jouleprof.serving", recording, "--jsonl", "-", "--prometheus",
                          tmp_path / "requests.prom"], capture_output=True, text=True, check=True)
    assert len([json.loads(line) for line in ran.stdout.splitlines()]) == 12
    written = (tmp_path / "requests.prom").read_text()
    assert "histogram" in written and 'jouleprof_serving_joules{device="gpu0",part="idle"}' in written


@needs_tool
def test_a_follower_that_is_started_again_appends_what_is_missing(recording, tmp_path):
    log = tmp_path / "requests.jsonl"
    follow = [sys.executable, "-m", "jouleprof.serving", recording, "--jsonl", log, "--prometheus", tmp_path / "m.prom"]
    subprocess.run(follow, check=True)
    whole, metrics = log.read_text(), (tmp_path / "m.prom").read_text()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 12
    log.write_text("".join(lines[:7]) + lines[7][:40])  # it was killed, or the disk was full
    subprocess.run(follow, check=True)
    again = log.read_text().splitlines(keepends=True)
    assert again == [*lines[:7], lines[7][:40] + "\n", *lines[7:]]
    assert (tmp_path / "m.prom").read_text() == metrics


@needs_tool
@pytest.mark.parametrize("option,name", [("--jsonl", "/nonexistent/log"), ("--jsonl", "/dev/full"),
                                         ("--prometheus", "/nonexistent/m.prom")])
def test_a_file_of_requests_that_cannot_be_written_is_named(recording, option, name):
    ran = subprocess.run([sys.executable, "-m", "jouleprof.serving", recording, option, name], capture_output=True,
                         text=True, check=False)
    assert ran.returncode == 1 and ran.stderr.startswith(f"jouleprof: cannot write {name}"), ran.stderr
    assert len(ran.stderr.splitlines()) == 1


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@needs_tool
def test_a_reader_that_goes_is_no_error(recording):
    running = subprocess.Popen([sys.executable, "-u", "-m", "jouleprof.serving", recording], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    running.stdout.close()
    assert running.stderr.read() == "" and running.wait(60) == 0


@needs_tool
def test_requests_are_spans(recording):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="OpenTelemetry's exporter is missing")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    before = time.time_ns() - 3600 * 10**9
    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.bodies = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = subprocess.run([sys.executable, "-m", "jouleprof.serving", recording, "--otlp",
                              f"http://127.0.0.1:{server.server_port}/v1/traces"], capture_output=True, text=True,
                             check=False)
        server.shutdown()
    assert ran.returncode == 0, ran.stderr
    spans = {}
    for body in server.bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for span in resource.scope_spans[0].spans:
                values = {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
                spans[values["gen_ai.response.id"]] = span, values
    rows = {r.request: r for r in serving.read_requests(recording)}
    assert sorted(spans) == sorted(rows)
    for name, (span, values) in spans.items():
        row = rows[name]
        assert span.name == "chat toy" and values["gen_ai.request.model"] == "toy"
        assert values["jouleprof.request.energy_joules"] == row.energy_joules
        assert values["gen_ai.usage.output_tokens"] == 12 and values["jouleprof.request.tenant"] == row.tenant
        assert before < span.start_time_unix_nano < time.time_ns()
        assert span.end_time_unix_nano - span.start_time_unix_nano == row.finish_nanoseconds - row.arrival_nanoseconds


def test_spans_need_packages_that_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(jouleprof.Unsupported, match="pip install opentelemetry-sdk"):
        serving.RequestSpans()


@needs_tool
def test_a_recording_without_requests_says_how(tmp_path):
    ran = subprocess.run([TOOL, "run", "-o", tmp_path / "plain.jprof", "--", "true"], capture_output=True, check=False)
    assert ran.returncode == 0
    with pytest.raises(jouleprof.Error, match="run --serving"):
        serving.read_requests(tmp_path / "plain.jprof")


def test_outside_of_run_only_listeners_hear():
    heard = []

    class Listener:
        def on_request(self, number, request):
            heard.append(("request", request.id))

        def on_step(self, begin, end, shares):
            heard.append(("step", list(shares)))

        def on_finish(self, number, request):
            heard.append(("finish", request.tokens_out))

    with serving.Recorder() as recorder:
        recorder.listen(Listener())
        number = recorder.request("a")
        assert recorder.request("a") == number
        recorder.step(1, 2, [serving.Share(number, 5, 0, prefill=1)])
        recorder.finish("a", tokens_out=3)
        recorder.finish("a")
        assert recorder.number("a") == number and recorder.number("b") is None
        assert recorder.request("a") != number  # another request of that name
    assert not recorder.is_recorded
    assert heard[:3] == [("request", "a"), ("step", [number, 5, 0, 0, 0, 0, 1]), ("finish", 3)]


def test_shares_follow_from_the_steps_before():
    recorder = serving.Recorder()
    a = recorder.request("a")
    asked = []

    def prompt_of(id):
        asked.append(id)
        return 100

    def shares_of(*parts, **more):
        data = recorder.shares_of(*map(list, zip(*parts)), prompt_of=prompt_of, **more)
        return [tuple(row) for row in struct.iter_unpack("<7I", data)]

    assert shares_of(("a", 40, 20)) == [(a, 40, 20, 20, 0, 0, 1)]  # 20 of the prompt were in the cache
    assert shares_of(("a", 40, 60), ("b", 100, 0)) == [(a, 40, 60, 0, 0, 0, 1), (a + 1, 100, 0, 0, 0, 0, 1)]
    assert shares_of(("a", 4, 100), rejected={"a": 3}) == [(a, 4, 100, 0, 3, 0, 0)]
    assert shares_of(("a", 1, 101), ("b", 1, 100)) == [(a, 1, 101, 0, 0, 0, 0), (a + 1, 1, 100, 0, 0, 0, 0)]
    # It lost its keys and values but for a prefix of 30: 72 tokens again, and 8 new ones.
    assert shares_of(("a", 80, 30), anew={"a"}) == [(a, 80, 30, 30, 0, 72, 1)]
    assert asked == ["a", "b"] and recorder.number("b") == a + 1
    recorder.finish("a")
    again = recorder.request("a")  # another one of that name
    assert again != a and shares_of(("a", 100, 0)) == [(again, 100, 0, 0, 0, 0, 1)]
    with pytest.raises(TypeError):
        recorder.shares_of(["a"], ["one"], [0], prompt_of=prompt_of)


def test_two_engines_of_one_recorder_keep_their_shares_apart():
    recorder = serving.Recorder()
    asked, go_on = threading.Event(), threading.Event()

    def wait(_):  # within one engine's question for a prompt, the other records a whole step
        asked.set()
        go_on.wait(10)
        return 10

    found = {}
    thread = threading.Thread(target=lambda: found.update(a=recorder.shares_of(
        ["a1", "a2", "both"], [1, 2, 3], [0, 0, 0], prompt_of=wait)))
    thread.start()
    assert asked.wait(10)
    found["b"] = recorder.shares_of(["b1", "both"], [100, 200], [0, 0], prompt_of=lambda _: 10)
    go_on.set()
    thread.join()
    shares = {name: list(struct.iter_unpack("<7I", data)) for name, data in found.items()}
    assert [share[:2] for share in shares["a"]] == [(recorder.number(n), t) for n, t in
                                                    (("a1", 1), ("a2", 2), ("both", 3))]
    assert [share[:2] for share in shares["b"]] == [(recorder.number(n), t) for n, t in (("b1", 100), ("both", 200))]


def test_what_does_not_fit_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("JOULEPROF_TRACE", str(tmp_path))
    monkeypatch.setenv("JOULEPROF_TRACE_WHAT", "serving")
    monkeypatch.setattr(_spool, "MOST_BYTES", 300)
    monkeypatch.setattr(_spool, "PERIOD", 1000)
    recorder = serving.Recorder()
    number = recorder.request("a")
    for _ in range(10):
        recorder.step(1, 2, [serving.Share(number, 1, 1)])
    steps, requests = recorder.lost
    assert 0 < steps < 10 and requests == 0
    recorder.close()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 1000


def test_a_process_may_be_killed_once_its_requests_have_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("JOULEPROF_TRACE", str(tmp_path))
    monkeypatch.setenv("JOULEPROF_TRACE_WHAT", "serving")
    monkeypatch.setattr(_spool, "PERIOD", 1000)
    recorder = serving.Recorder()
    (file,) = tmp_path.iterdir()
    for id in ("a", "b"):
        recorder.request(id)
    recorder.finish("a")
    recorder.finish("b", tokens_out=3)
    for _ in range(1000):  # a thread writes
        if b"b" in file.read_bytes()[-80:]:
            break
        time.sleep(0.01)
    else:
        pytest.fail("nothing was written")
    recorder.close()


def test_a_full_disk_ends_no_engine(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JOULEPROF_TRACE", str(tmp_path / "missing"))
    monkeypatch.setenv("JOULEPROF_TRACE_WHAT", "kernels,serving")
    with serving.Recorder() as recorder:
        recorder.request("a")
    assert "cannot be written" in capsys.readouterr().err


def test_steps_of_several_threads_are_all_written(tmp_path, monkeypatch):
    monkeypatch.setenv("JOULEPROF_TRACE", str(tmp_path))
    monkeypatch.setenv("JOULEPROF_TRACE_WHAT", "serving")
    recorder = serving.Recorder()
    threads = [threading.Thread(target=lambda: [recorder.step(1, 2, [serving.Share(0, 1, 1)]) for _ in range(100)])
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size > 400 * (29 + 28)


def test_another_version_is_refused():
    with pytest.raises(jouleprof.Unsupported, match="knows toy 5.17, and this is 5.18.0"):
        _engine.require_version("toy", "5.18.0", ("5.17",))
    with pytest.raises(jouleprof.Unsupported):
        _engine.require_version("toy", "5.170", ("5.17",))
    _engine.require_version("toy", "5.17.3+cpu", ("5.16", "5.17"))


def test_a_changed_engine_is_refused():
    def finish(identifier):
        del identifier

    with pytest.raises(jouleprof.Unsupported, match="no parameter request_id"):
        _engine.require_parameters("toy", finish, ("request_id",))
    with pytest.raises(jouleprof.Unsupported, match="has no schedule"):
        _engine.require_attributes("toy", types.SimpleNamespace(), ("schedule",))


def test_an_engine_goes_on_without_an_adapter_that_fails():
    class Engine:
        def step(self, batch):
            return len(batch)

        def free(self, name):
            return name

    def broken(self, batch):
        raise KeyError(batch[0])

    plain = Engine.step
    heard, failed = [], []
    attached = _engine.Wrapped()
    attached.on_failure = failed.append
    attached.observe(Engine, "free", after=lambda result, self, name: heard.append(result))
    attached.observe(Engine, "step", before=broken)
    assert Engine().free("a") == "a" and Engine().step(["x", "y"]) == 2
    assert failed == ["step: KeyError: 'x'"] and Engine.step is plain and not attached
    assert Engine().free("b") == "b" and heard == ["a"]


@needs_tool
def test_steps_that_end_before_the_engine_are_named(tmp_path):
    (tmp_path / "engine.py").write_text(ENGINE.replace("for batch in range(4)", "for batch in range(2)").replace(
        "    assert recorder", "    recorder.fail('KeyError: 7')\n    number = recorder.request('late')\n    assert recorder"
    ).replace("== (0, 0)", "== (0, 1)"))
    (tmp_path / "scenario.json").write_text(json.dumps({"devices": [SQUARE]}))
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"],
                   "JOULEPROF_NVML_SCENARIO": str(tmp_path / "scenario.json"), "HOME": str(tmp_path)}
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", sys.executable,
                          tmp_path / "engine.py"], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "steps were recorded in part: KeyError: 7" in " ".join(ran.stderr.split()), ran.stderr
    assert len(serving.read_requests(tmp_path / "x.jprof")) == 6
