#!/usr/bin/env bash
# Usage: demo.sh BIN
# Moves a table of orders between two SQLite catalogs, through the pipe and in one process:
# order_total becomes total_amount, channel is filled with null, region is added to the destination.
# Needs the programs in BIN and Go. What it makes stays in a new temporary folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${1:?usage: demo.sh BIN}" && pwd)
PATH=$bin:$PATH

dir=$(mktemp -d "${TMPDIR:-/tmp}/icepipe-demo.XXXXXX")
(cd "$here/.." && go run ./internal/demo/make "$dir")
cd "$dir"
echo "The tables are in $dir"

# show prints a command line and runs it.
show() {
  printf '\n$ %s\n' "$1"
  bash -eo pipefail -c "$1"
}

src="--catalog sqlite --db-path src.db --warehouse src_wh --namespace sales --table orders"
dst="--catalog sqlite --db-path dst.db --warehouse dst_wh --namespace warehouse --table orders_by_pipe"
both="--src-catalog sqlite --src-db-path src.db --src-warehouse src_wh --src-namespace sales --src-table orders \\
    --dst-catalog sqlite --dst-db-path dst.db --dst-warehouse dst_wh --dst-namespace warehouse"
plan="--column-mapping order_total:total_amount --on-missing-in-source null --on-missing-in-dest auto_add"

printf '\n== The source, as people see it\n'
show "ice-scan $src --limit 5 | ice-cat"

printf '\n== By the pipe\n'
show "ice-scan $src --limit 1 \\
  | ice-reconcile $dst \\
      $plan --explain"
show "ice-scan $src --batch-rows 50000 \\
  | ice-reconcile $dst \\
      $plan \\
  | ice-write --checkpoint pipe.checkpoint.json"
show "ice-verify $both --dst-table orders_by_pipe --method row_count"

printf '\n== In one process: first what it would do, then for real\n'
show "ice-migrate $both --dst-table orders \\
    $plan --batch-rows 50000 --dry-run"
show "ice-migrate $both --dst-table orders \\
    $plan --batch-rows 50000 --checkpoint orders.checkpoint.json --verify row_count"

printf '\n== The destination\n'
show "ice-scan ${dst/orders_by_pipe/orders} --limit 5 | ice-cat"

printf '\nAll of it is in %s\n' "$dir"
