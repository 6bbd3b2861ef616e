"""Steps of a toy engine with continuous batching, from its process to the joules of each request."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
import types

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
def test_a_reuser_of_the_cache_names_the_filler(recording):
    rows = {r.request: r for r in serving.read_requests(recording)}
    assert len(rows) == 12 and all(not r.provisional and r.simulated for r in rows.values())
    assert rows["r0-1"].prefix_of == "r0-0" and rows["r0-1"].tokens_cached == 10
    assert rows["r0-0"].prefix_of is None and rows["r0-0"].tokens_cached == 0
    assert rows["r1-2"].rejected_joules > 0 and rows["r1-2"].recomputed_joules == 0
    assert "rest and held" in str(rows["r0-0"]) and str(rows["r0-0"]).endswith("SIMULATED")
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


@needs_tool
def test_metrics_of_requests(recording):
    metrics = serving.RequestMetrics()
    found = list(serving.follow_requests(recording))
    for request in found:
        metrics.add(request)
    lines = metrics.text().splitlines()
    assert 'jouleprof_request_energy_joules_count{model="toy",tenant="even"} 8' in lines
    assert 'jouleprof_request_output_tokens_total{model="toy",tenant="odd"} 48' in lines
    buckets = [int(line.split()[-1]) for line in lines if "_bucket" in line and "even" in line]
    assert buckets == sorted(buckets) and buckets[-1] == 8


@needs_tool
def test_the_module_prints_a_line_for_each_request(recording, tmp_path):
    ran = subprocess.run([sys.executable, "-m", "jouleprof.serving", recording, "--jsonl", "-", "--prometheus",
                          tmp_path / "requests.prom"], capture_output=True, text=True, check=True)
    assert len([json.loads(line) for line in ran.stdout.splitlines()]) == 12
    assert "histogram" in (tmp_path / "requests.prom").read_text()


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
