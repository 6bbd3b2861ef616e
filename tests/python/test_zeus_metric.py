"""Energy and power in a push gateway, by the names of Zeus."""

import http.server
import re
import threading
import time

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof.zeus.metric import EnergyCumulativeCounter, EnergyHistogram, PowerGauge


class Gateway(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.pushed.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def gateway(machine):
    machine.gpus(CONSTANT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        server.pushed = []
        server.url = f"127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def values(body):
    return {name: float(value) for name, value in re.findall(r"^(\w+\{.*\}) (\S+)$", body, flags=re.M)}


def test_a_histogram_of_windows(gateway):
    metric = EnergyHistogram([], [0], gateway.url, "my job", gpu_bucket_range=[30, 120])
    slept = 0
    for seconds in (0.02, 0.25, 0.7):
        metric.begin_window('a"b', sync_execution=False)
        begin = time.monotonic()
        time.sleep(seconds)
        slept += time.monotonic() - begin
        metric.end_window('a"b', sync_execution=False)
    metric.close()
    path, body = gateway.pushed[-1]
    assert path == "/metrics/job/my%20job"
    assert "# TYPE energy_monitor_gpu_energy_joules histogram" in body
    found = values(body)
    name, labels = "energy_monitor_gpu_energy_joules", 'index="0",window="a\\"b"'
    assert [found[f'{name}_bucket{{{labels},le="{bound}"}}'] for bound in ("30.0", "120.0", "+Inf")] == [1, 2, 3]
    assert found[f"{name}_count{{{labels}}}"] == 3
    assert found[f"{name}_sum{{{labels}}}"] == pytest.approx(250 * slept, rel=0.1)
    with pytest.raises(ValueError, match="gpu_bucket_range is empty"):
        EnergyHistogram([], [0], gateway.url, "job", gpu_bucket_range=[])


def test_a_counter_never_falls_and_has_all(gateway):
    metric = EnergyCumulativeCounter([], [0], 0.2, gateway.url, "job")
    metric.begin_window("train")
    with pytest.raises(ValueError, match="open already"):
        metric.begin_window("train")
    time.sleep(1)
    metric.end_window("train")
    name = 'energy_monitor_gpu_energy_joules{index="0",window="train"}'
    found = [values(body)[name] for _, body in gateway.pushed]
    assert len(found) > 2 and found == sorted(found)
    assert found[-1] > 200
    with pytest.raises(ValueError, match="no window 'train'"):
        metric.end_window("train")


@pytest.mark.parametrize("seconds", [0.05, 0.5])
def test_a_counter_has_the_whole_window(gateway, monkeypatch, seconds):
    """And no more, where the gateway is slow."""
    metric = EnergyCumulativeCounter([], [0], 0.2, gateway.url, "job")
    push = metric._gateway.push
    monkeypatch.setattr(metric._gateway, "push", lambda families: push(families) or time.sleep(0.5))
    begin = time.monotonic()
    metric.begin_window("train")
    time.sleep(seconds)
    length = time.monotonic() - begin
    metric.end_window("train")
    (joules,) = values(gateway.pushed[-1][1]).values()
    assert joules == pytest.approx(250 * length, rel=0.1)


@pytest.mark.parametrize("kind, indices", [(EnergyCumulativeCounter, ([], [7])), (PowerGauge, ([7],))])
def test_a_gpu_that_is_not_there_is_refused_at_once(gateway, kind, indices):
    with pytest.raises(ValueError, match="7"):
        kind(*indices, 0.2, gateway.url, "job")


def test_a_gauge_of_power(gateway):
    metric = PowerGauge([0], 0.1, f"http://{gateway.url}/", "job")
    metric.begin_window("train")
    time.sleep(0.8)
    metric.end_window("train")
    path, body = gateway.pushed[-1]
    assert path == "/metrics/job/job"
    assert values(body) == {'power_monitor_gpu_power_watts{index="0",window="train"}': pytest.approx(250, rel=0.02)}


def test_a_gateway_that_is_missing_does_not_end_the_training(machine):
    from jouleprof._prometheus import Family
    from jouleprof.zeus.metric import Gateway

    with pytest.warns(RuntimeWarning, match="did not take the metrics"):
        Gateway("127.0.0.1:9", "job").push([Family("x", "gauge", "x", ())])


@pytest.mark.parametrize("period", [0, -1, "x"])
def test_a_period_of_nonsense(period):
    with pytest.raises(jouleprof.InvalidArgument, match="update_period"):
        EnergyCumulativeCounter([], None, period, "localhost:1", "job")
