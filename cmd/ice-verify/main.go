// Ice-verify compares two Iceberg tables.
//
// Usage:
//
//	ice-verify [flags]
//
// The source is read at one snapshot, the current one unless --source-snapshot, --source-ref or --source-as-of
// say another, through the row filter and the plan: renames, casts, defaults, and without rows that the plan
// rejects. --checkpoint FILE takes snapshot, filter, plan and tables from a job.
//
// Methods:
//
//	row_count       counts the live rows: by metadata where that is exact, with position deletes and deletion
//	                vectors counted by their distinct positions, and by reading where a filter, equality deletes
//	                or a plan that rejects rows decide. The default
//	partition_hash  compares the digests of each partition's rows, which do not depend on their order: those of
//	                the destination's present spec, by the values on both sides. docs/DIGEST.md tells how a digest
//	                is made. A row in a file of another partition than its own is a difference too
//	sample          compares --sample-size rows, chosen on both sides alike by a hash of key or row; that they
//	                agree proves nothing of the others
//	diff            names the rows that are missing, too many or changed, by --keys or the destination's identifier
//	                fields; without any whole rows are compared, and a changed one is one missing and one too many
//	auto            row_count, and partition_hash where the counts agree
//
// Memory is flat; a diff keeps rows of the parts of the tables that differ in temporary files (TMPDIR) where they
// are many. With diff, --tolerance COLUMN=1e-9 lets floats differ by so much, --limit bounds the rows that the
// report names, --output jsonl, csv or arrow writes all of them instead of the report, and --emit-fixes FILE
// writes the missing and changed rows, as the source has them, as an Arrow stream; rows too many are only named.
//
// Scopes: with --scope table the whole destination is compared, so that rows that were there before the job, and
// those of others, are differences. --scope job, which a checkpoint implies, compares the rows of the data files
// that the job's snapshots added, as the last of them has them. Where another writer has replaced such a file,
// before that or since, where snapshots of the job have expired, and after an undo, those rows are not told apart
// any more, and the scope is refused; the whole table is never taken instead. Rows that others deleted since, by
// delete files, still count, and it is told that the destination has moved on.
//
// It exits 0 when the tables agree, 2 when they differ, and 1 with "Verify error: …" when that could not
// be told.
//
// Examples:
//
//	ice-verify --src src.sales.orders --dst src.sales.orders --source-ref main --output json
//	ice-verify --src src.sales.orders --dst src.sales.orders --source-ref main --method partition_hash
//	ice-verify --src src.sales.orders --dst src.sales.orders --source-ref main --method diff --keys order_id --output jsonl
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

func main() { command.Main("ice-verify") }
