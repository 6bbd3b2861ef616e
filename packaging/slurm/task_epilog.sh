#!/bin/sh
# Slurm task epilog: Slurm kills what a step left behind when its last task has ended. This waits, for 10 s at most,
# until the recorder of task_prolog.sh has written the end. It ends with 0 whatever happens.
set -u
[ -n "${JOULEPROF_STEP_DIR:-}" ] || exit 0
name=$JOULEPROF_STEP_DIR/jouleprof.${SLURM_JOB_ID:-0}.${SLURM_STEP_ID:-0}.${SLURM_PROCID:-0}
recorder=$(cat -- "$name.pid" 2>/dev/null) || exit 0
case $recorder in '' | *[!0-9]*) exit 0 ;; esac
tries=0
while [ $tries -lt 100 ] && kill -0 "$recorder" 2>/dev/null; do
  tries=$((tries + 1))
  sleep 0.1
done
rm -f -- "$name.pid"
if [ -f "$name.log" ] && [ ! -s "$name.log" ]; then rm -f -- "$name.log"; fi
rmdir -- "$name.spool" 2>/dev/null
exit 0
