"""Power limits of GPUs, through the command-line tool: it restores them when this process ends."""

import atexit
import json
import subprocess

from ._errors import Internal, Unavailable, checked
from ._tool import tool_path


class PowerLimit:
    """The power limit of some GPUs, which stay locked until close().

    devices: indices or UUIDs, as NVML counts them; shared: also where other processes use them.
    Errors: PermissionDenied without root; Unavailable where another process owns or uses a GPU.

    The tool runs in a session of its own. It restores the limit that it found when this process
    closes it or dies, and its own guard process does so when the tool dies.
    """

    def __init__(self, devices, shared=False):
        self._tool = subprocess.Popen(
            [tool_path(), "hold-settings", "power", ",".join(str(d) for d in devices),
             "shared" if shared else "own"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="surrogateescape",
            start_new_session=True)
        try:
            state = self._answer()
        except BaseException:
            self._end()
            raise
        self.least = state["least"]
        self.most = state["most"]
        self.found = state["found"]  # None where the GPUs differ
        atexit.register(self.close)

    def set(self, watts):
        """Sets all GPUs. Returns the limit that the driver reports."""
        return self._request(f"set {watts:g}")["requested"]

    def restore(self):
        """Restores what was found. Returns warnings."""
        return self._request("restore")["warnings"]

    def close(self):
        """Restores what was found, and unlocks the GPUs. May be called again."""
        atexit.unregister(self.close)
        self._end()

    def _request(self, line):
        if self._tool.poll() is not None or self._tool.stdin.closed:
            raise Unavailable("the power limit was restored: the process that held it has ended")
        try:
            self._tool.stdin.write(line + "\n")
            self._tool.stdin.flush()
        except BrokenPipeError:
            raise Unavailable("the process that held the power limit has ended") from None
        return self._answer()

    def _answer(self):
        line = self._tool.stdout.readline()
        if not line:
            raise Unavailable("the process that holds the power limit ended without an answer")
        answer = json.loads(line)
        if "status" in answer:
            checked((answer["status"], answer["message"]))
        if not isinstance(answer, dict):
            raise Internal(f"an answer is {line!r}")
        return answer

    def _end(self):
        if not self._tool.stdin.closed:
            self._tool.stdin.close()
        self._tool.stdout.close()
        self._tool.wait()
