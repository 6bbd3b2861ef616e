"""Tables of other tools, torch.profiler's traces, and traces for Perfetto."""

import gzip
import json
import re

import pytest

from conftest import SOURCE

H100 = SOURCE / "tests" / "fixtures" / "h100"
BASE_NS = json.loads((H100 / "mix_names.json").read_text())["base_unix_ns"]


@pytest.fixture
def mix(tool):
    """A recording of the H100 fixture, with every kernel."""
    tool("import", "--format", "csv", "--samples", H100 / "mix_samples.csv.gz",
         "--counter", H100 / "mix_energy.csv.gz", "--kernels", H100 / "mix_kernels.csv.gz",
         "--names", H100 / "mix_names.json", "--device-name", "NVIDIA H100 80GB HBM3",
         "--idle", "0s:7s", "--idle", "29s:33s", "--events", "-o", "mix.jprof")
    return tool


def kernel_rows():
    names = json.loads((H100 / "mix_names.json").read_text())["kernels"]
    with gzip.open(H100 / "mix_kernels.csv.gz", "rt") as file:
        next(file)
        for line in file:
            kernel, start, duration = line.split(",")
            yield names[kernel], int(start), int(duration)


def microseconds(nanoseconds):
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def torch_trace(rows):
    """The trace that Kineto would have written of them."""
    head = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85045149696}
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": %d,
  "traceEvents": [""" % (BASE_NS - 5_000_000)
    events = []
    for number, (name, start, duration) in enumerate(rows):
        kind = {"Memse": "gpu_memset", "Memcp": "gpu_memcpy"}.get(name[:5], "kernel")
        launch = microseconds(start + 4_990_000)
        events.append(f"""
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op", "pid": 10, "tid": 10,
    "ts": {launch}, "dur": 0.400,
    "args": {{
      "External id": {number + 1},"Ev Idx": {number}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10,
    "ts": {launch}, "dur": 0.300,
    "args": {{"External id": {number + 1}, "cbid": 211, "correlation": {number + 1}}}
  }},
  {{
    "ph": "X", "cat": "{kind}", "name": "{name}", "pid": 0, "tid": 7,
    "ts": {microseconds(start + 5_000_000)}, "dur": {microseconds(duration)},
    "args": {{
      "External id": {number + 1}, "device": 0, "stream": 7, "correlation": {number + 1}
    }}
  }}""")
    return head + ",".join(events) + '\n  ],\n  "traceName": "trace.json"\n}\n'


ADDED_EVENT = re.compile(r',\n  \{[^\n]*"cat": "jouleprof"[^\n]*\}')
ADDED_ARGS = re.compile(r'(, "(energy( [^"]*)?|power [^"]*|kernels|provenance)": ("[^"]*"|[-+.0-9e]*))+(?=\s*\})')


def without_ours(text):
    return ADDED_ARGS.sub("", ADDED_EVENT.sub("", text))


def test_tables_are_attributed(mix):
    report = mix.report("mix.jprof")
    (gpu,) = report["domains"]
    assert gpu["energy_joules"] == pytest.approx(12_500, rel=0.01)
    assert "kernels" not in mix.report("mix.jprof")["warnings"]


def test_invalid_tables_give_one_line(tool):
    (tool.folder / "s.csv").write_text("t_us,power_mw\n5,x\n")
    process = tool("import", "--format", "csv", "--samples", "s.csv", "-o", "x.jprof", status=4)
    assert "s.csv, line 2, column 'power_mw'" in process.err and process.err.count("\n") == 1
    assert tool("import", "--format", "csv", "-o", "x.jprof", status=2).err.count("\n") == 1
    tool("import", "--samples", "s.csv", "-o", "x.jprof", status=2)
    tool("import", "--format", "csv", "--samples", "none.csv", "-o", "x.jprof", status=3)
    assert not (tool.folder / "x.jprof").exists()


def test_annotation_changes_nothing_else(mix):
    rows = list(kernel_rows())
    text = torch_trace(rows)
    (mix.folder / "t.json").write_text(text)
    mix("annotate", "t.json", "--power", "mix.jprof", "-o", "a.json")
    annotated = (mix.folder / "a.json").read_text()
    is_same = without_ours(annotated) == text  # pytest would compare these megabytes line by line
    assert is_same
    events = json.loads(annotated)["traceEvents"]
    kernels = [e for e in events if e.get("cat", "").startswith(("kernel", "gpu_mem"))]
    assert len(kernels) == len(rows)
    sums = {}
    for event in kernels:
        args = event["args"]
        if args.get("energy", "").startswith("not resolvable"):
            assert args["energy high (J)"] > 0 and "energy (J)" not in args
            continue
        assert 0 <= args["energy low (J)"] <= args["energy (J)"] <= args["energy high (J)"]
        of_name = sums.setdefault(event["name"], [0, 0])
        of_name[0] += args["energy (J)"]
        of_name[1] += 1
    (own,) = [e["args"] for e in events if e["name"] == "jouleprof"]
    total = sum(energy for energy, _ in sums.values())
    # Kernels that are not resolvable have the rest.
    (table,) = json.loads(mix("report", "mix.jprof", "--by", "kernel", "--json").out)["devices"]
    rest = sum(row["energy_joules"] for row in table["rows"] if row["resolvable"] is False)
    assert total + rest == pytest.approx(own["gpu0"]["kernels (J)"], rel=1e-3)
    # Looped alone, a launch took 89.14 and 52.66 mJ with the idle power of 125.5 W.
    for name, truth, duration in (("Memcpy DtoD", 89.14e-3, 178.0e-6), ("layer_norm", 52.66e-3, 80.9e-6)):
        (energy,) = [e / n for key, (e, n) in sums.items() if name in key]
        assert energy + 125.5 * duration == pytest.approx(truth, rel=0.05), name
    operators = [e["args"]["energy (J)"] for e in events
                 if e.get("cat") == "cpu_op" and "energy (J)" in e["args"]]
    assert sum(operators) == pytest.approx(total, rel=1e-3)
    watts = [e["args"]["watts"] for e in events if e["ph"] == "C" and "95 %" not in e["name"]]
    assert 900 < len(watts) < 1100 and sum(watts) / len(watts) == pytest.approx(624.6, rel=0.01)


def test_reads_and_writes_compressed_traces(mix):
    text = torch_trace(list(kernel_rows())[:2000])
    with gzip.open(mix.folder / "t.json.gz", "wt") as file:
        file.write(text)
    mix("annotate", "t.json.gz", "--power", "mix.jprof", "-o", "a.json.gz")
    assert without_ours(gzip.open(mix.folder / "a.json.gz", "rt").read()) == text


def test_a_truncated_trace_is_completed(mix):
    text = torch_trace(list(kernel_rows())[:2000])
    (mix.folder / "t.json").write_text(text[:-500])
    process = mix("annotate", "t.json", "--power", "mix.jprof", "-o", "a.json")
    assert "cut off" in process.err
    kept = json.loads((mix.folder / "a.json").read_text())["traceEvents"]
    assert sum(e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy") for e in kept) == 1999


@pytest.mark.parametrize("content, word", [
    ("", "nothing in it"), ("hello", "begins neither"), ('{"a": 1}', "traceEvents"),
])
def test_other_files_are_refused(mix, content, word):
    (mix.folder / "t.json").write_text(content)
    process = mix("annotate", "t.json", "--power", "mix.jprof", "-o", "a.json", status=4)
    assert word in process.err and process.err.count("\n") == 1
    assert not (mix.folder / "a.json").exists()


def test_a_kernel_without_a_duration_has_no_energy(mix):
    number = 0

    def broken(found):
        nonlocal number
        number += 1
        return found[1] + ("-9.000" if number == 1 else "0") if number <= 2 else found[0]

    text = re.sub(r'("tid": 7,\s+"ts": [0-9.]+, "dur": )[0-9.]+', broken,
                  torch_trace(list(kernel_rows())[:2000]))
    (mix.folder / "trace.json").write_text(text)
    said = mix("annotate", "trace.json", "--power", "mix.jprof", "-o", "annotated.json").err
    assert f"2 of {number} kernels have no energy" in said
    events = json.loads((mix.folder / "annotated.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("tid") == 7]
    assert [e["args"].get("energy (J)") for e in kernels[:2]] == [None, None]
    assert "provenance" in kernels[2]["args"] and "provenance" not in kernels[1]["args"]


def test_a_trace_of_another_time(mix):
    text = torch_trace(list(kernel_rows())[:10]).replace(str(BASE_NS)[:8], str(BASE_NS + 10**12)[:8])
    (mix.folder / "t.json").write_text(text)
    process = mix("annotate", "t.json", "--power", "mix.jprof", "-o", "a.json", status=4)
    assert "no time in common" in process.err
    mix("annotate", "none.json", "--power", "mix.jprof", "-o", "a.json", status=3)
    mix("annotate", "t.json", "--power", "none.jprof", "-o", "a.json", status=3)


def test_a_trace_for_perfetto(mix):
    mix("export", "mix.jprof", "--format", "chrome", "-o", "m.json.gz")
    document = json.loads(gzip.open(mix.folder / "m.json.gz", "rt").read())
    events = document["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X"]
    rows = list(kernel_rows())
    assert len(kernels) == len(rows)
    assert all(e.get("ts", 0) >= 0 for e in events)
    first = min(kernels, key=lambda e: e["ts"])
    assert document["baseTimeNanoseconds"] + round(first["ts"] * 1000) == pytest.approx(
        BASE_NS + rows[0][1], abs=1000)
    assert sum(e["dur"] for e in kernels) == pytest.approx(sum(r[2] for r in rows) / 1000)
    assert {e["name"] for e in events if e["ph"] == "C"} == {
        "gpu0 power (W)", "gpu0 power (W), 95 % low", "gpu0 power (W), 95 % high"}
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert any("H100" in name for name in names) and "power" in names
