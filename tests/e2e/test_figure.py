"""The figure of `report --svg`: its figures are those of --json, and every name in it is text."""

import os
import re
import shutil
import struct
import time
import xml.etree.ElementTree as ET

import pytest

from conftest import SOURCE, domain

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = ["examples/h200-deit.jprof", "examples/h200-kernels.jprof"]


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def figure(tool, *arguments):
    tool("report", *arguments, "--svg", "x.svg", "--force")
    return ET.parse(tool.folder / "x.svg").getroot()


def joules(text):
    """The value of a figure in words, and half of its last printed digit."""
    number, unit = re.match(r"(-?[\d.]+) (mJ|J|kJ|MJ)$", text).groups()
    scale = {"mJ": 1e-3, "J": 1, "kJ": 1e3, "MJ": 1e6}[unit]
    decimals = len(number.partition(".")[2])
    return float(number) * scale, 0.5001 * 10**-decimals * scale


@pytest.mark.parametrize("recording", EXAMPLES)
def test_every_figure_is_that_of_json(tool, recording):
    report = tool.report(SOURCE / recording)
    root = figure(tool, SOURCE / recording)
    total, own = report["total"], report["command_energy"]
    headline = next(t for t in texts(root) if t.endswith("ESTIMATED") and "kJ" in t)
    value, *errors = re.match(r"(\S+ kJ) (?:±(\S+) %|-(\S+) % \+(\S+) %) ESTIMATED", headline).groups()
    near, digit = joules(value)
    assert near == pytest.approx(own["energy_joules"], abs=digit)
    low, high = own["interval_joules"]
    # One number where both sides are nearly alike: the wider one.
    for error, half in zip((errors[1] or errors[0], errors[2] or errors[0]),
                           (own["energy_joules"] - low if errors[1] else high - own["energy_joules"],
                            high - own["energy_joules"])):
        assert float(error) == pytest.approx(100 * half / own["energy_joules"], abs=0.051)
    interval = next(t for t in texts(root) if t.startswith("95 % interval"))
    for words, end in zip(re.findall(r"[\d.]+ kJ", interval), own["interval_joules"]):
        near, digit = joules(words)
        assert near == pytest.approx(end, abs=digit)
    assert f"mean power of all devices {total['mean_watts']:.1f} W" in " ".join(texts(root))

    bars = [r for r in root.iter(f"{SVG}rect") if "data-joules" in r.attrib]
    by_device = {}
    for bar in bars:
        by_device.setdefault(bar.attrib["data-device"], []).append(bar)
    whiskers = {float(line.attrib["data-high-joules"]): line for line in root.iter(f"{SVG}line")
                if "data-high-joules" in line.attrib}
    shown = [d for d in report["domains"] if d["parent"] is None and d["energy_joules"] is not None]
    assert set(by_device) == {d["device"] for d in shown}
    for d in shown:
        parts = by_device[d["device"]]
        # The parts of this device are the balance, and no part is negative here.
        in_bar = {p.attrib["data-part"]: float(p.attrib["data-joules"]) for p in parts}
        assert sum(in_bar.values()) == pytest.approx(d["energy_joules"], abs=1e-6)
        assert in_bar["rest"] == d["balance"]["rest_joules"]
        if "held" in in_bar:
            assert in_bar["held"] == d["held_joules"]
        # Widths are energies, on one scale for all devices, and so is the interval.
        whisker = whiskers[d["interval_joules"][1]]
        assert float(whisker.attrib["data-low-joules"]) == d["interval_joules"][0]
        per_pixel = (d["interval_joules"][1]) / (float(whisker.attrib["x2"]) - float(parts[0].attrib["x"]))
        for part in parts:
            assert float(part.attrib["width"]) * per_pixel == pytest.approx(
                float(part.attrib["data-joules"]), abs=per_pixel * 0.1 + 2e-3 * d["energy_joules"])
        # The list under the bar has every part in words.
        for name, energy in in_bar.items():
            words = [re.match(rf"{name} (\S+ \S?J) \(", t) for t in texts(root)]
            assert any(abs(joules(w.group(1))[0] - energy) <= joules(w.group(1))[1] for w in words if w)
    for d in report["domains"]:
        if d["energy_joules"] is None and d["parent"] is None:
            assert any(t.startswith("UNAVAILABLE") and d["reason"][:20] in t for t in texts(root))


def test_the_power_curve_integrates_to_the_energy(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "2")
    device = domain(gpu.report("x.jprof"), "gpu")
    root = figure(gpu, "x.jprof")
    line = next(p for p in root.iter(f"{SVG}path") if p.attrib.get("data-domain") == str(device["id"]))
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)H", line.attrib["d"])]
    # Numbers and places of the chart's two lowest lines give its scale.
    ticks = [t for t in root.iter(f"{SVG}text")
             if t.attrib.get("text-anchor") == "end" and re.fullmatch(r"\d+", t.text)]
    (low, y_low), (high, y_high) = [(float(t.text), float(t.attrib["y"]) - 4) for t in ticks[:2]]
    watts = [low + (y - y_low) / (y_high - y_low) * (high - low) for y in heights]
    assert sum(watts) / len(watts) == pytest.approx(device["mean_watts"], rel=0.02)
    # The last step, too, which is shorter than the others.
    assert min(watts) > 0.9 * device["mean_watts"]


def test_hostile_names_are_text_and_redact_leaves_them_out(gpu):
    hostile = "</text><script>alert(1)</script>\u202e<!-- ]]> &amp;"
    gpu("run", "-q", "-o", "x.jprof", "--", "sh", "-c", "sleep 0.3", hostile)
    root = figure(gpu, "x.jprof")
    assert not list(root.iter(f"{SVG}script"))
    shown = next(t for t in texts(root) if "<script>alert(1)</script>" in t)
    assert "\u202e" not in shown
    assert any("SIMULATED" in t for t in texts(root))
    figure(gpu, "x.jprof", "--redact")
    closed = (gpu.folder / "x.svg").read_text()
    assert "script" not in closed and "x.jprof" not in closed and os.uname().nodename not in closed


def test_a_part_has_its_own_figures(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "2")
    part = ["--from", "0.5s", "--to", "1.5s"]
    root = figure(gpu, "x.jprof", *part)
    energy = domain(gpu.report("x.jprof", *part), "gpu")["energy_joules"]
    rests = [float(r.attrib["data-joules"]) for r in root.iter(f"{SVG}rect")
             if r.attrib.get("data-device") == "gpu0"]
    assert sum(rests) == pytest.approx(energy, abs=1e-6)


def test_no_file_is_overwritten_unasked_and_none_twice(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "0.2")
    (gpu.folder / "x.svg").write_text("mine")
    refused = gpu("report", "x.jprof", "--svg", "x.svg", status=None)
    assert refused.returncode != 0 and "--force" in refused.err
    assert (gpu.folder / "x.svg").read_text() == "mine"
    refused = gpu("report", "x.jprof", "--html", "a", "--svg", "a", status=None)
    assert refused.returncode != 0 and "one file" in refused.err
    refused = gpu("report", "x.jprof", "--redact", status=2)
    assert "--svg" in refused.err


def test_png_is_the_figure_at_twice_its_size(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "0.2")
    drawn = gpu("report", "x.jprof", "--svg", "x.svg", "--png", "x.png", status=None)
    if "librsvg" in drawn.err:
        pytest.skip("librsvg is not installed")
    root = ET.parse(gpu.folder / "x.svg").getroot()
    content = (gpu.folder / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", content[16:24])
    assert [width, height] == [2 * int(root.attrib["width"]), 2 * int(root.attrib["height"])]
    assert len(content) > 20_000  # is not one colour


def test_without_librsvg_the_error_names_its_package(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "0.2")
    (gpu.folder / "librsvg-2.so.2").write_text("no library")
    gpu.environment["LD_LIBRARY_PATH"] = str(gpu.folder)
    refused = gpu("report", "x.jprof", "--png", "x.png", status=None)
    assert refused.returncode != 0
    assert "librsvg2-2" in refused.err and "SVG" in refused.err
    assert not (gpu.folder / "x.png").exists()


def test_run_writes_it_as_report_does(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--svg", "run.svg", "--", "sleep", "0.5")
    gpu("report", "x.jprof", "--svg", "report.svg")
    assert (gpu.folder / "run.svg").read_text() == (gpu.folder / "report.svg").read_text()
    refused = gpu("run", "--svg", "run.svg", "--", "touch", "started", status=125)
    assert "--force" in refused.err and not (gpu.folder / "started").exists()


def test_the_line_below_the_charts_has_no_text_over_another(tool):
    """Of hours, the text of the steps is as wide as the figure; and no command began."""
    begin = 1778400000
    rows = "".join(f"{time.strftime('%Y/%m/%d %H:%M:%S', time.gmtime(begin + 10 * i))}.000, 0, {100 + i // 60 % 3 * 100}.00 W\n"
                   for i in range(2160))
    (tool.folder / "x.csv").write_text("timestamp, index, power.draw [W]\n" + rows)
    tool("import", "x.csv", "-o", "x.jprof")
    found = [t for t in figure(tool, "x.jprof").iter(f"{SVG}text") if re.match("line: mean|time since", "".join(t.itertext()))]
    steps, title = sorted(found, key=lambda t: "".join(t.itertext()))
    assert "".join(title.itertext()) == "time since the recording began (h)"
    assert "least and greatest power" in "".join(steps.itertext())
    assert abs(float(steps.get("y")) - float(title.get("y"))) >= 12
