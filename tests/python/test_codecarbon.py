"""Scripts of CodeCarbon with the import changed, on a simulated GPU of 250 W."""

import csv
import dataclasses
import inspect
import subprocess
import sys
import threading
import time
import types

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof import codecarbon

COLUMNS = """timestamp project_name run_id experiment_id duration emissions emissions_rate cpu_power gpu_power ram_power
    cpu_energy gpu_energy ram_energy energy_consumed water_consumed country_name country_iso_code region cloud_provider
    cloud_region os python_version codecarbon_version cpu_count cpu_model gpu_count gpu_model longitude latitude
    ram_total_size tracking_mode cpu_utilization_percent gpu_utilization_percent ram_utilization_percent ram_used_gb
    on_cloud pue wue""".split()
# The examples of its documentation: a tracker, a `with`, decorators, tasks.
EXAMPLES = {
    "object": """
from codecarbon import EmissionsTracker

tracker = EmissionsTracker()
tracker.start()
try:
    work()
finally:
    emissions = tracker.stop()
print(f"Emissions: {emissions} kg CO2")
assert emissions > 0 and tracker.final_emissions_data.energy_consumed > 0
""",
    "context": """
from codecarbon import EmissionsTracker

with EmissionsTracker(project_name="mnist", measure_power_secs=10, output_dir=".", log_level="error") as tracker:
    work()
assert tracker.final_emissions > 0
""",
    "decorator": """
from codecarbon import track_emissions

@track_emissions(project_name="mnist", measure_power_secs=5)
def train_model(steps, scale=1):
    work()
    return steps * scale

assert train_model(3, scale=2) == 6
""",
    "bare decorator": """
from codecarbon import track_emissions

@track_emissions
def train_model():
    work()

@track_emissions()
def other():
    pass

train_model()
""",
    "offline": """
from codecarbon import OfflineEmissionsTracker, track_emissions

tracker = OfflineEmissionsTracker(country_iso_code="FRA", carbon_file="world.csv")
tracker.start()
work()
tracker.stop()
assert tracker.final_emissions_data.country_name == "France"

@track_emissions(offline=True, country_iso_code="CAN", carbon_file="world.csv", output_file="canada.csv")
def train_model():
    work()

train_model()
""",
    "tasks": """
from codecarbon import EmissionsTracker

tracker = EmissionsTracker(project_name="bert_inference", measure_power_secs=10)
try:
    tracker.start_task("load dataset")
    work()
    first = tracker.stop_task()
    tracker.start_task("build model")
    work()
    second = tracker.stop_task()
finally:
    _ = tracker.stop()
assert tracker.final_emissions_data.energy_consumed >= first.energy_consumed + second.energy_consumed
""",
}
WORLD = """Entity,Code,Year,Carbon intensity of electricity - gCO2/KWh
Canada,CAN,2023,100
France,FRA,2022,90
Canada,CAN,2024,150
France,FRA,2024,50
World,,2024,480
"""


@pytest.fixture
def folder(machine, monkeypatch):
    machine.gpus(CONSTANT)
    monkeypatch.chdir(machine.folder)
    monkeypatch.setenv("HOME", str(machine.folder))
    (machine.folder / "world.csv").write_text(WORLD)
    yield machine.folder
    jouleprof.monitor().close()


def rows(path="emissions.csv"):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXAMPLES)
def test_documented_examples_run_with_the_import_changed(folder, monkeypatch, name):
    monkeypatch.setenv("CODECARBON_FORCE_CARBON_INTENSITY_G_CO2E_KWH", "400")
    if name == "offline":
        monkeypatch.delenv("CODECARBON_FORCE_CARBON_INTENSITY_G_CO2E_KWH")
    script = "import time\n\ndef work():\n    time.sleep(0.2)\n" + EXAMPLES[name].replace("from codecarbon", "from jouleprof.codecarbon")
    done = subprocess.run([sys.executable, "-c", script], check=False, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for row in rows():
        kwh = float(row["gpu_energy"])
        assert list(row) == COLUMNS
        assert 3.6e6 * kwh == pytest.approx(250 * float(row["duration"]), rel=0.15)
        assert float(row["gpu_power"]) == pytest.approx(250, rel=0.15)
        grams = 50 if name == "offline" else 400
        assert 1e3 * float(row["emissions"]) == pytest.approx(grams * float(row["energy_consumed"]))
        assert "SIMULATED" in row["codecarbon_version"] or "ESTIMATED" in row["codecarbon_version"]
    if name == "offline":
        (row,) = rows("canada.csv")
        assert 1e3 * float(row["emissions"]) == pytest.approx(150 * float(row["energy_consumed"]))
    if name == "tasks":
        tasks = rows(next(folder.glob("emissions_base_*.csv")))
        assert [row["task_name"] for row in tasks] == ["load dataset", "build model"]
        assert all(float(row["gpu_energy"]) > 0 for row in tasks)


def test_a_factor_has_to_be_given(folder):
    with pytest.raises(jouleprof.InvalidArgument, match="none is built in: give force_carbon_intensity_g_co2e_kwh"):
        codecarbon.EmissionsTracker()
    with pytest.raises(ValueError, match="carbon_file needs country_iso_code"):
        codecarbon.OfflineEmissionsTracker(carbon_file="world.csv")
    with pytest.raises(jouleprof.NotFound, match="no carbon intensity of 'XYZ'"):
        codecarbon.OfflineEmissionsTracker(carbon_file="world.csv", country_iso_code="XYZ")
    with pytest.raises(FileNotFoundError, match="absent.csv does not exist"):
        codecarbon.OfflineEmissionsTracker(carbon_file="absent.csv", country_iso_code="FRA")
    (folder / "odd.csv").write_text("a,b\n1,2\n")
    with pytest.raises(jouleprof.Corrupt, match="odd.csv is no table of carbon intensities"):
        codecarbon.OfflineEmissionsTracker(carbon_file="odd.csv", country_iso_code="FRA")
    ran = []
    with pytest.raises(jouleprof.InvalidArgument, match="none is built in"):
        codecarbon.track_emissions(ran.append)(1)
    assert not ran


@pytest.mark.parametrize("text", ['{"FRA": {"carbon_intensity": 50, "country_name": "France"}}', '{"fra": 50}'])
def test_a_country_in_json(folder, text):
    (folder / "mix.json").write_text(text)
    with codecarbon.OfflineEmissionsTracker(country_iso_code="FRA", carbon_file="mix.json", save_to_file=False) as tracker:
        time.sleep(0.1)
    data = tracker.final_emissions_data
    assert 1e3 * data.emissions == pytest.approx(50 * data.energy_consumed)
    assert not (folder / "emissions.csv").exists()


def test_configuration_files_and_the_environment(folder, monkeypatch):
    (folder / ".codecarbon.config").write_text(
        "[codecarbon]\nforce_carbon_intensity_g_co2e_kwh = 100\nproject_name = from the file\npue = 2\n")
    monkeypatch.setenv("CODECARBON_PROJECT_NAME", "from the environment")
    with codecarbon.EmissionsTracker(wue=1.5) as tracker:
        time.sleep(0.1)
    data, measured = tracker.final_emissions_data, tracker.measurement
    assert data.project_name == "from the environment"
    assert data.energy_consumed == pytest.approx(2 * measured.kwh)
    assert data.gpu_power == pytest.approx(measured["gpu"].joules / measured.time)  # without the PUE
    assert data.water_consumed == pytest.approx(1.5 * data.energy_consumed)
    assert codecarbon.EmissionsTracker(project_name="mine")._name() == "mine"


def test_rows_are_added_or_replaced_and_other_files_kept(folder):
    options = {"force_carbon_intensity_g_co2e_kwh": 100}
    first = codecarbon.EmissionsTracker(**options, on_csv_write="update", project_name="=1+1")
    first.start()
    time.sleep(0.1)
    assert first.flush() > 0 and first.stop() > 0
    assert first.stop() == first.final_emissions
    (row,) = rows()
    assert row["project_name"] == "'=1+1" and float(row["energy_consumed"]) == first.final_emissions_data.energy_consumed
    with codecarbon.EmissionsTracker(**options):
        pass
    assert len(rows()) == 2
    (folder / "emissions.csv").write_text("a,b\n1,2\n")
    with codecarbon.EmissionsTracker(**options):
        pass
    assert len(rows()) == 1 and (folder / "emissions.csv.bak").read_text() == "a,b\n1,2\n"


def test_absent_figures_are_empty_cells(folder):
    with codecarbon.EmissionsTracker(gpu_ids="0", force_carbon_intensity_g_co2e_kwh=100) as tracker:
        time.sleep(0.1)
    (row,) = rows()
    assert tracker.final_emissions_data.gpu_count == 1 and row["gpu_model"].startswith("1 x ")
    absent = tracker.measurement["dram"].joules is None
    assert not absent or (row["ram_energy"], row["ram_power"]) == ("", "")
    assert row["water_consumed"] == row["longitude"] == row["ram_used_gb"] == ""


def test_a_machine_without_a_gpu_has_no_row_of_one(folder, monkeypatch):
    monkeypatch.setenv("JOULEPROF_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1")
    with codecarbon.EmissionsTracker(force_carbon_intensity_g_co2e_kwh=100) as tracker:
        pass
    assert tracker.final_emissions_data.gpu_count is None
    (row,) = rows()
    assert row["gpu_count"] == row["gpu_model"] == row["gpu_energy"] == ""


def test_the_arguments_are_those_of_codecarbon():
    with pytest.raises(TypeError, match="EmissionsTracker: got an unexpected keyword argument 'projct'"):
        codecarbon.EmissionsTracker(projct="x")
    with pytest.raises(TypeError):
        codecarbon.track_emissions(force_mode_cpu_load=True)
    assert list(inspect.signature(codecarbon.EmissionsTracker).parameters)[:2] == ["project_name", "measure_power_secs"]


def test_the_real_one_has_the_same_arguments():
    real = pytest.importorskip("codecarbon")
    extra = {"carbon_file", "country_iso_code"}
    for name in ("EmissionsTracker", "OfflineEmissionsTracker"):
        mine = inspect.signature(getattr(codecarbon, name)).parameters
        theirs = {n for c in getattr(real, name).__mro__ if "__init__" in vars(c)
                  for n, p in inspect.signature(vars(c)["__init__"]).parameters.items() if p.kind.name[:3] != "VAR"}
        assert theirs - {"self"} <= set(mine) and set(mine) - theirs <= extra
    theirs = inspect.signature(real.track_emissions).parameters
    assert list(theirs) == ["fn", *codecarbon._DECORATOR]


def test_what_is_not_done_is_said(folder, caplog):
    codecarbon.EmissionsTracker(save_to_api=True, tracking_mode="process", force_carbon_intensity_g_co2e_kwh=1)
    assert "without effect here: save_to_api" in caplog.text and "the energy is the machine's" in caplog.text


def test_without_a_logger_the_row_is_in_pythons_log(folder, caplog):
    with caplog.at_level("INFO", logger="jouleprof.codecarbon"):
        with codecarbon.EmissionsTracker(
            force_carbon_intensity_g_co2e_kwh=56, save_to_file=False, save_to_logger=True, project_name="logged"
        ):
            time.sleep(0.3)
    assert '"project_name": "logged"' in caplog.text


def test_trackers_that_end_at_once_all_have_their_row(folder):
    with codecarbon.EmissionsTracker(force_carbon_intensity_g_co2e_kwh=56, save_to_file=False) as tracker:
        time.sleep(0.05)
    for name in ("a", "b", "c", "d", "e"):
        together, failed = threading.Barrier(8), []

        def write(i, name=name, together=together, failed=failed):
            files = codecarbon._Files({"output_file": f"{name}.csv"})
            together.wait()
            try:
                files.write(dataclasses.replace(tracker.final_emissions_data, run_id=str(i)), [])
            except OSError as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert {row["run_id"] for row in rows(f"{name}.csv")} == {str(i) for i in range(8)}


def test_a_task_of_a_loop_ends_by_its_name(folder):
    with codecarbon.EmissionsTracker(force_carbon_intensity_g_co2e_kwh=56) as tracker:
        for _ in range(3):
            tracker.start_task("train")
            time.sleep(0.1)
            assert tracker.stop_task("train").duration == pytest.approx(0.1, abs=0.08)
            time.sleep(0.2)
    tasks = rows(next(folder.glob("emissions_base_*.csv")))
    assert [row["task_name"][:6] for row in tasks] == ["train"] + ["train_"] * 2


def test_outputs_and_gpus_as_users_write_them(folder, caplog):
    options = {"force_carbon_intensity_g_co2e_kwh": 1}
    with pytest.raises(jouleprof.InvalidArgument, match=r"output_methods has csv, .*; not \['cvs'\]"):
        codecarbon.EmissionsTracker(output_methods=["cvs"], **options)
    assert codecarbon.EmissionsTracker(output_methods=["CSV"], **options)._files._writes
    codecarbon.EmissionsTracker(output_methods="csv, api", **options)
    assert "without effect here: output_methods api" in caplog.text
    for gpus in (0, "0", [0], "[0]"):
        assert codecarbon.EmissionsTracker(gpu_ids=gpus, **options)._devices == ["gpu0", "cpu", "dram"]


def test_what_fails_at_the_end_ends_no_program_and_hides_no_error_of_it(folder, caplog):
    class Output:
        def out(self, total, delta):
            raise RuntimeError("full")

    taken = []
    last = types.SimpleNamespace(out=lambda total, delta: taken.append(total))
    (folder / "gone").mkdir()
    options = {"force_carbon_intensity_g_co2e_kwh": 100, "output_dir": "gone", "output_handlers": [Output(), last]}
    with pytest.raises(KeyError, match="of the program"), codecarbon.EmissionsTracker(**options) as tracker:
        time.sleep(0.1)
        (folder / "gone").rmdir()
        assert tracker.flush() > 0
        raise KeyError("of the program")
    assert tracker.final_emissions > 0 and taken[-1] == tracker.final_emissions_data
    assert "emissions.csv lacks a row; final_emissions_data has it: FileNotFoundError" in caplog.text
    assert "has not taken the figures: RuntimeError: full" in caplog.text

    (folder / "gone").mkdir()
    tracker.start_task("load")
    jouleprof.monitor().close()  # as the program's own use of it may
    assert tracker.flush() is None and tracker.stop_task() is None and tracker.stop() is None
    assert tracker.final_emissions is None and "no emissions are known, and none are written: Unavailable" in caplog.text
