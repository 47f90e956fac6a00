#!/usr/bin/env bash
# Starts a Hive Metastore 2.3 (the one in Spark's jars) over a Derby database
# in memory, on a free port of 127.0.0.1.
#   hms.sh VENV DATA
# VENV is a Python environment with pyspark, whose jars are taken; DATA is a folder for its files.
# Prints the address as its only line on stdout; ends when its stdin closes or on SIGTERM. Needs Java 17.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: hms.sh VENV DATA" >&2
  exit 2
fi
jars=$(echo "$1"/lib/python3*/site-packages/pyspark/jars)
mkdir -p "$2"
data=$(cd "$2" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../port.sh"

property() { echo "<property><name>$1</name><value>$2</value></property>"; }
cat >"$data/hive-site.xml" <<END
<configuration>
$(property javax.jdo.option.ConnectionURL "jdbc:derby:memory:hms;create=true")
$(property javax.jdo.option.ConnectionDriverName org.apache.derby.jdbc.EmbeddedDriver)
$(property datanucleus.schema.autoCreateAll true)
$(property hive.metastore.schema.verification false)
$(property hive.metastore.warehouse.dir "$data/warehouse")
$(property hive.async.log.enabled false)
$(property datanucleus.connectionPoolingType HikariCP)
</configuration>
END

opens=
for package in java.lang java.net java.util java.util.concurrent java.nio sun.nio.ch; do
  opens="$opens --add-opens=java.base/$package=ALL-UNNAMED"
done
cd "$data"
start() {
  # shellcheck disable=SC2086 # options are words
  exec java -Xmx512m -Djava.io.tmpdir="$data" $opens -Dderby.stream.error.file="$data/derby.log" -cp "$data:$jars/*" \
    "$here/Metastore.java" -p "$port"
}
ready() { (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
on_free_port "$data/server.log"
echo "thrift://127.0.0.1:$port"
until_told
