"""Starts N processes of a command as torchrun does, and returns the first failing status.

    python launch_ranks.py N COMMAND...
"""

import os
import subprocess
import sys

world = int(sys.argv[1])
ranks = []
for rank in range(world):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "GROUP_RANK": 0,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500, "TORCHELASTIC_RUN_ID": "none"}
    ranks.append(subprocess.Popen(sys.argv[2:], env=os.environ | {k: str(v) for k, v in variables.items()}))
statuses = [rank.wait() for rank in ranks]
sys.exit(next((status for status in statuses if status != 0), 0))
