"""What the layers and kernels that were run alone took, by a recording's sensors: a truth that owes
nothing to the regression."""

import collections
import json
import sqlite3
import struct
import subprocess
import zlib

Loop = collections.namedtuple("Loop", "name calls joules seconds")  # joules above idle


def numbers(packed):
    """Of activity_chunk.entries (src/recording/FORMAT.md)."""
    (length,) = struct.unpack("<I", packed[:4])
    data = packed[4:] if length == 0xFFFFFFFF else zlib.decompress(packed[4:])
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def _launches(db, begin, end):
    """By kernel class: launches and busy nanoseconds of the bins in a stretch."""
    found = collections.Counter()
    busy = collections.Counter()
    for first, bin_length, packed in db.execute(
            "SELECT begin_nanoseconds, bin_nanoseconds * (CASE kind WHEN 'bins' THEN 1 ELSE 8 END), "
            "entries FROM activity_chunk JOIN trace ON trace.id = trace WHERE kind IN ('bins', "
            "'wide_bins') AND begin_nanoseconds < ? AND end_nanoseconds > ?", (end, begin)):
        values = numbers(packed)
        at = 0
        for step, kernel, nanoseconds, launches in zip(*(iter(values),) * 4):
            at += step
            if begin <= first + at * bin_length < end:
                found[kernel] += launches
                busy[kernel] += nanoseconds
    return found, busy


def _energy(tool, file, begin, end):
    text = subprocess.run([tool, "report", file, "--json", "--from", f"{begin:.6f}s", "--to",
                           f"{end:.6f}s"], capture_output=True, text=True, check=True).stdout
    return next(d for d in json.loads(text)["domains"] if d["domain"] == "gpu")["energy_joules"]


def loops(tool, file, idle_watts):
    """(layers, kernels): Loops of each; a kernel's name is its compiler's name, grid and block."""
    layers, kernels = [], []
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        (start,) = db.execute("SELECT work_begin_nanoseconds FROM run").fetchone()
        names = dict(db.execute("SELECT number, name FROM layer"))
        classes = {row[0]: row[1:] for row in db.execute(
            "SELECT number, name, grid_x, grid_y, grid_z, block_x, block_y, block_z FROM kernel_class")}
        for begin, end, packed in db.execute(
                "SELECT begin_nanoseconds, end_nanoseconds, entries FROM activity_chunk "
                "WHERE kind = 'replay' ORDER BY begin_nanoseconds").fetchall():
            entry = numbers(packed)
            if not entry:
                continue
            seconds = (end - begin) / 1e9
            joules = _energy(tool, file, (begin - start) / 1e9, (end - start) / 1e9)
            joules -= idle_watts * seconds
            if entry[2] > 0:
                layers.append(Loop(names[entry[0]], entry[2], joules, seconds))
                continue
            launches, busy = _launches(db, begin, end)
            if busy:
                kernel = busy.most_common(1)[0][0]
                kernels.append(Loop(classes[kernel], launches[kernel], joules, seconds))
    db.close()
    return layers, kernels
