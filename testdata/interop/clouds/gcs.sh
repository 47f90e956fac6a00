#!/usr/bin/env bash
# Starts fake-gcs-server, a server of Google Cloud Storage in memory, on a free port of 127.0.0.1, with a bucket.
#   gcs.sh BIN BUCKET
# BIN is where the program is kept; it is built there by `go install` when it is missing. Prints the endpoint as its
# only line on stdout; ends when stdin closes or on SIGTERM.
set -euo pipefail
version=v1.56.1
bin=${1:?usage: gcs.sh BIN BUCKET} bucket=${2:?usage: gcs.sh BIN BUCKET}
mkdir -p "$bin"
bin=$(cd "$bin" && pwd)
program=$bin/fake-gcs-server-$version
(
  flock 9
  if [ ! -x "$program" ]; then
    GOBIN=$bin GOFLAGS=-buildvcs=false go install "github.com/fsouza/fake-gcs-server@$version" >&2
    mv "$bin/fake-gcs-server" "$program"
  fi
) 9>"$bin/lock"

. "$(dirname "${BASH_SOURCE[0]}")/../port.sh"
log=$(mktemp)

start() {
  exec "$program" -scheme http -host 127.0.0.1 -port "$port" -public-host "127.0.0.1:$port" -backend memory
}
ready() {
  curl -fsS -o /dev/null -X POST -H 'Content-Type: application/json' -d "{\"name\":\"$bucket\"}" "http://127.0.0.1:$port/storage/v1/b?project=p" 2>/dev/null
}
on_free_port "$log"
rm "$log"
echo "http://127.0.0.1:$port"
until_told
