"""Scripts that read AIPowerMeter's experiments, on recordings and on a folder of its own."""

import json
import os
import pathlib

import pytest

import jouleprof
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
        parsers.JsonParser("absent")


def test_a_folder_of_aipowermeter(tmp_path):
    lines = [{"date": f"2024-01-01 00:00:{second:02d}.000000", "metrics": {
        "cpu": {"intel_power": 50.0, "psys_power": -1},
        "gpu": {"nvidia_draw_absolute": 100.0, "per_gpu_power_draw": {"0": 100.0}}}} for second in range(11)]
    (tmp_path / "power_metrics.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = experiment.ExpResults(parsers.JsonParser(tmp_path))
    assert found.total_("intel_power") == pytest.approx(500, rel=0.11)
    assert found.total_("nvidia_draw_absolute") == pytest.approx(1000, rel=0.11)
    assert found.total_("psys_power") is None
