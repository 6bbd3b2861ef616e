"""Questions to a recording: python experiment.py train.jprof

Write one with `jouleprof run -- python train.py`. Without an argument: h200-kernels.jprof of this folder.
"""

import pathlib
import sys

import jouleprof
from jouleprof import plot

recording = jouleprof.open(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("h200-kernels.jprof"))
print("gpu0:    ", recording.total("gpu0"))
print("mean:    ", recording.average("gpu0"))
print("largest: ", recording.max("gpu0"))
print("second 2 to 8:", recording.total("gpu0", start=2, end=8))
for row in recording.rows("processes"):
    print(row["command_line"], row["energy_joules"], "J (a share, estimated)")
for row in recording.rows("kernels")[:5]:
    print(row["name"][:60], row["energy_joules"], "J,", row["interval_low_joules"], "to", row["interval_high_joules"])
try:
    plot.curves(recording.curve("gpu0"), recording.curve("package-0"), output="power.png")
except jouleprof.Unavailable as error:
    print(error)
