"""The columns of each kind of record and their types. Written by `make columns`."""

RECORDS = {
    "activity": {
        "number": "integer", "parent": "integer", "name": "text", "detail": "text", "symbol": "text",
        "calls": "integer", "launches": "integer", "busy_seconds": "float", "overlapped_seconds": "float",
        "provenance": "text", "energy_joules": "float", "interval_joules": "interval", "repeatability_joules": "float",
        "inclusive_joules": "float", "inclusive_interval_joules": "interval", "energy_per_launch_joules": "float",
        "mean_watts": "float", "share_ratio": "float", "resolvable": "flag", "remembered": "flag", "group": "integer",
        "group_joules": "float", "group_interval_joules": "interval", "reason": "text",},
    "layer": {
        "number": "integer", "parent": "integer", "name": "text", "detail": "text", "symbol": "text",
        "calls": "integer", "launches": "integer", "busy_seconds": "float", "overlapped_seconds": "float",
        "provenance": "text", "energy_joules": "float", "interval_joules": "interval", "repeatability_joules": "float",
        "inclusive_joules": "float", "inclusive_interval_joules": "interval", "energy_per_launch_joules": "float",
        "energy_per_call_joules": "float", "seconds_per_call": "float", "call_mean_watts": "float",
        "mean_watts": "float", "share_ratio": "float", "resolvable": "flag", "remembered": "flag", "group": "integer",
        "group_joules": "float", "group_interval_joules": "interval", "parameters": "integer", "macs": "integer",
        "reason": "text",},
    "traced_process": {
        "pid": "integer", "launches": "integer", "busy_seconds": "float", "kernels_joules": "float",
        "idle_between_launches_joules": "float",},
    "command": {
        "energy_joules": "float", "interval_joules": "interval", "repeatability_joules": "float",
        "processes_joules": "float", "rest_joules": "float", "undivided_joules": "float", "is_divided": "flag",
        "is_partial": "flag", "provenance": "text",},
    "total": {
        "provenance": "text", "energy_joules": "float", "interval_joules": "interval", "repeatability_joules": "float",
        "reported_joules": "float", "rest_joules": "float", "held_joules": "float", "active_joules": "float",
        "dynamic_joules": "float", "mean_watts": "float", "is_partial": "flag",},
    "domain": {
        "id": "integer", "domain": "text", "device": "text", "name": "text", "uuid": "text", "parent": "integer",
        "visible": "flag", "provenance": "text", "energy_joules": "float", "interval_joules": "interval",
        "repeatability_joules": "float", "reported_joules": "float", "least_joules": "float", "rest_joules": "float",
        "rest_interval_joules": "interval", "held_joules": "float", "held_interval_joules": "interval",
        "active_joules": "float", "active_interval_joules": "interval", "levels_reason": "text",
        "dynamic_joules": "float", "mean_watts": "float", "peak_watts": "float", "peak_window_seconds": "float",
        "sensor": "text", "method": "text", "reason": "text", "shares_include_rest": "flag",
        "within_command_joules": "float", "command_division_interval_joules": "interval",},
    "power_level": {
        "watts": "float", "error_watts": "float", "source": "text", "observed": "flag", "temperature_celsius": "float",},
    "process": {
        "pid": "integer", "own_pid": "integer", "parent_pid": "integer", "name": "text", "command_line": "text",
        "start_seconds": "float", "end_seconds": "float", "cpu_seconds": "float", "energy_joules": "float",
        "provenance": "text", "peak_pss_bytes": "integer", "peak_uss_bytes": "integer", "peak_rss_bytes": "integer",
        "peak_gpu_memory_bytes": "integer", "mean_sm_utilisation_ratio": "float",},
    "share": {
        "id": "integer", "domain": "text", "device": "text", "energy_joules": "float", "kernels_joules": "float",
        "idle_between_launches_joules": "float", "held_joules": "float", "division_interval_joules": "interval",},
    "window": {
        "name": "text", "imported": "flag", "count": "integer", "total_seconds": "float", "mean_seconds": "float",
        "quartiles_seconds": "quartiles",},
    "window_energy": {
        "id": "integer", "domain": "text", "device": "text", "count": "integer", "provenance": "text",
        "energy_joules": "float", "interval_joules": "interval", "repeatability_joules": "float",
        "mean_joules": "float", "mean_interval_joules": "interval", "quartiles_joules": "quartiles",
        "rest_joules": "float", "rest_interval_joules": "interval", "held_joules": "float",
        "held_interval_joules": "interval", "active_joules": "float", "active_interval_joules": "interval",
        "levels_reason": "text", "sensor": "text", "method": "text", "reason": "text",},
    "finding": {
        "code": "text", "device": "text", "text": "text", "next_step": "text", "energy_joules": "float",
        "interval_joules": "interval", "share_ratio": "float", "estimated": "flag",},
    "overhead": {
        "cpu_seconds": "float", "wall_seconds": "float", "cpu_ratio": "float", "peak_memory_bytes": "integer",},
}
