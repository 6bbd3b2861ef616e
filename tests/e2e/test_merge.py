"""merge: recordings of ranks and hosts in one file, and the report of the job."""

import decimal
import json
import os
import re
import sqlite3
import sys

import pytest

WORK = "import time; e = time.process_time() + 0.3\nwhile time.process_time() < e: pass"


def record(tool, name, rank, boot=None):
    tool.environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    tool("run", "-q", "--idle", "0s", "-o", name, "--", sys.executable, "-c", WORK)
    if boot:
        with sqlite3.connect(tool.folder / name) as db:
            db.execute("UPDATE identity SET boot_id = ?", (boot,))
            db.execute("UPDATE run SET host = ?", (boot,))


def joules(value):
    return decimal.Decimal(str(value))


def test_hosts_sum_to_the_microjoule(gpu):
    record(gpu, "a.jprof", 0, "node1")
    record(gpu, "b.jprof", 1, "node2")
    gpu("merge", "b.jprof", "a.jprof", "-o", "job.jprof")
    job = json.loads(gpu("report", "job.jprof", "--json").out, parse_float=decimal.Decimal)
    single = [json.loads(gpu("report", name, "--json").out, parse_float=decimal.Decimal)
              for name in ("a.jprof", "b.jprof")]
    assert [host["host"] for host in job["hosts"]] == ["node1", "node2"]
    for host, own in zip(job["hosts"], single):
        assert host["energy_joules"] == own["total"]["energy_joules"]
    assert job["energy_joules"] == sum(own["total"]["energy_joules"] for own in single)
    assert [rank["rank"] for rank in job["ranks"]] == [0, 1]


def test_recordings_of_one_host_count_once(gpu):
    record(gpu, "a.jprof", 0)
    (gpu.folder / "b.jprof").write_bytes((gpu.folder / "a.jprof").read_bytes())
    with sqlite3.connect(gpu.folder / "b.jprof") as db:
        db.execute("UPDATE identity SET rank = 1")
    gpu("merge", "a.jprof", "b.jprof", "-o", "job.jprof")
    job = json.loads(gpu("report", "job.jprof", "--json").out)
    assert job["energy_joules"] == gpu.report("a.jprof")["total"]["energy_joules"]
    assert len(job["hosts"]) == 1 and len(job["ranks"]) == 2


def test_the_same_recording_twice_is_an_error_that_names_it(gpu):
    record(gpu, "a.jprof", 0)
    os.link(gpu.folder / "a.jprof", gpu.folder / "b.jprof")
    assert "a.jprof" in gpu("merge", "a.jprof", "b.jprof", "-o", "job.jprof", status=2).err
    assert not (gpu.folder / "job.jprof").exists()


def test_append_makes_one_file_of_runs_that_follow_each_other(gpu):
    def run(*command, **options):
        return gpu("run", "--idle", "0s", "--append", "x.jprof", "--", *command, **options)

    run("sleep", "0.4")
    first = gpu.report("x.jprof")
    assert "run 2" in run("sleep", "0.8").err
    assert "--run 3" not in run("-q", "sleep", "0.2", status=127).err  # not started: not a run
    run(sys.executable, "-c", "raise SystemExit(3)", status=3)
    assert sorted(p.name for p in gpu.folder.glob("*.jprof*")) == ["x.jprof"]
    runs = [gpu.report("x.jprof", "--run", str(n)) for n in (1, 2, 3)]
    assert runs[0] == first
    assert [r["exit_status"] for r in runs] == [0, 0, 3]
    job = json.loads(gpu("report", "x.jprof", "--json").out, parse_float=decimal.Decimal)
    assert job["energy_joules"] == sum(joules(r["total"]["energy_joules"]) for r in runs)
    assert any("between its recordings were not recorded" in text for text in job["warnings"])
    assert "no recording 4" in gpu("report", "x.jprof", "--run", "4", status=None).err


def test_append_refuses_what_it_would_spoil(gpu):
    (gpu.folder / "notes").write_text("mine")
    process = gpu("run", "--append", "notes", "--", "touch", "ran", status=125)
    assert (gpu.folder / "notes").read_text() == "mine" and not (gpu.folder / "ran").exists()
    assert process.err
    gpu("run", "--append", "x", "-o", "y", "--", "true", status=125)


def test_report_by_rank_and_host_with_costs(gpu):
    record(gpu, "a.jprof", 3)
    gpu("merge", "a.jprof", "-o", "job.jprof")
    text = gpu("report", "job.jprof", "--by", "rank", "--price", "0.30 EUR/kWh", "--carbon", "230",
               "--pue", "1.2").out
    assert "EUR" in text and "g CO2e" in text
    assert "gpu0" in gpu("report", "job.jprof").out
    costs = json.loads(gpu("report", "a.jprof", "--by", "host", "--json", "--price", "1").out)["costs"]
    assert costs["money"] == pytest.approx(costs["energy_joules"] / 3.6e6, abs=1e-9)


def test_invalid_usage(gpu):
    record(gpu, "a.jprof", 0)
    gpu("merge", "a.jprof", status=2)
    gpu("merge", "missing.jprof", "-o", "job.jprof", status=3)
    gpu("merge", "a.jprof", "-o", "job.jprof")
    gpu("merge", "a.jprof", "-o", "job.jprof", status=2)
    gpu("merge", "a.jprof", "-o", "job.jprof", "-f")
    assert "create it first" in gpu("merge", "a.jprof", "-o", "none/job.jprof", status=7).err
    (gpu.folder / "folder").mkdir()
    gpu("merge", "a.jprof", "-o", "folder", "-f", status=7)
    for refused in (("--by", "kernel"), ("--csv",), ("--from", "1s")):
        assert "of one recording" in gpu("report", "job.jprof", *refused, status=2).err
    hint = gpu("report", "job.jprof", "--by", "window", status=2).err
    assert "--run N), or --by host, rank or job" in hint and "--carbon" not in hint


def started(tool, name):
    """Begin of the work by the wall clock, and its length, in seconds."""
    with sqlite3.connect(tool.folder / name) as db:
        host, real = db.execute("SELECT host_nanoseconds, real_nanoseconds FROM clock_point").fetchone()
        begin, end = db.execute("SELECT work_begin_nanoseconds, work_end_nanoseconds FROM run").fetchone()
    return (begin - host + real) / 1e9, (end - begin) / 1e9


def wall_log(tool, name, begin, length, watts):
    lines = [f"{begin - 1 + 0.25 * i:.6f},{watts}\n" for i in range(int(4 * (length + 3)))]
    (tool.folder / name).write_text("time,power_watts\n" + "".join(lines))


def test_a_wall_meter_is_a_scope_of_its_own(gpu):
    record(gpu, "a.jprof", 0)
    plain = gpu.report("a.jprof")
    assert plain["wall"] is None
    begin, length = started(gpu, "a.jprof")
    wall_log(gpu, "wall.csv", begin, length, 1000)
    report = gpu.report("a.jprof", "--wall", "wall.csv")
    wall = report["wall"]
    assert report["total"] == plain["total"]
    assert wall["energy_joules"] == pytest.approx(1000 * length, rel=1e-6)
    assert wall["components_joules"] == plain["total"]["energy_joules"]
    assert wall["explained_ratio"] == pytest.approx(plain["total"]["energy_joules"] / (1000 * length), rel=1e-4)
    assert wall["uncovered_seconds"] == 0
    text = gpu("report", "a.jprof", "--wall", "wall.csv").out
    assert "not in the total" in text and "explained" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_wall_meter_that_covers_a_part(gpu):
    record(gpu, "a.jprof", 0)
    begin, length = started(gpu, "a.jprof")
    middle = begin + length / 2
    (gpu.folder / "wall.csv").write_text(f"time,watts\n{middle - 5:.6f},500\n{middle:.6f},500\n")
    wall = gpu.report("a.jprof", "--wall", "wall.csv")["wall"]
    assert wall["covered_seconds"] == pytest.approx(length / 2, abs=1e-4)
    assert wall["energy_joules"] == pytest.approx(250 * length, rel=1e-3)
    assert wall["components_joules"] == pytest.approx(gpu.report("a.jprof")["total"]["energy_joules"] / 2, rel=0.1)
    text = gpu("report", "a.jprof", "--wall", "wall.csv").out
    assert re.search(r"^wall +\S+ \S+ in \S+ m?s, 500\S* W mean", text, re.M), text
    (gpu.folder / "old.csv").write_text("time,watts\n1,500\n2,500\n")
    assert "no readings from" in gpu("report", "a.jprof", "--wall", "old.csv", status=4).err
    gpu("report", "a.jprof", "--wall", "wall.csv", "--csv", status=2)


def test_wall_meters_of_a_job(gpu):
    record(gpu, "a.jprof", 0, "node1")
    record(gpu, "b.jprof", 1, "node2")
    for name, host in (("a", "node1"), ("b", "node2")):
        wall_log(gpu, f"{host}.csv", *started(gpu, f"{name}.jprof"), 800)
    job = json.loads(gpu("report", "a.jprof", "b.jprof", "--wall", "node1=node1.csv", "--wall", "node2=node2.csv",
                         "--json").out)
    assert [wall["host"] for wall in job["walls"]] == ["node1", "node2"]
    assert [wall["components_joules"] for wall in job["walls"]] == [host["energy_joules"] for host in job["hosts"]]
    assert "name the machine" in gpu("report", "a.jprof", "b.jprof", "--wall", "node1.csv", status=2).err
    assert "no such machine" in gpu("report", "a.jprof", "b.jprof", "--wall", "x=node1.csv", status=3).err


def test_by_job_charges_all_energy_once(gpu):
    record(gpu, "a.jprof", 0, "node1")
    record(gpu, "b.jprof", 1, "node2")
    for arguments in (("--by", "job"), ("--by", "job", "--rest-share", "0.25")):
        job = json.loads(gpu("report", "a.jprof", "b.jprof", *arguments, "--json").out, parse_float=decimal.Decimal)
        charged = sum(one["charged_joules"] for one in job["jobs"])
        parts = (job[f"{part}_joules"] for part in ("others", "undivided", "not_charged"))
        assert charged + sum(parts) == job["energy_joules"]
        assert charged == job["command_energy"]["energy_joules"]
        assert [one["hosts"] for one in job["jobs"]] == [2]
    text = gpu("report", "a.jprof", "b.jprof", "--by", "job", "--rest-share", "0.25").out
    assert "25 %" in text and max(map(len, text.splitlines())) <= 80
    gpu("report", "a.jprof", "--rest-share", "0.25", status=2)


def test_by_job_shows_what_slurm_has(gpu):
    gpu.environment |= {"SLURM_JOB_ID": "4712", "SLURM_STEP_ID": "0"}
    record(gpu, "a.jprof", 0, "node1")
    sacct = gpu.folder / "bin" / "sacct"
    sacct.parent.mkdir()

    def energy(*lines, status=0):
        body = "".join(f"echo '{line}'\n" for line in lines)
        sacct.write_text(f"#!/bin/sh\ncase \"$*\" in *--jobs=4712*) ;; *) exit 9;; esac\n{body}exit {status}\n")
        sacct.chmod(0o755)
        (found,) = json.loads(gpu("report", "a.jprof", "--by", "job", "--sacct", "--json").out)["slurm"]
        assert found["job"] == "4712" and (found["reason"] is None) == (found["consumed_joules"] is not None)
        return found["consumed_joules"] or found["reason"]

    gpu.environment["PATH"] = f"{sacct.parent}:{gpu.environment['PATH']}"
    assert energy("4712|1234", "4712.batch|1200", "4712.0|1100") == 1234
    assert energy("4712|", "4712.batch|1200", "4712.extern|1200", "4712.0|700", "4712.1|300", "47120|9") == 1000
    assert "recorded no energy" in energy("4712|0", "4712.batch|18446744073709551614")
    assert "does not list" in energy()
    assert "missing or failed" in energy("4712|5", status=1)
    assert "job 4712: sacct is missing" in gpu("report", "a.jprof", "--by", "job", "--sacct").out
    gpu("report", "a.jprof", "--by", "job", "--sacct", "--html", "job.html")
    assert "Slurm, job 4712: sacct is missing" in (gpu.folder / "job.html").read_text()
    gpu("report", "a.jprof", "--sacct", status=2)


def test_parts_of_a_merged_file(gpu):
    record(gpu, "a.jprof", 0, "node1")
    record(gpu, "b.jprof", 1, "node2")
    gpu("merge", "b.jprof", "a.jprof", "-o", "job.jprof")
    for number, name in enumerate(("a.jprof", "b.jprof"), 1):
        assert gpu.report("job.jprof", "--run", number) == gpu.report(name)
    assert "has no recording 3" in gpu("report", "job.jprof", "--run", "3", status=3).err
    assert "--run N" in gpu("export", "job.jprof", status=2).err


def a_fleet(tool, hosts, ranks, world=64, late=None):
    """One recording for each host, with `ranks` ranks: copies of a recording with other numbers. `late`: a host
    whose wall clock is an hour ahead."""
    record(tool, "template.jprof", 0)
    names = []
    for host in hosts:
        for local in range(ranks):
            names.append(f"{host}-{local}.jprof")
            (tool.folder / names[-1]).write_bytes((tool.folder / "template.jprof").read_bytes())
            with sqlite3.connect(tool.folder / names[-1]) as db:
                rank = host * ranks + local
                db.execute("UPDATE identity SET rank = ?, world_size = ?, boot_id = ?", (rank, world, f"boot{host}"))
                db.execute("UPDATE run SET host = ?", (f"node{host}",))
                db.execute("UPDATE process SET rank = NULL, local_rank = NULL, world_size = NULL")
                if host == late:
                    db.execute("UPDATE clock_point SET real_nanoseconds = real_nanoseconds + 3600000000000")
    return names


def test_merge_names_missing_ranks(gpu):
    names = a_fleet(gpu, range(15), 4)
    merged = gpu("merge", *names, "-o", "job.jprof", "--json")
    assert "of 60 of 64 ranks" in merged.err and "Missing: 60-63" in merged.err
    found = json.loads(merged.out)
    assert found["schema"] == "jouleprof.merge/1" and found["recordings"] == 60
    (group,) = found["rank_groups"]
    assert (group["world_size"], group["present"]) == (64, 60)
    assert group["missing"] == [60, 61, 62, 63] and group["repeated"] == []
    report = gpu("report", "job.jprof")
    (total,) = [line for line in " ".join(report.out.split()).split("total ")[1:] if "counts once" in line]
    assert "of 60 of 64 ranks" in total and "Missing: 60-63" in report.out
    job = json.loads(gpu("report", "job.jprof", "--json", "--strict", status=8).out)
    assert job["rank_groups"] == [group] and job["warnings"] == found["warnings"]
    gpu("report", "job.jprof", "--html", "job.html", "--redact")
    assert "Of 60 of 64 ranks." in (gpu.folder / "job.html").read_text()
    gpu("merge", "-f", "-q", *names, "-o", "strict.jprof", "--strict", status=8)
    gpu("merge", "-q", "job.jprof", "-o", "again.jprof", "--strict", status=8)  # of a merged file, too
    assert (gpu.folder / "strict.jprof").stat().st_size > 0
    gpu("report", names[0], "--strict", status=2)


def test_merge_says_nothing_of_a_whole_job(gpu):
    names = a_fleet(gpu, range(2), 2, world=4)
    merged = gpu("merge", *names, "-o", "job.jprof", "--json", "--strict")
    assert "warning" not in merged.err and "ranks" not in merged.err
    assert json.loads(merged.out)["rank_groups"][0]["present"] == 4
    gpu("report", "job.jprof", "--strict")


def test_merge_names_ranks_that_come_twice(gpu):
    names = a_fleet(gpu, range(2), 4, world=8)
    with sqlite3.connect(gpu.folder / names[4]) as db:  # rank 4, of the other machine
        db.execute("UPDATE identity SET rank = 1")
    merged = gpu("merge", *names, "-o", "job.jprof", "--strict", status=8)
    assert "rank 1 of 8 (torchrun) is in several recordings, such as 0-1.jprof of node0 and 1-0.jprof of node1" in merged.err
    assert "Missing: 4." in merged.err
    job = json.loads(gpu("report", "job.jprof", "--json").out)
    assert job["rank_groups"][0]["repeated"] == [1] and job["rank_groups"][0]["missing"] == [4]


def test_merge_names_a_clock_that_is_an_hour_ahead(gpu):
    names = a_fleet(gpu, range(3), 1, world=3, late=2)
    merged = gpu("merge", *names, "-o", "job.jprof", "--strict", status=8)
    assert "node2 began 3600 s and ended 3600 s after node" in merged.err
    assert "node0 began" not in merged.err and "node1 began" not in merged.err
    (warning,) = json.loads(gpu("report", "job.jprof", "--json").out)["warnings"]
    assert "check the clocks" in warning
