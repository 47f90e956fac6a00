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

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
trap 'exit 0' TERM INT
for _ in 1 2 3 4 5 6 7 8 9 10; do
  port=$((20000 + RANDOM % 12000))
  "$program" -scheme http -host 127.0.0.1 -port "$port" -public-host "127.0.0.1:$port" -backend memory >/dev/null 2>"$bin/log.$port" </dev/null &
  server=$!
  while kill -0 "$server" 2>/dev/null; do
    if curl -fsS -o /dev/null -X POST -H 'Content-Type: application/json' -d "{\"name\":\"$bucket\"}" "http://127.0.0.1:$port/storage/v1/b?project=p" 2>/dev/null; then
      break 2
    fi
    sleep 0.1
  done
  server=
done
[ -n "$server" ] || { cat "$bin/log.$port" >&2; exit 1; }
rm -f "$bin/log.$port"
echo "http://127.0.0.1:$port"
cat <&0 >/dev/null &
wait -n || true
