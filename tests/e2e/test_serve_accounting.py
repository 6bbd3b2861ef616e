"""jouleprof serve as the accounting of record: what Prometheus makes of its counters."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from test_serve import Service, free_port, needs_pids, prometheus, serving, sums, wait_for

ALL = "process,container,pod,job,unit,user"
needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")


def scrape_config(folder, targets):
    """One job of Prometheus for each interval in seconds."""
    (folder / "prometheus.yml").write_text(json.dumps({
        "scrape_configs": [{"job_name": f"every{interval}", "scrape_interval": f"{interval}s",
                            "scrape_timeout": f"{interval}s",
                            "static_configs": [{"targets": [url.removeprefix("http://")]}]}
                           for interval, url in targets.items()]}))


def series(name, samples, **labels):
    wanted = set(labels.items())
    return [value for (found, has), value in samples.items() if found == name and wanted <= set(has)]


def gpu_total(samples, device="gpu0"):
    return sum(series("jouleprof_energy_joules_total", samples, domain="gpu", device=device))


@needs_prometheus
def test_constant_power_reads_constant(tmp_path, tool):
    """By rate() over what Grafana takes as $__rate_interval, at intervals that are no parts of the tick."""
    intervals = [int(word) for word in os.environ.get("JOULEPROF_SCRAPE_INTERVALS", "2,3").split(",")]
    # It is never at rest, so that its series stay the same.
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": 400}}]})
    services = {interval: Service(tool, "--level", "node", tick="10s") for interval in intervals}
    try:
        scrape_config(tmp_path, {interval: service.ready().url for interval, service in services.items()})
        with prometheus(tmp_path) as query:
            for interval in intervals:
                # Readings of a beat would spread over twice the longest of tick and interval.
                span = 4 * interval
                rate = f'rate(jouleprof_energy_joules_total{{job="every{interval}", domain="gpu"}}[{span}s])'
                worst = (f"max(max_over_time(abs({rate} / 400 - 1)[{max(20, 2 * interval)}s:1s]) "
                         f'and on () count_over_time({rate}[{max(20, 2 * interval)}s:1s]) >= {max(19, 2 * interval - 1)})')
                found = []

                def is_constant():
                    value = query(worst)
                    if value is not None and (not found or value != found[-1]):
                        found.append(value)
                    return value is not None and value <= 0.01

                try:
                    wait_for("a constant power", is_constant)
                except AssertionError:
                    raise AssertionError(f"every {interval} s: off by {found}") from None
                print(f"every {interval} s: {query(worst):.4%} off at most, over {max(20, 2 * interval)} s")
    finally:
        for service in services.values():
            service.process.kill()
            service.process.communicate()


@needs_pids
@needs_prometheus
def test_increase_over_a_short_job(tmp_path, tool):
    """Its series begins at zero, and stays for a while after its end."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    tool.simulate({"devices": [{
        "generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": 250},
        "processes": [{"tree": {"environment": "JOULEPROF_TEST_JOB=1"}, "sm_utilisation_ratio": 0.5}]}]})
    with serving(tool, "--job-mapping-dir", folder, "--level", "job", tick="1s") as service:
        scrape_config(tmp_path, {4: service.url})
        job = '{hpc_job="4711", domain="gpu"}'
        name = "jouleprof_job_energy_joules_total" + job
        with prometheus(tmp_path) as query:
            wait_for("two scrapes", lambda: (query('count_over_time(jouleprof_ticks_total[1m])') or 0) >= 2)
            assert query(name) is None
            # The board is the job's from here on. The driver's list of processes is read every few seconds.
            (folder / "0").write_text("4711\n")
            subprocess.run(["sleep", "15"], env={**os.environ, "JOULEPROF_TEST_JOB": "1"}, check=True)
            (folder / "0").unlink()
            wait_for("its energy", lambda: (query(name) or 0) > 500)
            wait_for("more scrapes", lambda: (query(f"count_over_time(({name} > 500)[1m:1s])") or 0) >= 25)
            assert query(f"min_over_time({name}[2m])") == 0
            counted = query(f"max_over_time({name}[2m])")
            # Increase() extrapolates to the end of its range: by at most 1.1 of some seven intervals.
            assert 0.99 * counted <= query(f"increase({name}[2m])") <= 1.2 * counted
            assert counted > 500


def test_new_series_begin_at_zero_and_sums_hold(gpu):
    """Two readers, one of them slow, while processes come and go."""
    with serving(gpu, "--level", ALL, tick="1s") as service:
        service.samples()
        before = {}
        zeros = 0
        for _ in range(9):
            for _ in range(3):
                subprocess.run(["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"], check=True)
            # Those that end before a tick are not in it, this one is.
            with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as lasting:
                try:
                    time.sleep(0.6)  # a request before that would be answered from the tick before
                    now = service.samples()
                finally:
                    lasting.kill()
            parts, wholes = sums(now)
            assert parts == wholes
            for key, value in now.items():
                name, labels = key
                if name != "jouleprof_process_energy_joules_total":
                    continue
                if any(label == "pid" for label, _ in labels) and key not in before:
                    assert not before or value == 0, key
                    zeros += bool(before)
                assert value >= before.get(key, 0), key
            before = now
        assert zeros >= 8
        assert max(series("jouleprof_new_energy_joules", now, family="process")) > 0


def test_sensors_that_appear_later_are_found(tool):
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 250}],
                   "faults": [{"kind": "driver_reload", "at_seconds": 0, "for_seconds": 6}]})
    service = Service(tool, "--no-estimates", "--level", "node", tick="1s")
    try:
        assert "gpu is not measured: " in service.process.stderr.readline()
        wait_for("the first tick", lambda: "tick" not in ready(service)[1])
        status, reasons = ready(service)
        assert status == 503 and "gpu gpu: " in reasons and "driver" in reasons
        assert not gpu_total(service.samples())
        service.ready()
        # Sensors of this machine may have a line, too.
        assert any("sensors have appeared: GPU-" in line for line in service.process.stderr)
        assert "gpu gpu0 " in service.process.stderr.readline()
        wait_for("energy", lambda: gpu_total(service.samples()) > 250)
        ticks = service.ticks()
        wait_for("the next ticks", lambda: service.ticks() > ticks)
    finally:
        service.process.kill()
        service.process.communicate()


def test_the_loss_of_the_only_board_is_the_reason(tool):
    """Until it comes back."""
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 250}],
                   "faults": [{"kind": "gpu_lost", "at_seconds": 8, "for_seconds": 12}]})
    service = Service(tool, "--no-estimates", "--level", "node", tick="1s")
    try:
        service.ready()
        wait_for("the loss", lambda: ready(service)[0] == 503)
        wait_for("its reason", lambda: "gpu gpu0: does not report any more (" in ready(service)[1])
        assert "GPU is lost" in ready(service)[1]
        wait_for("the board", lambda: ready(service)[0] == 200)
        before = gpu_total(service.samples())
        seen = set()
        wait_for("its energy", lambda: seen.update(
            dict(labels)["provenance"] for name, labels in service.samples() if name == "jouleprof_energy_joules_total")
            or gpu_total(service.samples()) > before + 500)
        assert seen == {"simulated"}  # no series began when the board came back
        service.process.send_signal(signal.SIGTERM)
        said = service.process.stderr.read()
        assert said.count("s until it reported again, by its own counter: unattributed") == 1, said
        assert "jouleprof: gpu gpu0 used " in said  # a package's CPU and DRAM have one name
        assert "two services" not in said
    finally:
        service.process.kill()
        service.process.communicate()


def ready(service):
    try:
        with urllib.request.urlopen(service.url + "/readyz", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_board_that_appears_leaves_the_others_counters(tmp_path, tool):
    board = {"generation": "hopper", "idle_watts": 250}
    tool.simulate({"devices": [board, board],
                   "faults": [{"kind": "gpu_lost", "device": 1, "at_seconds": 0, "for_seconds": 16}]})
    with serving(tool, "--no-estimates", "--level", "node", tick="1s") as service:
        wait_for("energy", lambda: gpu_total(service.samples()) > 500)
        before = service.samples()
        wait_for("the other board", lambda: gpu_total(service.samples(), "gpu1") > 0)
        after = service.samples()
        for name in ("jouleprof_ticks_total", "process_cpu_seconds_total", "jouleprof_missing_seconds_total"):
            assert after[(name, frozenset())] >= before[(name, frozenset())]
        assert gpu_total(after) >= gpu_total(before)
        # What was used while the driver was closed and opened is counted, and unattributed.
        assert series("jouleprof_gap_joules_total", after, device="gpu0")[0] > 0
        assert series("jouleprof_energy_gaps_total", after, domain="gpu", device="gpu0") == [0]
        parts, wholes = sums(after)
        assert parts == wholes


def test_the_loss_of_a_board_is_logged(tool):
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 250}],
                   "faults": [{"kind": "gpu_lost", "at_seconds": 6, "for_seconds": 30}]})
    with serving(tool, "--no-estimates", "--level", "node", tick="1s") as service:
        line = next(line for line in service.process.stderr if "does not report any more (" in line)
        assert "gpu gpu0 GPU-" in line and "lost" in line.lower()
        wait_for("the state", lambda: ready(service)[0] == 503)
        assert series("jouleprof_sensor_available", service.samples(), domain="gpu") == [0]
        board = json.loads(service.get("/api/v1/snapshot"))["devices"][0]
        assert board["energy_joules"] > 0 and not board["available"]
        assert "GPU is lost" in board["reason"]


def test_a_restart_counts_what_the_board_did(tmp_path, gpu):
    gpu.environment["JOULEPROF_NVML_EPOCH"] = str(time.time() - 100)
    state = tmp_path / "state.json"
    for end in (signal.SIGKILL, signal.SIGTERM):
        service = Service(gpu, "--state", state, "--level", "node", "--no-estimates").ready()
        wait_for("energy", lambda: gpu_total(service.samples()) > 300)
        service.process.send_signal(end)
        service.process.communicate()
        time.sleep(2)
    with serving(gpu, "--state", state, "--level", "node", "--no-estimates") as service:
        samples = wait_for("a gap", lambda: next((s for s in [service.samples()] if series(
            "jouleprof_gap_joules_total", s, device="gpu0")), None))
        gap = float(series("jouleprof_gap_joules_total", samples, domain="gpu", device="gpu0")[0])
        # 250 W: two pauses of 2 s, and the starts. The counter is a tenth of a second old at either end.
        missing = float(samples[("jouleprof_missing_seconds_total", frozenset())])
        assert gap > 2 * 2 * 250 - 100
        assert gap == pytest.approx(250 * missing, abs=4 * 0.1 * 250 + 0.2 * 250 * missing)
        assert series("jouleprof_energy_gaps_total", samples, domain="gpu", device="gpu0") == [0]
        unattributed = series("jouleprof_unattributed_energy_joules_total", samples, domain="gpu", device="gpu0")
        assert float(unattributed[0]) >= gap


def test_memory_power_is_counted_at_any_tick(gpu):
    with serving(gpu, tick="4s") as service:
        now = wait_for("some ticks", lambda: next((found for found in [json.loads(service.get("/api/v1/snapshot"))]
                                                   if found["ticks"] > 3), None))
        (memory,) = [d for d in now["devices"] if d["domain"] == "gpu_memory"]
        assert memory["energy_joules"] > 0 and memory["gaps"] == 0


def test_each_level_is_chosen(gpu):
    with serving(gpu) as service:
        names = wait_for("energy", lambda: {name for name, _ in service.samples()} if service.ticks() > 2 else None)
        families = {name.split("_")[1] for name in names if name.endswith("_energy_joules_total")}
        assert families - {"energy", "unattributed"} == {"job", "container", "user"}
        assert "_created" not in service.get("/metrics", "application/openmetrics-text")
        # The live page has all of them.
        assert set(json.loads(service.get("/api/v1/snapshot"))["families"]) == set(ALL.split(","))
