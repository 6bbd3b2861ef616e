"""python -m jouleprof.plot FILE... [-o report.png]: the figure of a sweep, or the curves of recordings."""

import argparse
import sys

from .._errors import Error
from . import compare_sweeps, power, save_table, sweep
from ._data import is_sweep


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m jouleprof.plot", description="Draws one sweep, several sweeps, or the power of recordings.")
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="sweep.jprof, an imported sweep, a table of gpu-tune, or recordings")
    parser.add_argument("-o", "--output", default="report.png", help="PNG, SVG or PDF by its ending (default: report.png)")
    parser.add_argument("--unit", help="what one unit of the sweep's work is, such as token")
    parser.add_argument("--per", type=float, default=1,
                        help="so many of them are in one measured unit, such as the tokens of an iteration")
    parser.add_argument("--objective", help="energy, edp, ed2p, cost or time; default: the sweep's")
    parser.add_argument("--max-slowdown", help="such as 5%%; default: the sweep's")
    parser.add_argument("--table", metavar="CSV", help="write a sweep's runs as a table of gpu-tune, and no figure")
    parser.add_argument("--window", help="with --table: of each run its windows of this name")
    options = parser.parse_args(arguments)
    asked = {"unit": options.unit, "per": options.per, "objective": options.objective,
             "max_slowdown": options.max_slowdown}
    try:
        if options.table:
            if len(options.files) != 1:
                parser.error("--table is of one sweep")
            rows = save_table(options.files[0], options.table, window=options.window, per=options.per)
            print(f"jouleprof.plot: wrote {rows} rows to {options.table}", file=sys.stderr)
            return 0
        sweeps = [is_sweep(path) for path in options.files]
        if not any(sweeps):
            power(*options.files, output=options.output)
        elif len(options.files) == 1:
            sweep(options.files[0], output=options.output, **asked)
        else:
            compare_sweeps(*options.files, output=options.output, **asked)
    except Error as error:
        print(f"jouleprof.plot: {error}", file=sys.stderr)
        return 1
    print(f"jouleprof.plot: wrote {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
