#!/bin/sh
# Slurm prolog: writes which job has which GPU, for `jouleprof serve --job-mapping-dir` and for
# dcgm-exporter. In slurm.conf: Prolog=/etc/slurm/prolog.d/jouleprof.sh, and PrologFlags=Alloc: without it Slurm runs
# the prolog of a node only when the job's first step begins there.
#
# A prolog that fails drains the node and holds the job. This one ends with 0 within 2 s, whatever
# happens; it logs to syslog why a mapping was not written, and the job then has no label.
set -uf
folder=${JOULEPROF_JOB_MAPPING_DIR:-/run/jouleprof-jobs}
job=${SLURM_JOB_ID:-}
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}

write_mapping() {
  case $job in *[!0-9A-Za-z_+]*) echo "SLURM_JOB_ID is no number"; return 1 ;; esac
  mkdir -p -- "$folder" || return 1
  # A lock, because jobs that share a GPU start at the same time.
  command -v flock >/dev/null || { echo "there is no flock (util-linux)"; return 1; }
  { exec 9>"$folder/.lock"; } || return 1
  flock -w 1 9 || { echo "another prolog or epilog has the lock"; return 1; }
  new=$folder/.new
  failed=0
  for gpu in $(printf '%s' "$gpus" | tr ',' ' '); do
    # An index or a UUID: nothing that leaves the folder.
    case $gpu in *[!0-9A-Za-z-]*) echo "SLURM_JOB_GPUS names no GPU: $gpu"; failed=1; continue ;; esac
    file=$folder/$gpu
    if { [ ! -f "$file" ] || grep -vxF -e "$job" -- "$file" || true; } >"$new" &&
      echo "$job" >>"$new" && chmod 644 "$new" && mv -f -- "$new" "$file"; then
      continue
    fi
    rm -f -- "$new"
    failed=1
  done
  return $failed
}

case ${1:-} in
  --write) write_mapping ;;
  *)
    [ -n "$job" ] && [ -n "$gpus" ] || exit 0
    why=$(timeout -k 0.2 1.8 sh "$0" --write 2>&1) ||
      logger -t jouleprof -p daemon.warning -- "prolog: job $job has no mapping in $folder: ${why:-it took too long}" \
        2>/dev/null
    exit 0
    ;;
esac
