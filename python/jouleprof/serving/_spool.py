"""Hands steps and requests to `jouleprof run --serving`, by way of a file in its spool."""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import BinaryIO

_FOLDER = "JOULEPROF_TRACE"
_WHAT = "JOULEPROF_TRACE_WHAT"
_MAGIC = b"JPSPOOL1"
_NONE = 0xFFFFFFFF
_SERVING = 12  # ChunkKind::kServing
_HEADER, _CHUNK, _STATUS, _END = 1, 7, 8, 9
_BIN_NANOSECONDS = 1_000_000

PERIOD = 0.25  # seconds between two writes
MOST_BYTES = 4 << 20  # that wait for the disk; what comes later is counted and left out
_SEGMENT_BYTES = 16 << 20
_PATIENCE = 1.0  # seconds that close() waits for a write


def spool_folder() -> Path | None:
    """The folder of the `jouleprof run --serving` around this process."""
    folder = os.environ.get(_FOLDER)
    if not folder or "serving" not in os.environ.get(_WHAT, "").split(","):
        return None
    return Path(folder)


def recording_of_run() -> Path | None:
    """What that `jouleprof run --serving` writes, where its name is known."""
    folder = spool_folder()
    if folder is None or folder.suffix != ".spool":
        return None
    recording = folder.with_suffix("")
    return recording if recording.exists() else None


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _text(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data


def _frame(kind: int, payload: bytes) -> bytes:
    head = struct.pack("<BI", kind, len(payload)) + payload
    return head + struct.pack("<I", zlib.crc32(head))


class SpoolFile:
    """Entries of model/activity/serving.h, in frames of src/recording/spool/FORMAT.md.

    add() takes any thread's entries and never waits for the disk: a thread writes them. A forked process needs a
    file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._start = time.monotonic_ns()
        self._segment = 0
        self._size = 0
        self._file: BinaryIO | None = None
        self._entries = bytearray()
        self._begin = self._start
        self._lock = threading.Lock()
        self._closed = False
        self._ending = False
        self._wake = threading.Event()
        self.problem = ""
        self._open_segment()
        self._thread = threading.Thread(target=self._run, name="jouleprof-serving", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return not self._closed and self._pid == os.getpid()

    def add(self, entry: bytes) -> bool:
        """False where there is no room."""
        with self._lock:
            if self._closed or len(self._entries) + len(entry) > MOST_BYTES:
                return False
            self._entries += entry
        return True

    def flush(self) -> None:
        with self._lock:
            entries, self._entries = self._entries, bytearray()
            begin, self._begin = self._begin, time.monotonic_ns()
            end = self._begin
        if not entries or self._pid != os.getpid():
            return
        payload = (_varint(_SERVING) + _varint(_NONE) + _signed(begin) + _signed(end)
                   + _varint(len(entries)) + bytes(entries))
        self._write(_frame(_CHUNK, payload))

    def hurry(self) -> None:
        """Has what there is written now: a process that has nothing to do may be ended without notice."""
        self._wake.set()

    def close(self) -> None:
        if self._closed:
            return
        self._ending = True
        self._wake.set()
        self._thread.join(_PATIENCE)
        self.flush()
        self._closed = True
        self._write(_frame(_STATUS, self._status(True)))
        self._write(_frame(_END, b""))
        if self._file is not None and self._pid == os.getpid():
            self._file.close()
        self._file = None

    def _run(self) -> None:
        while not self._ending:
            self._wake.wait(PERIOD)
            self._wake.clear()
            self.flush()

    def _status(self, ended: bool) -> bytes:
        return _varint(0) * 5 + _text(self.problem) + _varint(int(ended)) + _varint(0)

    def _open_segment(self) -> None:
        name = f"{self._pid}-{self._start}-{self._segment:04}.spool"
        program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
        header = (_varint(self._pid) + _signed(self._start) + _varint(self._segment) + _varint(_BIN_NANOSECONDS)
                  + _text(program) + _varint(0) * 3 + _text("") * 3)
        data = _MAGIC + _frame(_HEADER, header)
        try:
            self._file = open(self._folder / name, "xb", buffering=0)
            self._file.write(data)
        except OSError as error:
            self._fail(error)
        self._size = len(data)

    def _write(self, frame: bytes) -> None:
        if self._file is None or self._pid != os.getpid():
            return
        try:
            if self._size + len(frame) > _SEGMENT_BYTES:
                self._file.close()
                self._segment += 1
                self._open_segment()
                if self._file is None:
                    return
            self._file.write(frame)
            self._size += len(frame)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.problem = f"steps cannot be written into {self._folder}: {error}"
        self._file = None
        print(f"jouleprof: {self.problem}; the recording lacks later ones", file=sys.stderr)
