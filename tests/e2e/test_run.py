"""jouleprof run."""

import json
import os
import pty
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from conftest import HOPPER_250W, TOOL, domain


def test_constant_power_is_power_times_time(gpu):
    gpu("run", "-o", "x.jprof", "--json", "x.json", "--", "sleep", "3")
    report = json.loads((gpu.folder / "x.json").read_text())
    d = domain(report, "gpu")
    truth = 250 * report["duration_seconds"]
    assert report["duration_seconds"] == pytest.approx(3, abs=0.5)
    assert d["energy_joules"] == pytest.approx(truth, rel=1e-3)
    low, high = d["interval_joules"]
    assert low < truth < high
    assert d["mean_watts"] == pytest.approx(250, rel=1e-3)
    assert d["rest_joules"] == pytest.approx(truth, rel=5e-3)
    assert d["provenance"] == "simulated"
    assert report["simulated"] is True
    assert report["complete"] is True and report["exit_status"] == 0
    assert report["command"] == ["sleep", "3"]
    assert gpu.report("x.jprof")["domains"] == report["domains"]


def test_every_output_marks_a_simulated_device(gpu):
    process = gpu("run", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "1")
    assert "simulated" in process.err.lower()
    assert "simulated" in gpu("report", "x.jprof").out.lower()
    assert "simulated" in gpu("report", "x.jprof", "--csv").out
    assert "simulated" in gpu("monitor", "-c", "2", "-d", "200ms").out.lower()
    assert "simulated" in gpu("doctor", "--json").out


def test_parts_sum_exactly_to_the_whole(gpu):
    loop = "import time\nend = time.time() + 2\nwhile time.time() < end: pass"
    gpu("run", "-o", "x.jprof", "--", "sh", "-c", f"{sys.executable} -c '{loop}' & wait")
    report = gpu.report("x.jprof")

    def micro(joules):
        return round(joules * 1e6)

    checked = 0
    for d in report["domains"]:
        if d["energy_joules"] is None or d.get("balance", {}).get("parts_joules") is None:
            continue
        assert micro(d["balance"]["parts_joules"]) == micro(d["energy_joules"])
        checked += 1
    assert checked > 0


def test_streams_and_status_are_the_commands_own(tool):
    process = tool("run", "-q", "--no-record", "--idle", "0s", "--", "sh", "-c",
                   "cat; echo err >&2; exit 7", status=7, stdin=subprocess.DEVNULL)
    assert process.out == "" and process.err == "err\n"
    process = tool.start("run", "-q", "--no-record", "--idle", "0s", "--", "cat", stdin=subprocess.PIPE)
    assert process.communicate("through\n", timeout=60)[0] == "through\n"


@pytest.mark.parametrize("command, status", [
    (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
    (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    (["/no/such/program"], 127),
    (["/etc/passwd"], 126),
])
def test_exit_status_is_that_of_a_shell(tool, command, status):
    process = tool("run", "--no-record", "--idle", "0s", "--", *command, status=status)
    if status in (126, 127):
        assert command[0] in process.err


def test_a_termination_signal_is_forwarded(tool):
    process = tool.start("run", "-q", "--no-record", "--idle", "0s", "--", "sh", "-c",
                         "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert out == "got it\n" and process.returncode == 3


def test_the_recording_names_the_boot_and_the_rank(gpu):
    gpu.environment.update(RANK="3", LOCAL_RANK="1", WORLD_SIZE="8")
    gpu("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "true")
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    with sqlite3.connect(f"file:{gpu.folder}/x.jprof?mode=ro", uri=True) as db:
        assert db.execute("SELECT boot_id, rank, local_rank, world_size, launcher, job"
                          " FROM identity").fetchall() == [(boot_id, 3, 1, 8, "torchrun", None)]


def kill_at(gpu, moment):
    """Kills the tool; seconds from its last power sample until then. None: the machine was stopped."""
    process = gpu.start("run", "-q", "-f", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "9")
    begin = last = time.monotonic()
    stood_still = False
    while time.monotonic() < begin + moment:
        time.sleep(0.01)
        stood_still |= time.monotonic() - last > 0.1
        last = time.monotonic()
    killed = time.monotonic_ns()
    process.kill()
    process.communicate(timeout=60)
    with sqlite3.connect(f"file:{gpu.folder}/x.jprof?mode=ro", uri=True) as db:
        newest, = db.execute("SELECT max(at_nanoseconds) FROM power_reading JOIN sensor"
                             " ON sensor.id = sensor WHERE kind = 'power_ring'").fetchone()
    return None if stood_still else (killed - newest) / 1e9


def test_kill_loses_at_most_a_second(gpu):
    lost = [kill_at(gpu, moment) for moment in (4.0, 4.3, 4.6, 4.9, 5.2)]
    after = gpu.report("x.jprof")
    assert after["complete"] is False and after["duration_seconds"] > 3
    assert domain(after, "gpu")["energy_joules"] == pytest.approx(
        250 * after["duration_seconds"], rel=1e-2)
    assert "cut off" in gpu("report", "x.jprof").out
    # A sample comes every 20 ms and is recorded when it is complete.
    assert all(seconds < 1.1 for seconds in lost if seconds is not None), lost
    if None in lost:
        pytest.skip(f"the machine stood still at times; in the others this was lost: {lost}")


def test_a_recording_can_be_read_while_it_is_written(gpu):
    process = gpu.start("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "4")
    time.sleep(3)
    assert gpu.report("x.jprof")["complete"] is False
    assert process.wait(60) == 0
    assert gpu.report("x.jprof")["complete"] is True


def test_nothing_is_overwritten(tool):
    (tool.folder / "mine.jprof").write_text("precious")
    process = tool("run", "-o", "mine.jprof", "--", "true", status=125)
    assert "mine.jprof" in process.err and "--force" in process.err
    assert (tool.folder / "mine.jprof").read_text() == "precious"
    tool("run", "-q", "--idle", "0s", "-f", "-o", "mine.jprof", "--", "true")
    tool("run", "-q", "--idle", "0s", "--", "true")
    tool("run", "-q", "--idle", "0s", "--", "true")
    assert (tool.folder / "true.jprof").exists() and (tool.folder / "true-2.jprof").exists()


def test_nowhere_to_write_does_not_stop_the_command(gpu):
    process = gpu("run", "--idle", "0s", "-o", "/proc/x.jprof", "--", "sh", "-c", "echo done; exit 5",
                  status=5)
    assert process.out == "done\n"
    assert "/proc/x.jprof" in process.err and "gpu0" in process.err


def test_a_missing_folder_is_refused_before_the_command(gpu):
    process = gpu("run", "--idle", "0s", "-o", "/proc/no/x.jprof", "--", "sh", "-c", "echo done; exit 5",
                  status=125)
    assert process.out == ""
    assert "there is no folder /proc/no" in process.err


def test_a_full_disk_does_not_stop_the_command(gpu):
    mount = gpu.folder / "small"
    mount.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=200k tmpfs {mount} 2>/dev/null") != 0:
        pytest.skip("needs to mount a small file system")
    try:
        process = gpu("run", "-o", "small/x.jprof", "--idle", "0s", "--", "sh", "-c",
                      "head -c 1M /dev/zero > small/filler; sleep 3; exit 4", status=4)
        assert "full" in process.err or "No space" in process.err
    finally:
        os.system(f"umount {mount}")


def test_two_gpus_and_visibility(tool):
    scenario = {"devices": [
        {"uuid": "GPU-11111111-1111-1111-1111-111111111111", "generation": "hopper",
         "power": {"shape": "constant", "watts": 250}},
        {"uuid": "GPU-22222222-2222-2222-2222-222222222222", "generation": "hopper",
         "power": {"shape": "constant", "watts": 400}}]}
    tool.simulate(scenario)
    tool.environment["CUDA_VISIBLE_DEVICES"] = "GPU-2222"
    tool("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "2")
    report = tool.report("x.jprof")
    mine = [d for d in report["domains"] if d["domain"] == "gpu" and d["visible"]]
    assert [d["device"] for d in mine] == ["gpu1"]
    assert mine[0]["mean_watts"] == pytest.approx(400, rel=1e-3)


@pytest.mark.parametrize("generation", ["pascal", "volta", "turing", "ampere", "grace_hopper"])
def test_every_generation(tool, generation):
    tool.simulate({"devices": [{"generation": generation,
                                "power": {"shape": "constant", "watts": 60}}]})
    tool("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "3")
    report = tool.report("x.jprof")
    found = [d for d in report["domains"]
             if d["domain"] in ("gpu", "module") and d["energy_joules"] is not None]
    assert found, report["domains"]
    for d in found:
        assert d["energy_joules"] == pytest.approx(60 * report["duration_seconds"], rel=5e-3), d


def test_many_boards_lose_no_reading(tool):
    """Their counters' next updates are waited for at once; in turn, the rings of samples overflowed."""
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 100 + i} for i in range(48)]})
    tool("run", "--idle", "200ms", "-o", "x.jprof", "--", "sleep", "2")
    report = tool.report("x.jprof")
    gpus = [d for d in report["domains"] if d["domain"] == "gpu"]
    assert len(gpus) == 48
    for d in gpus:
        watts = 100 + int(d["device"][3:])
        assert d["energy_joules"] == pytest.approx(watts * report["duration_seconds"], rel=0.02), d["device"]
    assert not [w for w in report["warnings"] if "no power samples" in w or "readings end" in w]


def test_a_lost_gpu_has_no_energy_and_says_why(tool):
    tool.simulate({**HOPPER_250W, "faults": {"kind": "gpu_lost", "device": 0, "at_seconds": 2}})
    tool("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "3")
    d = domain(tool.report("x.jprof"), "gpu")
    assert d["energy_joules"] is None and d["interval_joules"] is None
    assert d["provenance"] == "unavailable" and "lost" in d["reason"]
    assert 100 < d["least_joules"] < 250 * 2.5
    # The mean of its memory is read each second, and says nothing of the time after the last one.
    memory = domain(tool.report("x.jprof"), "gpu_memory")
    assert memory["energy_joules"] is None and "lost" in memory["reason"]
    assert memory["least_joules"] < 31.5 * 2.5
    total = tool.report("x.jprof")["total"]
    assert total["is_partial"] or total["energy_joules"] is None


def test_what_a_job_with_a_lost_gpu_is_charged_with_is_a_lower_bound(tool):
    tool.simulate({"devices": 2 * HOPPER_250W["devices"],
                   "faults": {"kind": "gpu_lost", "device": 1, "at_seconds": 1}})
    tool("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "2")
    text = " ".join(tool("report", "x.jprof", "--by", "job").out.split())
    charged = text.split("rest charged ")[1].split(" charged: ")[0]
    assert "at least " in charged, text
    assert text.count("at least ") == 3, text  # of the job, of commands, in total
    # Also of a part in which it has no reading.
    after = tool.report("x.jprof", "--from", "1.6s", "--to", "1.9s")
    assert after["total"]["is_partial"] and after["total"]["interval_joules"][1] is None
    lost = domain(after, "gpu", "gpu1")
    assert lost["energy_joules"] is None and lost["least_joules"] == 0
    assert "s after the work began: " in lost["reason"] and "lost" in lost["reason"]


def test_a_hanging_driver_does_not_stop_the_command(tool):
    tool.simulate({**HOPPER_250W, "faults": {
        "kind": "hang", "device": 0, "at_seconds": 1, "call": "nvmlDeviceGetSamples"}})
    begin = time.monotonic()
    tool("run", "-o", "x.jprof", "--idle", "0s", "--", "sleep", "2")
    assert time.monotonic() - begin < 20
    assert any("has not answered" in w for w in tool.report("x.jprof")["warnings"])


def test_attach_to_a_running_process(gpu):
    victim = subprocess.Popen(["sleep", "2"])
    gpu("run", "-o", "x.jprof", "--pid", victim.pid)
    victim.wait()
    assert domain(gpu.report("x.jprof"), "gpu")["energy_joules"] > 0
    process = gpu("run", "--pid", "4194000", status=125)
    assert "4194000" in process.err


def test_attach_to_several_processes(gpu):
    first = subprocess.Popen(["sleep", "1"])
    second = subprocess.Popen(["sh", "-c", "sleep 2.5; true"])
    begin = time.monotonic()
    gpu("run", "-o", "x.jprof", "--pid", first.pid, "--pid", second.pid)
    assert time.monotonic() - begin > 2  # until the last has ended
    first.wait(), second.wait()
    report = gpu.report("x.jprof")
    assert {first.pid, second.pid} <= {p["pid"] for p in report["processes"]}
    assert any(p["parent_pid"] == second.pid for p in report["processes"])
    assert report["pid"] is None
    victim = subprocess.Popen(["sleep", "20"])
    try:
        process = gpu("run", "--pid", f"{victim.pid},4194000", status=125)
        assert "4194000" in process.err and str(victim.pid) not in process.err
    finally:
        victim.kill()
        victim.wait()


def test_processes_of_the_tree_are_listed(tool):
    loop = "import time\nwhile time.process_time() < 1.5: pass"
    (tool.folder / "burn.py").write_text(loop)
    tool("run", "-q", "-o", "x.jprof", "--", "sh", "-c",
         f"{sys.executable} burn.py & {sys.executable} burn.py & wait")
    report = tool.report("x.jprof")
    burners = [p for p in report["processes"] if "burn.py" in (p["command_line"] or "")]
    assert len(burners) >= 2
    assert sum(p["cpu_seconds"] for p in report["processes"]) == pytest.approx(3, rel=0.35)


def test_configuration_file_environment_and_flags(tool):
    (tool.folder / "config").write_text("idle = 0s  # quick\nquiet = true\n")
    tool.environment["JOULEPROF_CONFIG"] = str(tool.folder / "config")
    assert tool("run", "-o", "x.jprof", "--", "true").err == ""
    with sqlite3.connect(tool.folder / "x.jprof") as db:
        assert db.execute("SELECT count(*) FROM idle_span").fetchone() == (0,)
    (tool.folder / "config").write_text("nonsense\n")
    assert "line 1" in tool("run", "--", "true", status=125).err


@pytest.mark.parametrize("arguments", [
    ["run"], ["run", "--idle", "5", "--", "true"],
    ["run", "--interval", "0s", "--", "true"], ["run", "--no-such", "--", "true"],
    ["run", "--cpu-tdp", "-5", "--", "true"], ["run", "--devices", "gpu9", "--", "true"],
    ["run", "--pid", "1", "--", "true"],
])
def test_invalid_command_lines(tool, arguments):
    process = tool(*arguments, status=125)
    assert process.err.startswith("jouleprof: ") and process.out == ""


def test_a_context_is_seen_by_clock_list_and_power(tool):
    """A simulated board at rest, held by a context, and after it."""
    holder = {"environment": "CONTEXT=1"}
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 80, "held_watts": 127,
                                "after_context": {"watts": 88, "decay_seconds": 0.2},
                                "processes": {"tree": holder, "sample_ms": 10}}]})
    tool("run", "-q", "-o", "x.jprof", "--", "sh", "-c", "sleep 1; CONTEXT=1 sleep 6; sleep 0.5")
    with sqlite3.connect(tool.folder / "x.jprof") as db:
        gauges = db.execute("SELECT name, value FROM gauge_reading "
                            "JOIN sensor ON sensor.id = sensor ORDER BY at_nanoseconds").fetchall()
        powers = [w for (w,) in db.execute("SELECT power_watts FROM power_reading JOIN sensor "
                                           "ON sensor.id = sensor WHERE kind = 'power_ring'")]
    changes = {}
    for name, value in gauges:
        values = changes.setdefault(name, [])
        if not values or values[-1] != value:
            values.append(value)
    assert changes["process_count"] == [0, 1, 0]
    assert changes["sm_clock_hertz"] == [345e6, 1980e6, 345e6]
    assert changes["gpu_utilisation_ratio"] == [0]
    assert min(powers) >= 79.9 and abs(max(powers) - 127) < 0.1


BUSY = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass\nprint('did 30 images')"


def test_processes_have_shares_of_all_energy_where_rest_is_unknown(tool):
    process = tool("run", "-o", "x.jprof", "--idle", "0s", "--", sys.executable, "-c", BUSY)
    assert "cpu all: shares of all energy by use" in process.err
    report = tool.report("x.jprof")
    d = domain(report, "cpu")
    assert d["rest_joules"] is None and d["shares_include_rest"] is True
    assert d["balance"]["rest_joules"] is None
    parts = ("processes_joules", "others_joules", "unattributed_joules")
    assert sum(round(d["balance"][part] * 1e6) for part in parts) == round(d["energy_joules"] * 1e6)
    joules = [p["energy_joules"] for p in report["processes"] if p["energy_joules"] is not None]
    assert joules and joules == sorted(joules, reverse=True)


def test_energy_of_one_unit(gpu):
    process = gpu("run", "-o", "x.jprof", "--json", "x.json", "--per", "30:image", "--", sys.executable, "-c", BUSY)
    assert "\nper image  " in process.err
    unit = json.loads((gpu.folder / "x.json").read_text())["per_unit"]
    report = gpu.report("x.jprof")
    own, total = report["command_energy"], report["total"]
    assert unit["of"] == "command"
    assert unit["joules"] * 30 == pytest.approx(own["energy_joules"])
    assert (unit["dynamic_joules"] is None) == (total["rest_joules"] is None)
    if total["rest_joules"] is not None:
        assert unit["dynamic_joules"] * 30 == pytest.approx(own["processes_joules"], abs=1e-4)
    assert gpu.report("x.jprof")["per_unit"] is None
    assert gpu.report("x.jprof", "--per", "30:image")["per_unit"] == unit
    assert "22600:inference" in gpu("report", "x.jprof", "--per", "0:image", status=2).err


def test_every_output_quotes_the_energy_of_the_command(gpu):
    """Beside another program that uses the CPU, so that the command's energy and the total differ."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            for name in ("x.jprof", "y.jprof"):
                gpu("run", "-q", "--idle", "0s", "-o", name, "--", sys.executable, "-c", BUSY)
        finally:
            other.kill()
    options = ("--price", "1/kWh", "--per", "10:step")
    report = gpu.report("x.jprof", *options)
    own, total = report["command_energy"], report["total"]
    assert own["energy_joules"] < total["energy_joules"]
    assert own["energy_joules"] == pytest.approx(own["processes_joules"] + (own["rest_joules"] or 0), abs=1e-5)
    assert own["interval_joules"][0] <= own["energy_joules"] <= own["interval_joules"][1]
    assert report["costs"]["energy_joules"] == own["energy_joules"] and report["costs"]["of"] == "command"
    assert report["per_unit"]["joules"] == pytest.approx(own["energy_joules"] / 10)
    job = json.loads(gpu("report", "x.jprof", "--by", "job", "--json", "--price", "1").out)
    assert sum(one["charged_joules"] for one in job["jobs"]) == pytest.approx(own["energy_joules"], abs=1e-5)
    assert job["costs"]["energy_joules"] == pytest.approx(own["energy_joules"], abs=1e-5)
    quoted = re.search(r"^command +(\S+ k?J)", gpu("report", "x.jprof", "--details").out, re.M)[1]
    assert f"{quoted} of the command x" in " ".join(gpu("report", "x.jprof", *options).out.split())
    gpu("report", "x.jprof", "--html", "x.html")
    assert f"in all {quoted}" in (gpu.folder / "x.html").read_text()
    compared = json.loads(gpu("compare", "x.jprof", "y.jprof", "--json", status=None).out)
    assert compared["of"] == "command"
    assert "rest_left_out" not in [condition["code"] for condition in compared["conditions"]]
    compared_domains = [d for d in report["domains"] if d["device"] in compared["domains"] and d["parent"] is None]
    assert compared["energy"]["before_joules"] == pytest.approx(
        sum(d["command"]["energy_joules"] for d in compared_domains), rel=1e-6)

    whole = gpu.report("x.jprof", "--whole-machine", *options)
    assert whole["costs"]["energy_joules"] == total["energy_joules"] and whole["costs"]["of"] == "machine"
    assert whole["per_unit"]["joules"] == pytest.approx(total["energy_joules"] / 10)
    assert not re.search(r"^command +\S+ k?J", gpu("report", "x.jprof", "--whole-machine", "--details").out, re.M)


def test_units_are_counted_in_the_output(gpu):
    process = gpu("run", "--no-record", "--per-regex", "did ([0-9]+) images", "--per", "image", "--",
                  sys.executable, "-c", BUSY)
    assert process.out == "did 30 images\n"
    assert "\nper image  " in process.err and "30 of them" in process.err
    process = gpu("run", "--no-record", "--per-regex", "saw ([0-9]+) images", "--", "true")
    assert "the energy of one unit is unknown" in process.err
    assert "one group" in gpu("run", "--per-regex", "images", "--", "true", status=125).err


def test_on_a_terminal_costs_and_units_are_within_15_lines(gpu):
    gpu("run", "-q", "--idle", "0s", "-o", "x.jprof", "--", "sleep", "1")
    leader, follower = pty.openpty()
    subprocess.run([TOOL, "report", "x.jprof", "--price", "0.30 EUR/kWh", "--carbon", "363", "--pue", "1.2", "--per",
                    "40:image"],
                   cwd=gpu.folder, env=gpu.environment, stdout=follower, check=True)
    os.close(follower)
    text = os.read(leader, 1 << 16).decode()
    assert text.count("\n") <= 15 and "per image" in text and "CO2e per million" in text and "carbon" in text, text
    assert "40 of them" in text and " x PUE 1.2 x 0.3 EUR/kWh" in " ".join(text.split()), text
