"""A pytest plugin: tests with a limit on their energy.

    @pytest.mark.energy(max_joules=50, baseline="main")
    def test_inference(): ...

The body of the test is measured, not its fixtures. docs/pytest.md has the options and the rules.
"""

import argparse

import pytest

# The package may be installed where an older pytest runs tests without this mark.
_IS_OLD = getattr(pytest, "version_tuple", (0,)) < (8,)


def pytest_addoption(parser):
    group = parser.getgroup("jouleprof", "energy of tests")
    group.addoption("--jouleprof-save-baseline", action="store_true",
                    help="add the energies of this session to the baselines that the marks name")
    group.addoption("--jouleprof-compare-fail", metavar="PERCENT", type=_percent,
                    help="fail tests whose energy is higher than their baseline's by more than "
                         "this: the lower bound of the 95%% interval decides")
    group.addoption("--jouleprof-require", action="store_true",
                    help="fail tests whose energy cannot be measured, instead of skipping them")
    parser.addini("jouleprof_baselines", "folder of the baselines, from pytest's root folder",
                  default=".jouleprof")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "energy(max_joules=None, baseline=None, devices=None): measure the test's energy; "
                   "fail where it is above max_joules, or above the baseline's by more than "
                   "--jouleprof-compare-fail")
    if not _IS_OLD:
        from ._tests import EnergyTests

        config.pluginmanager.register(EnergyTests(config), "jouleprof-energy-tests")


def pytest_collection_modifyitems(items):
    if _IS_OLD and any(item.get_closest_marker("energy") for item in items):
        raise pytest.UsageError("the mark energy needs pytest 8 or newer: pip install 'pytest>=8'")


def _percent(text):
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        value = -1
    if not 0 <= value < 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage of 0 or more, such as 5%")
    return value / 100
