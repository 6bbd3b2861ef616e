#!/bin/bash
# The step of action.yml: runs jouleprof compare, and hands its files and its exit status on. Other CI services can call
# it with the same variables.
set -u
if ! command -v jouleprof >/dev/null; then
  echo "::error::jouleprof is not installed on this runner: install its package, or pip install it in a step before"
  exit 127
fi
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/jouleprof.XXXXXX")
options=(--pairs "${JOULEPROF_CI_PAIRS:-10}" --warmup "${JOULEPROF_CI_WARMUP:-1}" --format github
  --format "markdown=$folder/energy.md" --format "benchmark=$folder/energy.json")
junit=
while IFS= read -r limit; do
  [ -n "$limit" ] || continue
  junit=$folder/energy.xml
  options+=(--fail-if "$limit")
done <<<"${JOULEPROF_CI_FAIL_IF-}"
if [ -n "$junit" ]; then
  options+=(--format "junit=$junit" --inconclusive "${JOULEPROF_CI_INCONCLUSIVE:-fail}")
fi
read -ra more <<<"${JOULEPROF_CI_OPTIONS-}"
jouleprof compare "${options[@]}" "${more[@]}" -- bash -c "$JOULEPROF_CI_BEFORE" --- bash -c "$JOULEPROF_CI_AFTER"
status=$?
if [ -e "$folder/energy.md" ]; then cat "$folder/energy.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"; fi
{
  echo "status=$status"
  echo "markdown=$folder/energy.md"
  echo "junit=$junit"
  echo "benchmark=$folder/energy.json"
} >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
