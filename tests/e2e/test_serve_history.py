"""What jouleprof serve keeps on disk."""

import os
import re
import resource
import subprocess
import time

from conftest import domain
from test_serve import FAMILIES, Service, serving, sums, wait_for

TOTAL = "jouleprof_energy_joules_total"


def gpu_energy(samples):
    return sum(v for (name, labels), v in samples.items() if name == TOTAL and ("domain", "gpu") in labels)


def value(samples, name):
    return samples[(name, frozenset())]


def test_counters_continue_after_a_crash(tmp_path, gpu):
    state = tmp_path / "kept" / "state.json"
    service = Service(gpu, "--state", state).ready()
    wait_for("energy", lambda: gpu_energy(service.samples()) > 300)
    before = service.samples()
    assert value(before, "jouleprof_missing_seconds_total") == 0
    service.process.kill()
    service.process.communicate()

    with serving(gpu, "--state", state) as again:
        after = again.samples()
        said = again.process.stderr.readline()
        assert re.match(r"jouleprof: the counters continue those of \d{4}-.*; the energy of [\d.]+ s", said)
        assert value(after, "jouleprof_missing_seconds_total") > 0
        parts, wholes = sums(after)
        assert parts == wholes
        for (name, labels), energy in before.items():
            # Processes that ended in between keep their series, and so does the killed service.
            if name.endswith("_energy_joules_total"):
                assert after[(name, labels)] >= energy, (name, labels)
        second = gpu("serve", "--listen", "127.0.0.1:0", "--state", state, status=None)
        assert second.returncode != 0 and "another jouleprof serve" in second.err


def test_no_counter_falls_whenever_it_is_killed(tmp_path, gpu):
    """At moments spread over a tick, so also while the state is written."""
    gpu.environment["JOULEPROF_NVML_EPOCH"] = str(time.time() - 100)
    state = tmp_path / "state"
    before, patches = {}, 0
    for turn in range(8):
        service = Service(gpu, "--state", state, "--level", ",".join(FAMILIES)).ready()
        try:
            begin = time.monotonic()
            while time.monotonic() < begin + 1.5 + 0.07 * turn:
                now = service.samples()
                parts, wholes = sums(now)
                assert parts == wholes
                for key, energy in now.items():
                    assert not key[0].endswith("_joules_total") or energy >= before.get(key, 0), key
                before = now
        finally:
            service.process.kill()
            service.process.communicate()
        kept = subprocess.run(["zcat", state], capture_output=True, text=True)
        patches += kept.stdout.count("\n[")
    assert patches >= 8
    assert gpu_energy(before) > 8 * 300


def test_a_full_disk_is_said_and_stops_nothing(tmp_path, gpu):
    """And its counters continue once there is room."""
    state = tmp_path / "state"
    with serving(gpu, "--state", state, "--level", "node") as service:
        wait_for("energy", lambda: gpu_energy(service.samples()) > 300)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        assert any("the counters are not kept: cannot write" in line for line in service.process.stderr)
        before = service.samples()
        wait_for("more energy", lambda: gpu_energy(service.samples()) > gpu_energy(before) + 300)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ticks = service.ticks()
        wait_for("a save", lambda: service.ticks() > ticks + 1)
        before = service.samples()
    with serving(gpu, "--state", state, "--level", "node") as service:
        assert gpu_energy(service.samples()) >= gpu_energy(before)


def test_a_damaged_state_is_named(tmp_path, gpu):
    state = tmp_path / "state.json"
    state.write_text("{")
    with serving(gpu, "--state", state) as service:
        assert "damaged" in service.process.stderr.readline()
        assert value(service.samples(), "jouleprof_missing_seconds_total") == 0


def test_a_file_of_another_kind_is_no_state(tmp_path, gpu):
    gpu("run", "--idle", "0", "-q", "-o", "x.jprof", "--", "true")
    recording = (gpu.folder / "x.jprof").read_bytes()
    os.mkfifo(gpu.folder / "pipe")
    for state, words in (("pipe", "is a pipe or a device"), ("x.jprof", "is no state of a service, and would be lost"),
                         (tmp_path, "is a folder; name a file in it")):
        done = gpu("serve", "--listen", "127.0.0.1:0", "--state", state, status=2)
        assert words in done.err
    assert (gpu.folder / "x.jprof").read_bytes() == recording


def test_recordings_are_reported(tmp_path, gpu):
    folder = tmp_path / "recordings"
    service = Service(gpu, "--record", folder).ready()
    wait_for("energy", lambda: gpu_energy(service.samples()) > 500)
    served = gpu_energy(service.samples())
    assert service.end() == 0
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".jprof")
    assert names and all(re.fullmatch(r"\d{4}-\d\d-\d\d(-\d+)?\.jprof", name) for name in names)
    assert (folder / "serve-state.json").exists()
    recorded = sum(domain(gpu.report(folder / name), "gpu")["energy_joules"] for name in names)
    assert recorded >= float(served) * 0.99  # it begins before the first tick, and ends after the last


def test_bounds_are_checked(tmp_path, gpu):
    for arguments, word in ((["--record-max-size", "1k"], "16MiB"), (["--record-max-age", "5s"], "1h"),
                            (["--record-max-size", "much"], "size")):
        done = gpu("serve", "--listen", "127.0.0.1:0", "--record", tmp_path / "r", *arguments, status=None)
        assert done.returncode == 2 and word in done.err
    done = gpu("serve", "--record-max-age", "5d", status=None)
    assert done.returncode == 2 and "--record" in done.err
