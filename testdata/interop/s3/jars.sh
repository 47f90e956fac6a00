#!/usr/bin/env bash
# Usage: jars.sh DIR
# Puts Iceberg's AWS bundle into DIR, by which Spark and the REST catalog reach S3. A second call finds it there.
set -euo pipefail
dir=${1:?usage: jars.sh DIR}
mkdir -p "$dir"
jar=iceberg-aws-bundle-1.12.0.jar
exec 9>"$dir/.lock"
flock 9
[ -s "$dir/$jar" ] && exit 0
log=$(mvn -q -B dependency:get -Dartifact=org.apache.iceberg:iceberg-aws-bundle:1.12.0 -Dtransitive=false 2>&1) || { echo "$log" >&2; exit 1; }
repo=$(mvn -q -Dstyle.color=never help:evaluate -Dexpression=settings.localRepository -DforceStdout 2>/dev/null || true)
[ -d "$repo" ] || repo=$HOME/.m2/repository
cp "$repo/org/apache/iceberg/iceberg-aws-bundle/1.12.0/$jar" "$dir/.$jar"
mv "$dir/.$jar" "$dir/$jar"
