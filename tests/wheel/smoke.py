"""An installed wheel works by itself: the library beside the extension, and a window on whatever this
machine has."""

import pathlib

import jouleprof
from jouleprof import zeus

folder = pathlib.Path(jouleprof.__file__).parent
assert list(folder.glob("libjouleprof.so*")), sorted(folder.iterdir())
assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()
assert zeus.ZeusMonitor
try:
    with jouleprof.window("smoke") as window:
        sum(range(1_000_000))
    print(window.energy)
except jouleprof.Unavailable as error:
    print(error)
print(jouleprof.__version__)
