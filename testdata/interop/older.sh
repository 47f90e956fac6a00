#!/usr/bin/env bash
# Usage: older.sh DIR
# Makes DIR, an environment of Python with a PyIceberg of two years before (0.7.1), unless it is there, and prints its
# python.
set -euo pipefail
dir=${1:?usage: older.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/.lock"
flock 9
if [ ! -e "$dir/.done" ]; then
  "${PYTHON:-python3}" -m venv "$dir" >&2
  "$dir/bin/pip" install --quiet --disable-pip-version-check "pyiceberg[sql-sqlite,pyarrow]==0.7.1" >&2
  touch "$dir/.done"
fi
echo "$dir/bin/python"
