#!/bin/sh
# Slurm prolog: writes which job has which GPU, for `jouleprof serve --job-mapping-dir` and for
# dcgm-exporter. In slurm.conf: Prolog=/etc/slurm/prolog.d/jouleprof.sh
set -eu
folder=${JOULEPROF_JOB_MAPPING_DIR:-/run/jouleprof-jobs}
[ -n "${SLURM_JOB_ID:-}" ] || exit 0
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
[ -n "$gpus" ] || exit 0
mkdir -p "$folder"
# A lock, because jobs that share a GPU start at the same time.
exec 9>"$folder/.lock"
flock 9
for gpu in $(printf '%s' "$gpus" | tr ',' ' '); do
  file=$folder/$gpu
  { [ ! -f "$file" ] || grep -vxF "$SLURM_JOB_ID" "$file" || true; echo "$SLURM_JOB_ID"; } >"$folder/.new"
  chmod 644 "$folder/.new"
  mv "$folder/.new" "$file"
done
