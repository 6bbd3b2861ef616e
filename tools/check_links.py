#!/usr/bin/env python3
"""Checks that every relative link and every path in backticks in the Markdown files exists."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE_PATH = re.compile(r"`((?:src|docs|tests|tools|bench|examples|cmake|include|python)/[\w./-]+)`")


def main():
    files = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    broken = 0
    for name in files:
        page = ROOT / name
        for number, line in enumerate(page.read_text().splitlines(), 1):
            targets = [(page.parent, t) for t in LINK.findall(line) if "://" not in t]
            targets += [(ROOT, t) for t in CODE_PATH.findall(line)]
            for base, target in targets:
                if not (base / target).exists():
                    print(f"{name}:{number}: {target} does not exist")
                    broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
