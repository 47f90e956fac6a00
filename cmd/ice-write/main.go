// Ice-write appends the rows of an Arrow IPC stream to an Iceberg table, exactly once.
//
// Usage:
//
//	ice-scan … | ice-reconcile … | ice-write [flags] [CATALOG.namespace.table]
//
// The table is the one that the stream was reconciled with; flags that name a table override where it is
// found, not which table it is. Without ice-reconcile in the pipe the mapping flags are given here.
//
// Each batch of the stream is one commit. With --checkpoint its files are noted before the commit and the
// batch after it, and each snapshot carries marks that say which rows it holds. A run that died is
// resumed by the same command: batches that landed are found by their marks, files that were written are
// committed as they are, rows that are in the table are dropped from the stream. Of a stream that ends
// before its seal the unfinished batch is not committed, and the exit code is 3.
//
// --commit once lands all batches as one snapshot at the end; --write-mode overwrite_partition puts their rows in
// the place of all rows of the partitions that they lie in, and upsert each row in the place of the one with the same
// key: see ice-migrate. An upsert with --on-duplicate-key error wants --commit once, since the stream is read but once
// and nothing is to be committed where a key comes twice.
//
// A stream that was written before is refused, as is a new job over batches of one with the same settings or
// of iceberg-ops: give the job's checkpoint (ice-migrate recover makes a lost one anew), or --again or
// --new-job to write rows once more. The first signal brings the commit in flight to its end; the second kills.
//
// The receipt goes to stdout, as text or with --output json as JSON.
//
// A plain Arrow stream of another program (pyarrow, DuckDB, Polars) is taken with --unsealed-ok. Such a
// stream has no places and no seal: no checkpoint is kept, and to run it again writes its rows again.
//
// Examples:
//
//	ice-scan src.sales.orders \
//	  | ice-reconcile dst.warehouse.orders --column-mapping order_total:total_amount \
//	      --on-missing-in-source null --on-missing-in-dest auto_add \
//	  | ice-write --checkpoint job.json --output json
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

func main() { command.Main("ice-write") }
