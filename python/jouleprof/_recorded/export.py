"""What `jouleprof export --format parquet` starts: FILE... -o FOLDER."""

import argparse
import sys

from .._errors import Error, exit_status, unwritten
from .recording import open_recording
from .recordings import open_all
from .tables import TABLES


def main(arguments):
    parser = argparse.ArgumentParser(prog="jouleprof export --format parquet")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER")
    parser.add_argument("--run", type=int, metavar="N")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=TABLES, metavar="LIST")
    chosen = parser.parse_args(arguments)
    try:
        if len(chosen.files) == 1:
            found = open_recording(chosen.files[0], run=chosen.run)
        else:
            found = open_all(chosen.files)
        count = found.write_parquet(chosen.output, chosen.tables)
    except (Error, OSError) as error:
        print(f"jouleprof: {unwritten(error)}", file=sys.stderr)
        return exit_status(error)
    print(f"written    {count} files below {chosen.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
