"""Carbon and price, by the names of Zeus: constant and of a file."""

import datetime
import time

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof.zeus.monitor.carbon import (
    CarbonEmissionMonitor,
    CarbonIntensityProvider,
    ConstantCarbonIntensity,
    FileCarbonIntensity,
)
from jouleprof.zeus.monitor.price import ConstantElectricityPrice, EnergyCostMonitor, FileElectricityPrice


def measured(monitor, seconds=0.3):
    monitor.begin_window("x", sync_execution=False)
    time.sleep(seconds)
    m = monitor.end_window("x", sync_execution=False)
    monitor.zeus_monitor.monitor.close()
    return m


def utc(unix):
    return datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).isoformat()


def test_a_constant_intensity(machine):
    machine.gpus(CONSTANT)
    m = measured(CarbonEmissionMonitor(ConstantCarbonIntensity(400), gpu_indices=[0], cpu_indices=[]))
    assert m.gpu_carbon_emission == {0: pytest.approx(m.gpu_energy[0] / 3.6e6 * 400)}
    assert m.gpu_energy[0] == pytest.approx(250 * m.time, rel=0.05)
    assert m.cpu_energy is None is m.cpu_carbon_emission
    with pytest.raises(ValueError):
        ConstantCarbonIntensity(-1)


def test_a_class_of_ones_own(machine):
    class Mine(CarbonIntensityProvider):
        def get_current_carbon_intensity(self):
            return 100.0

    machine.gpus(CONSTANT)
    m = measured(CarbonEmissionMonitor(Mine(), gpu_indices=[0]))
    assert m.gpu_carbon_emission[0] == pytest.approx(m.gpu_energy[0] / 3.6e6 * 100)


def test_an_intensity_that_changes_within_the_window(machine, tmp_path):
    machine.gpus(CONSTANT)
    path = tmp_path / "zone.csv"
    monitor = CarbonEmissionMonitor(None, gpu_indices=[0])
    now = time.time()
    path.write_text("Datetime (UTC),Zone,Carbon intensity gCO2eq/kWh (Life cycle)\n"
                    f"{utc(now - 3600)},DE,100\n{utc(now + 0.5)},DE,500\n")
    monitor._provider = FileCarbonIntensity(path)
    m = measured(monitor, 1)
    assert m.gpu_carbon_emission[0] / m.gpu_energy[0] * 3.6e6 == pytest.approx(300, abs=30)


def test_prices(machine, tmp_path):
    machine.gpus(CONSTANT)
    m = measured(EnergyCostMonitor(ConstantElectricityPrice(0.3), gpu_indices=[0]))
    assert m.gpu_energy_cost == {0: pytest.approx(m.gpu_energy[0] / 3.6e6 * 0.3)}
    path = tmp_path / "prices.csv"
    path.write_text(f"time,price\n{utc(time.time() - 60)},0.4\n")
    assert FileElectricityPrice(path).get_current_electricity_price() == 0.4


def test_files_that_say_nothing(tmp_path):
    path = tmp_path / "zone.csv"
    path.write_text("a,b\n")
    with pytest.raises(jouleprof.Corrupt, match="no columns"):
        FileCarbonIntensity(path)
    path.write_text("Datetime (UTC),Carbon intensity\nyesterday,3\n")
    with pytest.raises(jouleprof.Corrupt, match="zone.csv:2"):
        FileCarbonIntensity(path)
    path.write_text("Datetime (UTC),Carbon intensity\n2020-01-01T00:00:00+00:00,3\n")
    with pytest.raises(jouleprof.NotFound, match="has no value for"):
        FileCarbonIntensity(path).get_current_carbon_intensity()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", None])
def test_a_factor_is_a_number(value, tmp_path):
    with pytest.raises(jouleprof.InvalidArgument, match="a factor per kilowatt-hour is a number"):
        ConstantCarbonIntensity(value)
    (tmp_path / "price.csv").write_text(f"time,price\n2026-01-01T00:00:00Z,-0.02\n2026-01-01T01:00:00Z,{value}\n")
    with pytest.raises(jouleprof.Corrupt, match="price.csv:3"):
        FileElectricityPrice(tmp_path / "price.csv")
