#!/bin/sh
# Slurm task prolog: records the energy of each task, without a change to the job's script.
#   for one step:   srun --task-prolog=/etc/slurm/jouleprof/task_prolog.sh --task-epilog=.../task_epilog.sh ...
#   for all steps:  TaskProlog=... and TaskEpilog=... in slurm.conf
# JOULEPROF_STEP_DIR: the folder of the recordings. Without it nothing is recorded.
# JOULEPROF_STEP_KERNELS=1: kernels, too. JOULEPROF_STEP_OPTIONS: more options of `jouleprof run`, such as --no-service.
#
# A recorder beside the task measures it by its pid, so that the task is what Slurm started, whatever becomes of the
# recorder. What this prints as `export NAME=value`, Slurm sets for the task. It ends with 0 whatever happens.
set -u
tool=${JOULEPROF_TOOL:-jouleprof}
task=${SLURM_TASK_PID:-$PPID}
folder=${JOULEPROF_STEP_DIR:-}

[ -n "$folder" ] || exit 0
command -v "$tool" >/dev/null || exit 0
mkdir -p -- "$folder" 2>/dev/null && [ -w "$folder" ] || exit 0
name=$folder/jouleprof.${SLURM_JOB_ID:-0}.${SLURM_STEP_ID:-0}.${SLURM_PROCID:-0}
set -- run --quiet --idle 0s --pid "$task" -o "$name.jprof"
if [ "${JOULEPROF_STEP_KERNELS:-0}" = 1 ]; then
  library=${JOULEPROF_INJECT_LIBRARY:-}
  for place in "$(dirname "$(command -v "$tool")")/.."/lib/libjouleprof_inject.so \
    "$(dirname "$(command -v "$tool")")/.."/lib/*/libjouleprof_inject.so; do
    if [ -z "$library" ] && [ -r "$place" ]; then library=$place; fi
  done
  if [ -r "$library" ] && mkdir -p -- "$name.spool" 2>/dev/null; then
    set -- "$@" --trace-folder "$name.spool"
    echo "export JOULEPROF_TRACE=$name.spool"
    echo "export JOULEPROF_TRACE_WHAT=kernels"
    echo "export JOULEPROF_INJECT=$library"
    # Another profiler's library stays.
    if [ -z "${CUDA_INJECTION64_PATH:-}" ]; then echo "export CUDA_INJECTION64_PATH=$library"; fi
    if [ -z "${NVTX_INJECTION64_PATH:-}" ]; then echo "export NVTX_INJECTION64_PATH=$library"; fi
  fi
fi
# Slurm reads this script's output to its end, which a child that kept it open would delay. The recorder leaves a line
# about what went wrong.
set -f
# shellcheck disable=SC2086 # several options
"$tool" "$@" ${JOULEPROF_STEP_OPTIONS:-} </dev/null >/dev/null 2>"$name.log" &
echo $! >"$name.pid" 2>/dev/null
exit 0
