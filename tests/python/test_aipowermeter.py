"""Scripts that read AIPowerMeter's experiments, on recordings and on a folder of its own."""

import json
import os
import pathlib
import time

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof.aipowermeter import experiment, parsers

DEIT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "h200-deit.jprof"

pytestmark = pytest.mark.skipif("JOULEPROF_TOOL" not in os.environ, reason="JOULEPROF_TOOL is not set")


def test_totals_are_those_of_the_report():
    found = experiment.ExpResults(parsers.JsonParser(DEIT))
    recording = jouleprof.open(DEIT)
    gpu, (process,) = recording.total("gpu0"), recording.rows("processes")
    assert found.total_("nvidia_draw_absolute") == pytest.approx(gpu.joules)
    assert found.total_("per_gpu_power_draw") == {"0": pytest.approx(gpu.joules)}
    assert found.total_("intel_power") == pytest.approx(recording.total("package-0").joules)
    assert found.total_("nvidia_attributable_power") == pytest.approx(process["gpu0_joules"])
    assert found.total_("per_process_cpu_power") == {str(process["pid"]): pytest.approx(process["package-0_joules"])}
    assert found.total_("rel_intel_power") == pytest.approx(process["package-0_joules"])
    assert found.total_power_draw() == pytest.approx(recording.total().joules)
    seconds, begin, end = found.get_duration()
    assert seconds == pytest.approx(30.197, abs=0.001) and end - begin == pytest.approx(seconds)
    assert begin == pytest.approx(1795312982.447216, abs=1e-4)  # 2026-11-22 02:03:02 UTC
    assert found.average_("intel_power") == pytest.approx(found.total_("intel_power") / seconds)
    assert found.max_("nvidia_draw_absolute") == recording.max("gpu0").watts
    assert len(found.get_curve("nvidia_draw_absolute")) > 100
    part = found.total_("nvidia_draw_absolute", start=2, end=8)
    assert part == pytest.approx(recording.total("gpu0", start=2, end=8).joules)


def test_what_a_recording_does_not_have_is_absent():
    found = experiment.ExpResults(parsers.JsonParser(DEIT))
    assert found.total_("psys_power") is found.total_("total_dram_power") is found.average_("uncore_power") is None
    assert found.total_("per_process_dram_power") is None
    text = str(found)
    assert "intel_power" in text and "psys_power" not in text and "per_gpu_attributable_power" in text
    with pytest.raises(jouleprof.NotFound, match="'joules' is no power with a total; there are: intel_power"):
        found.total_("joules")
    with pytest.raises(FileNotFoundError):
        experiment.ExpResults(parsers.JsonParser("absent"))


def test_use_of_processes_is_that_of_the_lines():
    found = experiment.ExpResults(parsers.JsonParser(DEIT))
    (process,) = jouleprof.open(DEIT).report()["processes"]
    memory, pid = found.max_("per_process_mem_use_abs"), str(process["pid"])
    assert memory == {pid: process["peak_pss_bytes"]}
    assert found.average_("per_process_mem_use_abs")[pid] < memory[pid]
    assert found.max_("nvidia_mem_use") == {f"0/{pid}": process["peak_gpu_memory_bytes"]}
    assert 0.9 < found.average_("per_process_cpu_uses")[pid] < 1.1
    assert 0 < found.average_("nvidia_sm_use")["0"] <= 1
    curve = found.get_curve("per_process_mem_use_uss")
    assert len(curve) > 20 and all(set(point["value"]) == {pid} for point in curve)
    assert all(metric in str(found) for metric in ("per_process_mem_use_percent", "per_gpu_absolute_percent_usage"))
    assert found.average_("per_process_cpu_power_of_nothing") is None


def test_a_script_of_aipowermeter_measures_itself(machine, tmp_path):
    machine.gpus(CONSTANT)
    driver = parsers.JsonParser(tmp_path / "output")
    process, queue = experiment.Experiment(driver).measure_yourself(period=2)
    assert process.is_alive()
    sum(range(1_000_000))
    queue.put(experiment.STOP_MESSAGE)
    assert not process.is_alive()
    lines = [json.loads(line) for line in (tmp_path / "output" / "power_metrics.json").read_text().splitlines()]
    metrics = [line["metrics"] for line in lines if isinstance(line, dict)]  # others end a segment
    assert metrics and all("per_gpu_power_draw" in line["gpu"] for line in metrics)
    found = experiment.ExpResults(driver)
    assert found.average_("nvidia_draw_absolute") == pytest.approx(CONSTANT["idle_watts"], rel=0.01)


def test_an_experiment_whose_lines_cannot_be_written_ends_no_program(machine, tmp_path):
    machine.gpus(CONSTANT)
    driver = parsers.JsonParser(tmp_path / "experiment")
    _, queue = experiment.Experiment(driver).measure_yourself()
    (tmp_path / "experiment" / "power_metrics.json").mkdir()
    time.sleep(0.3)
    with pytest.warns(RuntimeWarning, match="power_metrics.json is not written: .*`jouleprof export .*` makes it"):
        queue.put(experiment.STOP_MESSAGE)
    assert experiment.ExpResults(driver).total_("nvidia_draw_absolute") > 0
    with pytest.raises(jouleprof.InvalidArgument, match="is of an earlier experiment; delete it, or give JsonParser"):
        experiment.Experiment(driver).measure_yourself()


def test_a_folder_of_aipowermeter(tmp_path):
    lines = [{"date": f"2024-01-01 00:00:{second:02d}.000000", "metrics": {
        "cpu": {"intel_power": 50.0, "psys_power": -1, "per_process_cpu_power": {"7": 20.0},
                "per_process_mem_use_abs": {"7": 1000 + second}, "per_process_cpu_uses": {"7": 0.4}},
        "gpu": {"nvidia_draw_absolute": 100.0, "per_gpu_power_draw": {"0": 100.0}}}} for second in range(11)]
    (tmp_path / "power_metrics.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = experiment.ExpResults(parsers.JsonParser(tmp_path))
    assert found.total_("intel_power") == pytest.approx(500, rel=0.11)
    assert found.total_("nvidia_draw_absolute") == pytest.approx(1000, rel=0.11)
    assert found.total_("psys_power") is None
    assert found.total_("per_process_cpu_power") == {"7": pytest.approx(200)}
    assert found.total_("per_process_cpu_power", start=2, end=5) == {"7": pytest.approx(60)}
    assert found.average_("per_process_mem_use_abs") == {"7": pytest.approx(1005)}
    assert found.max_("per_process_mem_use_abs") == {"7": 1010} and found.max_("psys_power") is None
    assert "process 7" not in str(found) and "per_process_cpu_uses" in str(found)


def test_lines_of_a_recording_need_no_figures_before():
    assert parsers.JsonParser(DEIT).lines()
    with pytest.raises(FileNotFoundError, match="absent.jprof does not exist"):
        parsers.JsonParser("absent.jprof").lines()
