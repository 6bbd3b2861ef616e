"""The energy of the kernels that ran in isolation, by a recording's sensors: a reference
independent of the regression."""

import collections
import json
import math
import sqlite3
import struct
import subprocess
import zlib

# Joules above idle. `clock`: the SM clock as a ratio to the program's; None: not known. `longer`: a launch's time in the
# program as a ratio to that in the loop.
Loop = collections.namedtuple("Loop", "name calls joules seconds clock longer")


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


def _bins(db, begin, end):
    """Begin, bin length and entries of the chunks of bins in an interval, in nanoseconds."""
    return db.execute(
        "SELECT begin_nanoseconds, bin_nanoseconds * (CASE kind WHEN 'bins' THEN 1 ELSE 8 END), "
        "entries FROM activity_chunk JOIN trace ON trace.id = trace WHERE kind IN ('bins', "
        "'wide_bins') AND begin_nanoseconds < ? AND end_nanoseconds > ?", (end, begin))


def _launches(db, begin, end):
    """By kernel signature: launches and busy nanoseconds of the bins in an interval."""
    found = collections.Counter()
    busy = collections.Counter()
    for first, bin_length, packed in _bins(db, begin, end):
        values = numbers(packed)
        at = 0
        for step, kernel, nanoseconds, launches in zip(*(iter(values),) * 4):
            at += step
            if begin <= first + at * bin_length < end:
                found[kernel] += launches
                busy[kernel] += nanoseconds
    return found, busy


def _in_place(db, until):
    """By kernel signature: (launches, mean seconds of one) in each scope, before the first replay."""
    sums = collections.defaultdict(collections.Counter)
    for (packed,) in db.execute("SELECT entries FROM activity_chunk WHERE kind = 'scopes' AND "
                                "end_nanoseconds <= ?", (until,)):
        for kernel, scope, launches, nanoseconds in zip(*(iter(numbers(packed)),) * 4):
            sums[kernel, scope].update(launches=launches, nanoseconds=nanoseconds)
    found = collections.defaultdict(list)
    for (kernel, _), of in sums.items():
        if of["launches"]:
            found[kernel].append((of["launches"], of["nanoseconds"] / of["launches"] / 1e9))
    return found


def _program_clock(db, until):
    """The mean SM clock read in tenths of seconds in which kernels ran for 10 ms or longer."""
    busy = collections.Counter()
    for first, bin_length, packed in _bins(db, 0, until):
        values, at = numbers(packed), 0
        for step, _, nanoseconds, _ in zip(*(iter(values),) * 4):
            at += step
            busy[(first + at * bin_length) // 10**8] += nanoseconds
    found = [clock for at, clock in db.execute(
        "SELECT at_nanoseconds, value FROM gauge_reading JOIN sensor ON sensor.id = sensor "
        "WHERE name = 'sm_clock_hertz' AND at_nanoseconds < ?", (until,)) if busy[at // 10**8] > 1e7]
    return sum(found) / len(found) if found else None


def _mixed(sizes, in_place, program_clock):
    """Loops of one kernel in several sizes as one of their mixture in the program. `sizes`: (Loop, mean
    seconds of a launch, SM clock or 0)."""
    launches, joules, there, alone = 0, 0.0, 0.0, 0.0
    for count, seconds in in_place:
        loop, once, _ = min(sizes, key=lambda size: abs(math.log(size[1] / max(seconds, 1e-9))))
        launches += count
        joules += count * loop.joules / loop.calls
        there += count * seconds
        alone += count * once
    if launches == 0:
        return sizes[0][0]
    seconds = sum(loop.seconds for loop, _, _ in sizes)
    clock = None
    if program_clock and all(hertz for _, _, hertz in sizes):
        clock = sum(loop.seconds * hertz for loop, _, hertz in sizes) / seconds / program_clock
    return Loop(sizes[0][0].name, launches, joules, seconds, clock, there / alone)


def _energy(tool, file, begin, end):
    text = subprocess.run([tool, "report", file, "--json", "--from", f"{begin:.6f}s", "--to",
                           f"{end:.6f}s"], capture_output=True, text=True, check=True).stdout
    return next(d for d in json.loads(text)["domains"] if d["domain"] == "gpu")["energy_joules"]


def loops(tool, file, idle_watts):
    """Loops of kernels: a kernel's name is its compiler's name, grid and block. Of one that was looped in
    several sizes, what they take in the proportions of the program."""
    kernels = collections.defaultdict(list)
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        (start,) = db.execute("SELECT work_begin_nanoseconds FROM run").fetchone()
        classes = {row[0]: row[1:] for row in db.execute(
            "SELECT number, name, grid_x, grid_y, grid_z, block_x, block_y, block_z FROM kernel_class")}
        for begin, end, packed in db.execute(
                "SELECT begin_nanoseconds, end_nanoseconds, entries FROM activity_chunk "
                "WHERE kind = 'replay' ORDER BY begin_nanoseconds").fetchall():
            loop = numbers(packed)
            if not loop:  # the preparation
                continue
            seconds = (end - begin) / 1e9
            joules = _energy(tool, file, (begin - start) / 1e9, (end - start) / 1e9)
            joules -= idle_watts * seconds
            launches, busy = _launches(db, begin, end)
            if busy:
                kernel = busy.most_common(1)[0][0]
                if not launches[kernel]:
                    continue
                kernels[kernel].append((Loop(classes[kernel], launches[kernel], joules, seconds, None, 1),
                                        busy[kernel] / launches[kernel] / 1e9, 1e3 * loop[1]))
        (first,) = db.execute("SELECT min(begin_nanoseconds) FROM activity_chunk "
                              "WHERE kind = 'replay'").fetchone()
        in_place = _in_place(db, first)
        clock = _program_clock(db, first)
    db.close()
    return [_mixed(sizes, in_place[kernel], clock) for kernel, sizes in kernels.items()]
