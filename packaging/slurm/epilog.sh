#!/bin/sh
# Slurm epilog: removes the job from the mapping that prolog.sh wrote.
# In slurm.conf: Epilog=/etc/slurm/epilog.d/jouleprof.sh
#
# An epilog that fails drains the node. This one ends with 0 within 2 s, whatever happens, logs to
# syslog what it could not do, and tries that for a minute more in the background. Where a shorter
# mapping cannot be written, such as on a full disk, it removes the GPU's whole mapping: no label is
# better than that of a job that has ended.
set -u
folder=${JOULEPROF_JOB_MAPPING_DIR:-/run/jouleprof-jobs}
job=${SLURM_JOB_ID:-}

remove_mapping() {
  command -v flock >/dev/null || { echo "there is no flock (util-linux)"; return 1; }
  { exec 9>"$folder/.lock"; } || return 1
  flock -w "$wait" 9 || { echo "another prolog or epilog has the lock"; return 1; }
  new=$folder/.new
  failed=0
  for file in "$folder"/*; do
    grep -qxF -e "$job" -- "$file" 2>/dev/null || continue
    if grep -qvxF -e "$job" -- "$file"; then
      if grep -vxF -e "$job" -- "$file" >"$new" && chmod 644 "$new" && mv -f -- "$new" "$file"; then
        continue
      fi
      echo "cannot write $file, so that it was removed with all of its jobs"
      failed=1
    fi
    rm -f -- "$new" "$file" || failed=1
  done
  return $failed
}

case ${1:-} in
  --remove)
    wait=${2:-1}
    remove_mapping
    ;;
  *)
    [ -n "$job" ] && [ -d "$folder" ] || exit 0
    why=$(timeout -k 0.2 1.8 sh "$0" --remove 2>&1) || {
      setsid -f timeout 60 sh "$0" --remove 50 </dev/null >/dev/null 2>&1
      logger -t jouleprof -p daemon.warning -- "epilog: job $job in $folder: ${why:-it took too long}" 2>/dev/null
    }
    exit 0
    ;;
esac
