"""A service shares its sensors with programs of the same machine."""

import glob
import os
import pwd
import socket
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from conftest import TOOL, domain
from test_serve import Service, wait_for

TABLES = {"power_reading": "at_nanoseconds", "counter_reading": "before_nanoseconds",
          "gauge_reading": "at_nanoseconds"}


@pytest.fixture
def shared(gpu):
    """A service that shares its sensors, and a tool that knows it."""
    service = Service(gpu, "--share", gpu.folder / "sampler.sock", "--record", gpu.folder / "days")
    gpu.environment["JOULEPROF_SERVICE"] = str(gpu.folder / "sampler.sock")
    gpu.service = service.ready()
    yield gpu
    stop(service)


def stop(service):
    if service.process.poll() is None:
        service.process.terminate()
    service.process.communicate(timeout=60)


def rows(path, table, order):
    """Readings by the name of their sensor."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        found = {}
        for name, in db.execute("SELECT name FROM sensor"):
            query = f"SELECT * FROM {table} WHERE sensor = (SELECT id FROM sensor WHERE name = ?) " \
                    f"ORDER BY {order}"
            found[name] = [row[1:] for row in db.execute(query, (name,))]
        return {name: values for name, values in found.items() if values}


def sensors(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute("SELECT name, kind, provenance, refresh_nanoseconds, window_nanoseconds, "
                          "lag_nanoseconds, gain_high_ratio FROM sensor ORDER BY name").fetchall()


def test_a_run_records_every_reading_of_the_service(shared):
    shared("run", "-q", "-o", "run.jprof", "--", "sleep", "2")
    stop(shared.service)
    [day] = glob.glob(str(shared.folder / "days" / "*.jprof"))
    run = shared.folder / "run.jprof"
    compared = 0
    for table, order in TABLES.items():
        theirs = rows(day, table, order)
        for name, values in rows(run, table, order).items():
            within = [r for r in theirs[name] if values[0][0] <= r[0] <= values[-1][0]]
            assert values == within, name
            compared += len(values)
    assert compared > 100
    assert sensors(run) == sensors(day)
    report = shared.report("run.jprof")
    gpu = domain(report, "gpu")
    assert gpu["provenance"] == "simulated"
    assert not [w for w in report["warnings"] if "service" in str(w)]


def test_a_run_without_the_service_has_a_sampler_of_its_own(shared):
    before = shared.service.samples()
    shared("run", "-q", "--no-service", "-o", "own.jprof", "--", "sleep", "1")
    stop(shared.service)
    [day] = glob.glob(str(shared.folder / "days" / "*.jprof"))
    theirs = rows(day, "counter_reading", "before_nanoseconds")
    own = rows(shared.folder / "own.jprof", "counter_reading", "before_nanoseconds")
    assert before and not set(own["nvmlDeviceGetTotalEnergyConsumption"]) & \
        set(theirs["nvmlDeviceGetTotalEnergyConsumption"])


def test_a_service_that_is_killed_is_replaced_and_the_gap_is_named(shared):
    run = shared.start("run", "-o", "run.jprof", "--", "sleep", "4")
    time.sleep(2.5)  # in the work or before it: both go on
    shared.service.process.kill()
    _, text = run.communicate(timeout=60)
    assert run.returncode == 0, text
    report = shared.report("run.jprof")
    warnings = [str(w) for w in report["warnings"]]
    [named] = [w for w in warnings if w.startswith("the service that shared its sensors has stopped")]
    assert "s without readings" in named
    assert domain(report, "gpu")["energy_joules"] is not None


def test_a_service_that_is_not_there_or_talks_nonsense_is_named(shared):
    shared.environment["JOULEPROF_SERVICE"] = str(shared.folder / "nothing.sock")
    text = shared("run", "--no-record", "--idle", "0s", "--", "sleep", "0.5").err
    assert "cannot connect to the service" in " ".join(text.split())
    odd = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    odd.bind(str(shared.folder / "odd.sock"))
    odd.listen()
    shared.environment["JOULEPROF_SERVICE"] = str(shared.folder / "odd.sock")
    run = shared.start("run", "--no-record", "--idle", "0s", "--", "sleep", "0.5")
    client, _ = odd.accept()
    client.send(b"\xff" * 100)
    _, text = run.communicate(timeout=60)
    odd.close()
    assert run.returncode == 0
    assert "unknown form" in " ".join(text.split())


def test_garbage_does_not_disturb_the_service(shared):
    path = str(shared.folder / "sampler.sock")
    for garbage in (b"x" * 60000, b"{", b"\0", b'{"type":"read","id":1}'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(60)
            client.connect(path)
            client.send(garbage)
            try:
                assert client.recv(65536) == b""
            except ConnectionResetError:
                pass
    ticks = shared.service.ticks()
    wait_for("a tick", lambda: shared.service.ticks() > ticks)


def test_the_socket_is_for_whom_the_administrator_says(gpu):
    group = os.getgid()
    path = gpu.folder / "sampler.sock"
    service = Service(gpu, "--share", path, "--share-group", str(group)).ready()
    about = path.stat()
    assert stat.S_IMODE(about.st_mode) == 0o660 and about.st_gid == group
    second = gpu("serve", "--listen", "127.0.0.1:0", "--share", path, status=None)
    assert second.returncode != 0 and "another service listens" in second.err
    stop(service)
    assert not path.exists()
    for option, value in (("--share-mode", "rw"), ("--share-group", "no-such-group"),
                          ("--share-fastest", "0s")):
        assert "share" in gpu("serve", "--share", path, option, value, status=2).err


def test_a_monitor_in_a_program_uses_the_service(shared):
    pytest.importorskip("jouleprof")
    code = ("import time, jouleprof\n"
            "m = jouleprof.Monitor()\n"
            "with m.window('w') as w: time.sleep(1)\n"
            "print(m.source, bool(w.gpu_energy), jouleprof.Monitor('cpu', own_sampler=True).source)\n")
    out = subprocess.run([sys.executable, "-c", code], env=shared.environment, text=True,
                         capture_output=True, timeout=120, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stdout.split() == ["service", "True", "own"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_sees_own_processes_only(gpu):
    nobody = pwd.getpwnam("nobody")
    mine, theirs = (subprocess.Popen(["sleep", "60"], user=user) for user in (nobody.pw_uid, 0))
    gpu.folder.chmod(0o755)
    for parent in gpu.folder.parents:
        if os.stat(parent).st_mode & 0o001 == 0:
            mine.kill()
            theirs.kill()
            pytest.skip(f"{parent} cannot be searched by other users")
    gpu.simulate({"devices": [{"generation": "hopper", "idle_watts": 250, "processes": [
        {"pid": mine.pid, "sm_utilisation_ratio": 0.5, "memory_mib": 100},
        {"pid": theirs.pid, "sm_utilisation_ratio": 0.25, "memory_mib": 200}]}]})
    service = Service(gpu, "--share", gpu.folder / "sampler.sock", "--share-mode", "0666").ready()
    gpu.environment["JOULEPROF_SERVICE"] = str(gpu.folder / "sampler.sock")
    out = gpu.folder / "out"
    out.mkdir()
    os.chown(out, nobody.pw_uid, nobody.pw_gid)
    subprocess.run([TOOL, "run", "-q", "-o", out / "run.jprof", "--", "sleep", "2"], check=True,
                   env=gpu.environment, user=nobody.pw_uid, group=nobody.pw_gid, timeout=60)
    stop(service)
    with sqlite3.connect(f"file:{out / 'run.jprof'}?mode=ro", uri=True) as db:
        found = dict(db.execute(
            "SELECT DISTINCT process.pid, process.name FROM gpu_process_reading "
            "JOIN process ON process.id = gpu_process_reading.process"))
    mine.kill()
    theirs.kill()
    assert found == {mine.pid: "sleep", 0: "other users"}


def mig_board(tool, loads=None):
    """Two tenants on two instances of a board that draws 400 W: three slices and one. `loads`: how busy each is."""
    without = [{"kind": "fail", "call": "nvmlGpmMigSampleGet"}]
    tenant = [{"tree": {"environment": f"TENANT={name} of {tool.folder}"}, "memory_mib": 1000, "mig": mig,
               "sm_utilisation_ratio": loads[mig] if loads else 0} for mig, name in enumerate(("one", "two"))]
    return tool.simulate({"faults": [] if loads else without, "devices": [{
        "generation": "hopper", "idle_watts": 100, "power": {"shape": "constant", "watts": 400},
        "mig": [{"profile": "3g.40gb", "gpu_instance_id": 1}, {"profile": "1g.10gb", "gpu_instance_id": 2}],
        "processes": tenant}]})


@pytest.fixture
def neighbour(tool):
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "TENANT": f"two of {tool.folder}"}) as process:
        yield process
        process.kill()


def run_on_an_instance(tool, board):
    board("run", "-q", "-o", "run.jprof", "--", "env", f"TENANT=one of {tool.folder}", "sleep", "6")
    report = tool.report("run.jprof")
    gpu = domain(report, "gpu", "gpu0")
    assert domain(report, "gpu", "gpu0:mig0")["energy_joules"] is None
    return report["warnings"], gpu["balance"], gpu["command_division_interval_joules"]


def test_instances_of_a_board_have_their_activity_times_their_slices(tool, neighbour):
    """3 slices at 0.2 and 1 at 0.9: 2 to 3 of the board's energy."""
    warnings, balance, (low, high) = run_on_an_instance(tool, mig_board(tool, (0.2, 0.9)))
    own, others = balance["processes_joules"], balance["others_joules"]
    assert own / (own + others) == pytest.approx(0.4, abs=0.08)  # it began later than its neighbour
    assert low < 0.95 * own and 1.05 * own < high < 0.9 * (own + others)
    assert any("by the activity and the slices" in text for text in warnings)


def test_an_instance_that_did_not_work_has_no_active_energy(tool, neighbour):
    _, balance, _ = run_on_an_instance(tool, mig_board(tool, (0.5, 0)))
    assert balance["others_joules"] < 0.1 * balance["processes_joules"]


def test_instances_of_a_board_have_their_slices_without_the_drivers_counters(tool, neighbour):
    warnings, balance, (low, high) = run_on_an_instance(tool, mig_board(tool))
    own, others = balance["processes_joules"], balance["others_joules"]
    assert 2 * others < own < 3.1 * others and own > 100  # it began later than its neighbour
    # Which of them worked is not known, but for a moment in which the command was not on the board yet.
    assert low < 0.1 * own and high > 0.97 * (own + others)
    assert any("MIG" in text and "ESTIMATED" in text for text in warnings)


@pytest.mark.parametrize("loads, ratio", [(None, 3), ((0.2, 0.9), 2 / 3)])
def test_a_service_divides_a_board_in_the_same_way(tool, neighbour, loads, ratio):
    service = Service(mig_board(tool, loads), "--level", "process", tick="1s")
    mine = subprocess.Popen(["sleep", "600"], env={**os.environ, "TENANT": f"one of {tool.folder}"})
    try:
        service.ready()

        def of(process):
            return sum(value for (name, labels), value in service.samples().items()
                       if name == "jouleprof_process_energy_joules_total" and ("pid", str(process.pid)) in labels
                       and ("domain", "gpu") in labels)

        wait_for("energy", lambda: of(mine) > 300)
        assert float(of(mine)) == pytest.approx(ratio * float(of(neighbour)), rel=0.35)  # it began later
    finally:
        mine.kill()
        stop(service)
