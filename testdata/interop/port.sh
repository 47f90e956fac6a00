# For scripts that start a server on a free port of 127.0.0.1; to be sourced.
#   on_free_port LOG   starts the server on ports until one is free, and sets port and server. The script's function
#                      start becomes the server (exec), and its function ready tells whether that answers, on $port.
#   until_told         waits for the end of stdin or of the server, whichever is first.
# When the script ends, also by SIGTERM, the server gets the signal $farewell.
server='' farewell=TERM

stop() { [ -z "$server" ] || { kill -s "$farewell" "$server" 2>/dev/null && wait "$server"; } || true; }
trap stop EXIT
trap 'exit 0' TERM INT

on_free_port() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    port=$((20000 + RANDOM % 12000))
    start >"$1" 2>&1 </dev/null &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
      if ready && kill -0 "$server" 2>/dev/null; then return; fi
      sleep 0.05
    done
    server=''
  done
  cat "$1" >&2
  exit 1
}

until_told() {
  cat <&0 >/dev/null &
  wait -n || true
}
