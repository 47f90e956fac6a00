// Ice-scan reads an Iceberg table and writes its rows as an Arrow IPC stream.
//
// Usage:
//
//	ice-scan [flags] [CATALOG.namespace.table] | ice-reconcile … | ice-write …
//	ice-scan [flags] [CATALOG.namespace.table] -o FILE
//
// The snapshot is pinned once, when the program starts, and every file of it is planned and looked at
// before the first byte is written: what cannot be read is refused then. Deletes of every kind are
// applied, files are read through schema evolution, initial defaults and name mapping. Files come in an
// order of their own (data sequence number, path), so that batch k holds the same rows whenever the same
// snapshot is scanned with the same --batch-rows.
//
// --row-filter reads the rows for which a condition is true (docs/FILTER.md), with SQL's meaning of nulls;
// what it excludes by the bounds of files and row groups is not read.
//
// The stream is plain Arrow that any Arrow reader can read. Its schema carries a header (where the rows
// come from), each record batch its place in the source, and its end is stated by a seal: a stream
// without its seal is an error for every program that reads it.
//
// Examples:
//
//	ice-scan --catalog sqlite --db-path src.db --namespace sales --table orders --limit 3 | ice-cat
//	ice-scan src.sales.orders --ref main --select order_id,region -o orders.arrows
//	ice-scan src.sales.orders --row-filter "order_id > 119990 AND region IN ('eu', 'us')" | ice-cat
//	ice-scan src.sales.orders --batch-rows auto --limit 1000 | ice-cat --format jsonl
//
// With --checkpoint the scan reads the snapshot that the job's checkpoint pins, from where it stands. It
// is a short cut: ice-write decides which rows are missing.
//
// Exit codes:
//
//	0    done; the tables agree
//	1    failed, a refused resume included
//	2    verification: the tables differ
//	3    the input stream ended before its seal: look upstream
//	64   the command line is wrong
//	130  interrupted; what was committed is recorded, run again to resume
package main

import "icepipe/internal/command"

func main() { command.Main("ice-scan") }
