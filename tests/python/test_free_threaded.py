"""Builds of Python without the GIL are refused by name."""

import subprocess
import sys


def test_the_import_refuses_a_free_threaded_build():
    program = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1; import jouleprof"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 1
    assert "ImportError: jouleprof does not support free-threaded Python" in result.stderr
