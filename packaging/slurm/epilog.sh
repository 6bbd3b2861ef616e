#!/bin/sh
# Slurm epilog: removes the job from the mapping that prolog.sh wrote.
# In slurm.conf: Epilog=/etc/slurm/epilog.d/jouleprof.sh
set -eu
folder=${JOULEPROF_JOB_MAPPING_DIR:-/run/jouleprof-jobs}
[ -n "${SLURM_JOB_ID:-}" ] && [ -d "$folder" ] || exit 0
exec 9>"$folder/.lock"
flock 9
for file in "$folder"/*; do
  grep -qxF "$SLURM_JOB_ID" "$file" 2>/dev/null || continue
  grep -vxF "$SLURM_JOB_ID" "$file" >"$folder/.new" || true
  if [ -s "$folder/.new" ]; then
    chmod 644 "$folder/.new"
    mv "$folder/.new" "$file"
  else
    rm -f "$folder/.new" "$file"
  fi
done
