#!/usr/bin/env bash
# Starts MariaDB for a SQL catalog, on a free port of 127.0.0.1.
#   mariadb.sh PROGRAMS DATA
# PROGRAMS is a folder for the server: Debian's packages are fetched into it and unpacked, not installed, when
# it is empty. DATA is a folder for the databases; it is made when missing, and kept.
# Prints the database's URI as its only line on stdout; ends when stdin closes or on SIGTERM.
# Needs apt-get and dpkg of Debian or Ubuntu, and nothing of MySQL or MariaDB on the machine.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: mariadb.sh PROGRAMS DATA" >&2
  exit 2
fi
mkdir -p "$1" "$2"
programs=$(cd "$1" && pwd) data=$(cd "$2" && pwd)

exec 9>"$programs/.lock"
flock 9
if [ ! -e "$programs/.done" ]; then
  (
    cd "$programs"
    apt-get download mariadb-server-core liburing2 libaio1 ||
      { apt-get update && apt-get download mariadb-server-core liburing2 libaio1; }
    for package in *.deb; do dpkg -x "$package" .; done
  ) >"$programs/fetch.log" 2>&1 || { cat "$programs/fetch.log" >&2; exit 1; }
  touch "$programs/.done"
fi
flock -u 9
lib=$(cd "$programs/usr/lib" && echo *-linux-gnu)
export LD_LIBRARY_PATH="$programs/usr/lib/$lib:$programs/lib/$lib"
share=$programs/usr/share/mysql
run=("$programs/usr/sbin/mariadbd" --no-defaults "--datadir=$data" "--lc-messages-dir=$share" "--character-sets-dir=$share/charsets"
  --innodb-log-file-size=8M --innodb-buffer-pool-size=16M --innodb-flush-log-at-trx-commit=0)
[ "$(id -u)" != 0 ] || run+=(--user=root)

if [ ! -d "$data/mysql" ]; then
  mkdir "$data/mysql"
  { echo "use mysql;"; cat "$share"/mysql_system_tables.sql "$share"/mysql_performance_tables.sql "$share"/mysql_system_tables_data.sql; } |
    "${run[@]}" --bootstrap >"$data/bootstrap.log" 2>&1 || { cat "$data/bootstrap.log" >&2; exit 1; }
fi
cat >"$data/init.sql" <<'SQL'
create database if not exists iceberg character set utf8mb4 collate utf8mb4_bin;
create user if not exists icepipe@'127.0.0.1' identified by 'icepipe-secret';
grant all on *.* to icepipe@'127.0.0.1' with grant option;
SQL

. "$(dirname "${BASH_SOURCE[0]}")/../port.sh"

start() {
  exec "${run[@]}" "--port=$port" --bind-address=127.0.0.1 --skip-name-resolve "--socket=$data/socket" \
    "--pid-file=$data/pid" "--init-file=$data/init.sql"
}
ready() { grep -qs "ready for connections" "$data/server.log"; }
on_free_port "$data/server.log"
echo "mysql+pymysql://icepipe:icepipe-secret@127.0.0.1:$port/iceberg"
until_told
