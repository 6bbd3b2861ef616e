"""What Zeus's own test of its energy monitor asks for, on simulated GPUs.

Zeus mocks NVML and its clock, and counts the calls of NVML. Here no call is counted, because begin and end
read no sensor, and figures are those of boards with a known power.
"""

import csv
import itertools
import time

import pytest

from jouleprof.zeus.monitor import ZeusMonitor

WATTS = (100, 200, 400)  # of gpu0, gpu1, gpu2
SLACK = 0.002            # seconds: between the wall clock and the monotonic one


@pytest.fixture
def gpus(machine):
    return machine.gpus(*({"generation": "hopper", "idle_watts": watts} for watts in WATTS))


def subsets(indices):
    for length in range(1, len(indices) + 1):
        yield from map(list, itertools.combinations(indices, length))


def cases():
    """CUDA_VISIBLE_DEVICES and gpu_indices in all combinations, each of them absent as well."""
    for visible in [None, *subsets(range(3))]:
        seen = list(range(3)) if visible is None else visible
        for indices in [None, *subsets(range(len(seen)))]:
            yield visible, indices


def watts_of(measurement):
    return {gpu: joules / measurement.time for gpu, joules in measurement.gpu_energy.items()}


@pytest.mark.parametrize("visible, indices", cases())
def test_indices_are_those_that_cuda_sees(gpus, monkeypatch, tmp_path, visible, indices):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, visible)))
    boards = list(range(3)) if visible is None else visible
    expected = list(range(len(boards))) if indices is None else indices
    log = tmp_path / "log.csv"
    monitor = ZeusMonitor(gpu_indices=indices, cpu_indices=[], log_file=log)
    try:
        assert monitor.gpu_indices == expected
        monitor.begin_window("w", sync_execution=False)
        time.sleep(0.05)
        measurement = monitor.end_window("w", sync_execution=False)
        measurement.wait()
        assert watts_of(measurement) == {i: pytest.approx(WATTS[boards[i]], rel=0.02) for i in expected}
        assert log.read_text().splitlines()[0] == ",".join(
            ["start_time", "window_name", "elapsed_time", *(f"gpu{i}_energy" for i in expected)])
    finally:
        monitor.monitor.close()


def final_rows(log):
    """The rows, once the log's thread has filled in all energies."""
    for _ in range(100):
        with open(log, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if all(value for row in rows for value in row.values()):
            break
        time.sleep(0.1)
    return rows


def test_windows_in_a_row_overlapping_and_nested(gpus, tmp_path):
    log = tmp_path / "log.csv"
    monitor = ZeusMonitor(cpu_indices=[], log_file=log)
    began, ended = {}, []

    def begin(name):
        before = time.time()
        monitor.begin_window(name, sync_execution=False)
        began[name] = before - SLACK, time.time() + SLACK
        state = monitor.measurement_states[name]
        assert began[name][0] <= state.time <= began[name][1]
        assert set(state.gpu_energy) == {0, 1, 2}

    def end(name):
        before = time.time()
        measurement = monitor.end_window(name, sync_execution=False)
        after = time.time()
        assert name not in monitor.measurement_states
        assert before - began[name][1] - SLACK <= measurement.time <= after - began[name][0] + SLACK
        ended.append((name, measurement))

    begin("window1")
    time.sleep(0.1)
    with pytest.raises(ValueError, match="already exists"):
        monitor.begin_window("window1", sync_execution=False)
    end("window1")
    with pytest.raises(ValueError, match="does not exist"):
        monitor.end_window("window1", sync_execution=False)
    with pytest.raises(ValueError, match="does not exist"):
        monitor.end_window("window2", sync_execution=False)

    begin("window3")
    time.sleep(0.1)
    begin("window4")
    time.sleep(0.1)
    end("window3")
    time.sleep(0.1)
    end("window4")

    begin("window5")
    begin("window6")
    time.sleep(0.1)
    end("window6")
    time.sleep(0.1)
    end("window5")

    for name, measurement in ended:
        measurement.wait()
        assert watts_of(measurement) == {i: pytest.approx(watts, rel=0.02) for i, watts in enumerate(WATTS)}, name
        assert measurement.total_energy == pytest.approx(sum(WATTS) * measurement.time, rel=0.02)
    monitor.monitor.close()
    rows = final_rows(log)
    assert [row["window_name"] for row in rows] == [name for name, _ in ended]
    for row, (name, measurement) in zip(rows, ended):
        assert began[name][0] <= float(row["start_time"]) <= began[name][1]
        assert float(row["elapsed_time"]) == pytest.approx(measurement.time)
        assert float(row["gpu1_energy"]) == pytest.approx(measurement.gpu_energy[1], rel=1e-3)
