#!/usr/bin/env bash
# Starts Azurite, Microsoft's server of Azure's blobs, on a free port of 127.0.0.1.
#   azure.sh DIR VENV DATA
# DIR is where it is kept; npm puts it there when it is missing, and pip puts adlfs into DIR/adlfs, by which PyIceberg
# reaches it: VENV is the one that PyIceberg is in. DATA holds the blobs. Prints the endpoint as its only line on stdout;
# ends when stdin closes or on SIGTERM.
set -euo pipefail
dir=${1:?usage: azure.sh DIR VENV DATA} venv=${2:?usage: azure.sh DIR VENV DATA} data=${3:?usage: azure.sh DIR VENV DATA}
mkdir -p "$dir" "$data"
dir=$(cd "$dir" && pwd)
(
  flock 9
  if [ ! -e "$dir/done" ]; then
    (cd "$dir" && npm install --no-fund --no-audit --silent azurite@3.37.0) >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --target "$dir/adlfs" adlfs==2026.8.0 >&2
    touch "$dir/done"
  fi
) 9>"$dir/lock"

. "$(dirname "${BASH_SOURCE[0]}")/../port.sh"

start() {
  exec node "$dir/node_modules/.bin/azurite-blob" --silent --disableTelemetry --skipApiVersionCheck --location "$data" \
    --blobHost 127.0.0.1 --blobPort "$port"
}
ready() {
  [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/devstoreaccount1?comp=list")" != 000 ]
}
on_free_port "$data/server.log"
echo "http://127.0.0.1:$port"
until_told
