"""Time and energy by power limit, as a figure: python power_limits.py sweep.jprof [report.png]

Write the file with `jouleprof sweep --limits 700,500,300 -- python train.py`, or give gpu-tune's CSV table.
"""

import sys

from jouleprof import plot

figure = plot.sweep(sys.argv[1], output=sys.argv[2] if len(sys.argv) > 2 else "report.png")
print(figure.get_suptitle())
