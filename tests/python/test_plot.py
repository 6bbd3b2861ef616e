"""jouleprof.plot: what the figures of a table, a sweep and recordings show."""

import csv
import json
import os
import re
import subprocess
import sys
import time

import pytest

pytest.importorskip("matplotlib")
import jouleprof  # noqa: E402
from jouleprof import Corrupt, NotFound, plot  # noqa: E402
from jouleprof.plot._sweeps import monotone  # noqa: E402

TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
BOARD = {"generation": "hopper", "idle_watts": 120, "power": {"shape": "constant", "watts": 600},
         "power_limit": {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}}
TABLE = """max_watt,tokens_per_sec,total_power_draw,temperature,gpu_utilization,memory_utilization
300,100,290,70,99,50
300,100,310,72,97,50
200,80,200,60,95,
250,0,100,20,0,
100,25,100,50,90,40
"""
# Two units of work at each limit; 200 W slows it.
WORK = """
import ctypes, os, time
sim = ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])
sim.nvmlInit_v2()
sim.jouleprof_nvml_sim_speed_ratio.restype = ctypes.c_double
speed = sim.jouleprof_nvml_sim_speed_ratio(0)
for _ in range(4):
    time.sleep(0.1 / speed)
    print(f"{10 * speed:.6f} units/s", flush=True)
"""


@pytest.fixture
def tool(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)
    monkeypatch.setenv("JOULEPROF_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("JOULEPROF_NVML_EPOCH", str(int(time.time()) - 5))
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(tmp_path / "control"))
    machine.gpus(BOARD)
    return lambda *words: subprocess.run([TOOL, *map(str, words)], cwd=tmp_path, check=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


@pytest.fixture
def table(tool, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def title_of(axis):
    return axis.get_title(loc="left")


def panels(figure):
    return {title_of(axis): axis for axis in figure.axes if axis.get_visible()}


def points(axis, gid="raw"):
    lines = [line for line in axis.lines if line.get_gid() == gid]
    return sorted((x, y) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata()))


def words(axis):
    return " ".join(" ".join(text.get_text() for text in axis.texts).split())


def test_a_table_has_all_panels_with_each_row_as_a_dot(table, tmp_path):
    figure = plot.sweep(table, output=tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    shown = panels(figure)
    assert list(shown) == [
        "throughput (tokens/s)", "time per token (s)", "energy per token (J)", "mean power (W)",
        "temperature (\N{DEGREE SIGN}C)", "utilisation of compute (%)", "utilisation of memory (%)", "summary"]
    # The row without tokens is in no panel.
    assert points(shown["energy per token (J)"]) == [(100, 4), (200, 2.5), (300, 2.9), (300, 3.1)]
    assert points(shown["throughput (tokens/s)"]) == [(100, 25), (200, 80), (300, 100), (300, 100)]
    assert points(shown["temperature (\N{DEGREE SIGN}C)"]) == [(100, 50), (200, 60), (300, 70), (300, 72)]
    assert points(shown["utilisation of memory (%)"]) == [(100, 40), (300, 50), (300, 50)]
    assert all(axis.get_xlabel() == "power limit (W)" for name, axis in shown.items() if name != "summary")


def test_the_recommended_point_is_marked_in_each_panel(table):
    shown = panels(plot.sweep(table))
    assert points(shown["energy per token (J)"], "recommended") == [(200, pytest.approx(2.5))]
    assert points(shown["mean power (W)"], "recommended") == [(200, pytest.approx(200))]
    assert points(shown["temperature (\N{DEGREE SIGN}C)"], "recommended") == [(200, 60)]
    assert "energy -16.7 %" in words(shown["summary"]) and "time +25.0 %" in words(shown["summary"])
    # Of energy the repetitions at 300 W give a spread, of time they are equal.
    assert "energy -16.7 % (" in words(shown["summary"]) and "time +25.0 % (" not in words(shown["summary"])
    fast = panels(plot.sweep(table, max_slowdown="5%"))
    assert points(fast["energy per token (J)"], "recommended") == [(300, pytest.approx(3))]


def test_units_of_work_can_be_converted(table):
    shown = panels(plot.sweep(table, unit="request", per=0.01))  # of 100 tokens
    assert points(shown["energy per request (J)"])[1] == (200, pytest.approx(250))
    assert points(shown["throughput (requests/s)"])[1] == (200, pytest.approx(0.8))


def test_a_sweep_shows_ranked_settings_with_intervals_and_names_the_others(tool, tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    tool("sweep", "--limits", "700,650,200", "--repeats", "2", "--min-repeats", "2",
         "--throughput", "([0-9.]+) units/s", "--", sys.executable, "work.py")
    figure = plot.sweep(tmp_path / "sweep.jprof", unit="token")
    assert jouleprof.open(tmp_path / "sweep.jprof", run=1).total("gpu0").joules > 0
    shown = panels(figure)
    assert "200 W is the recommended power limit" in figure.get_suptitle()
    for name, axis in shown.items():
        if name != "summary":  # 650 W was never reached
            assert {x for x, _ in points(axis)} == {200, 700}, name
    assert {"SM clock (MHz)", "temperature at the end (\N{DEGREE SIGN}C)"} < set(shown)
    energy = shown["energy per token (J)"]
    assert len(points(energy)) == 4
    bar = next(line for line in energy.lines if list(line.get_xdata()) == [200, 200])
    low, high = bar.get_ydata()
    assert low <= points(energy, "recommended")[0][1] <= high
    assert "not ranked 650 W: never reached" in words(shown["summary"])


def test_one_sweep_of_training_and_inference_gives_two_tables(tool, tmp_path):
    (tmp_path / "work.py").write_text(WORK.replace("for _ in range(4):", """import jouleprof
monitor = jouleprof.Monitor()
for name in ("training", "training", "inference"):""").replace(
        "    time.sleep(0.1 / speed)", "    with monitor.window(name):\n        time.sleep(0.2 / speed)\n    print('loss:', 0.25)"))
    tool("sweep", "--limits", "700,200", "--repeats", "2", "--min-repeats", "2", "--", sys.executable, "work.py")
    for window, per in (("training", 100), ("inference", 50)):
        rows = plot.save_table(tmp_path / "sweep.jprof", tmp_path / f"{window}_stats.csv", window=window, per=per)
        table = list(csv.DictReader((tmp_path / f"{window}_stats.csv").open()))
        assert rows == len(table) == 4 and sorted(row["max_watt"] for row in table) == ["200", "200", "700", "700"]
        for row in table:
            watts = min(600, float(row["max_watt"]))
            assert float(row["total_power_draw"]) == pytest.approx(watts, rel=0.05)
            assert float(row["energy_per_token"]) == pytest.approx(
                float(row["total_power_draw"]) / float(row["tokens_per_sec"]))
            assert row["loss"] == "0.25" and row["temperature"] == "" and row["provenance"] == "simulated"
    with pytest.raises(jouleprof.Unavailable, match="no ranked run with a window 'rest'"):
        plot.save_table(tmp_path / "sweep.jprof", tmp_path / "none.csv", window="rest")
    assert plot.save_table(tmp_path / "sweep.jprof", tmp_path / "all.csv") == 4


def test_rows_far_from_the_others_are_named_and_the_loss_is_drawn(tool, tmp_path):
    path = tmp_path / "training_stats.csv"
    rows = [f"{limit},{limit / 2 + i % 5},{limit - 10},{3 - i / 40}" for limit in (200, 300) for i in range(20)]
    rows[7] = "200,500,190,2.8"
    path.write_text("max_watt,tokens_per_sec,total_power_draw,loss\n" + "\n".join(rows) + "\n")
    shown = panels(plot.sweep(path))
    assert "1 of 20 rows at 200 W left out, far from the others: line 9" in words(shown["summary"])
    assert len(points(shown["loss"])) == 40


def test_two_sweeps_are_on_one_figure(table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(TABLE.replace("200,80,200", "200,80,400"))
    figure = plot.compare_sweeps(table, other)
    energy, run_time, summary = figure.axes
    assert re.search(r"\(\d{4}-\d\d-\d\d \d\d:\d\d\)$", figure.get_suptitle())
    assert "table.csv recommended 200 W" in words(summary) and "other.csv recommended" in words(summary)
    assert [text.get_text() for text in energy.get_legend().get_texts()] == ["table.csv", "other.csv"]
    assert (200, 2.5) in points(energy) and (200, 5) in points(energy)
    assert title_of(run_time) == "time per token (s)"


def test_curves_of_recordings_have_intervals(tool, tmp_path):
    for name in ("one.jprof", "two.jprof"):
        tool("run", "-q", "--idle", "0s", "-o", name, "--", "sleep", "1")
    (axis,) = plot.power(tmp_path / "one.jprof", tmp_path / "two.jprof").axes
    names = [text.get_text() for text in axis.get_legend().get_texts()]
    assert names == ["one.jprof: gpu0 SIMULATED", "two.jprof: gpu0 SIMULATED"]
    curves = [line for line in axis.lines if line.get_label() in names]
    assert all(watts == pytest.approx(600, rel=0.01) for line in curves for watts in line.get_ydata())
    assert all(line.get_xdata()[0] < 0.5 for line in curves)
    assert len(axis.collections) == 2  # the intervals
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() < 600 < band.max()


def test_two_curves_have_an_axis_each(tool, tmp_path):
    import pathlib

    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "h200-kernels.jprof"
    recording = jouleprof.open(example)
    gpu, cpu = recording.curve("gpu0", 0, 15), recording.curve("package-0", 0, 15)
    left, right = plot.curves(gpu, cpu, labels=["GPU", "CPU"], output=tmp_path / "two.svg").axes
    assert "<svg" in (tmp_path / "two.svg").read_text()
    assert list(left.lines[0].get_ydata()) == gpu.watts and list(right.lines[0].get_ydata()) == cpu.watts
    assert left.get_ylim()[0] == right.get_ylim()[0] == 0
    assert (left.get_ylabel(), right.get_ylabel()) == ("GPU (W)", "CPU ESTIMATED (W)")
    assert len(left.collections) == len(right.collections) == 1  # the intervals
    assert len(plot.curves(gpu).axes) == 1
    for labels in (["GPU"], ["GPU", "CPU", "DRAM"], "GC"):
        with pytest.raises(jouleprof.InvalidArgument, match="one text for each of the 2 curves"):
            plot.curves(gpu, cpu, labels=labels)


def test_two_curves_of_one_name_share_an_axis(tool):
    import pathlib

    examples = pathlib.Path(__file__).resolve().parents[2] / "examples"
    low, high = (jouleprof.open(examples / f"h200-{name}.jprof").curve("gpu0", 0, 15) for name in ("layers", "deit"))
    axis, = plot.curves(low, high).axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["h200-layers.jprof: gpu0", "h200-deit.jprof: gpu0"]
    assert axis.get_ylabel() == "gpu0 (W)"
    assert axis.get_ylim()[0] == 0 and axis.get_ylim()[1] >= max(high.watts) > max(low.watts)


def test_the_curve_rises_and_falls_only_where_the_points_do():
    xs, ys = monotone([(3, 5), (0, 0), (1, 0), (2, 5)])
    assert (xs[0], ys[0], xs[-1], ys[-1]) == (0, 0, 3, 5)
    assert all(b >= a - 1e-12 for a, b in zip(ys, ys[1:]))
    assert monotone([(1, 1)]) == ([], [])
    assert monotone([(0, 0), (2, 4)])[1][20] == pytest.approx(2)  # two points: a straight line


def test_what_cannot_be_drawn_says_why(tool, tmp_path):
    with pytest.raises(NotFound, match="absent.jprof does not exist"):
        plot.sweep(tmp_path / "absent.jprof")
    tool("run", "-q", "--idle", "0s", "-o", "run.jprof", "--", "true")
    with pytest.raises(Corrupt, match="no sweep"):
        plot.sweep(tmp_path / "run.jprof")


def test_the_command_draws_what_the_files_are(table, tmp_path):
    def draw(*files, status=0):
        done = subprocess.run([sys.executable, "-m", "jouleprof.plot", *files, "-o", "figure.svg"], cwd=tmp_path,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == status, done.stderr
        return done.stderr

    assert "wrote figure.svg" in draw("table.csv")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    assert "absent.csv does not exist" in draw("absent.csv", status=1)
    (tmp_path / "scenario.txt").write_text(json.dumps(BOARD))
    assert "jouleprof.plot: " in draw("scenario.txt", status=1)


def test_a_long_curve_has_no_more_steps_than_a_figure_has_places():
    pytest.importorskip("matplotlib")
    from jouleprof._recorded.curves import Curve
    from jouleprof.plot import curves

    # An hour of 100 W and 300 W in turns, of 20.05 s each pair.
    seconds = [0.1 * i for i in range(36000)]
    watts = [300 if t % 20.05 < 10 else 100 for t in seconds]
    figure = curves(Curve("gpu0", seconds, watts, [w - 5 for w in watts], [w + 5 for w in watts]))
    (axis,) = figure.axes
    drawn = axis.lines[0].get_ydata()
    assert len(drawn) <= 100
    assert max(drawn) - min(drawn) < 60  # the means neither swing nor decay as short bins would
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == 95 and band.max() == 305
    assert "means of 72 s" in axis.get_title(loc="left")


def test_figures_of_nothing_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recording = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "h200-deit.jprof")
    for call in (plot.power, plot.compare_sweeps):
        with pytest.raises(jouleprof.InvalidArgument, match="takes the paths of"):
            call()
    with pytest.raises(NotFound, match="has no curve of 'gpu1'; it has: gpu0"):
        plot.power(recording, domains=["gpu1"])
    with pytest.raises(NotFound, match="has no curve of 'gpu01'"):
        plot.power(recording, domains="gpu01")  # it holds "gpu0"
    assert len(plot.power(recording, domains="gpu0").axes[0].get_lines()) == 1
    with pytest.raises(jouleprof.InvalidArgument, match="cannot write power.xyz: Format 'xyz'"):
        plot.power(recording, output="power.xyz")
    with pytest.raises(NotFound, match="there is no folder nix; create it first"):
        plot.power(recording, output="nix/power.png")


def test_units_of_nonsense(tmp_path):
    (tmp_path / "samples.csv").write_text(TABLE)
    for per in (-1, 0, float("nan"), "x"):
        with pytest.raises(jouleprof.InvalidArgument, match="per is a number"):
            plot.sweep(tmp_path / "samples.csv", per=per)
    with pytest.raises(jouleprof.InvalidArgument, match="unit is a text, not 3"):
        plot.sweep(tmp_path / "samples.csv", unit=3)


def test_a_name_with_signs_of_a_uri(tmp_path):
    (tmp_path / "a?b#c%20.csv").write_text(TABLE)
    assert plot.sweep(tmp_path / "a?b#c%20.csv").axes
    assert [file.name for file in tmp_path.iterdir()] == ["a?b#c%20.csv"]


def test_sweeps_without_an_energy_are_not_compared(monkeypatch):
    monkeypatch.setattr(plot._sweeps, "read_sweep",
                        lambda path: plot._data.SweepData(path, "power limit", "W", "run", [], None, None, {}, {}, []))
    with pytest.raises(jouleprof.Unavailable, match="a.jprof has no setting whose energy can be drawn; `jouleprof recommend"):
        plot.compare_sweeps("a.jprof", "b.jprof")
