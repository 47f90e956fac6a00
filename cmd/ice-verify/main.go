// Ice-verify compares two Iceberg tables.
//
// Usage:
//
//	ice-verify [flags]
//
// The method row_count counts the live rows of the source, at one snapshot, and of the whole destination:
// by metadata where that is exact, with position deletes and deletion vectors counted by their distinct
// positions, and by reading where equality deletes decide. Rows that were in the destination before count
// as a difference.
//
// It exits 0 when the tables agree, 2 when they differ, and 1 with "Verify error: …" when that could not
// be told.
//
// Examples:
//
//	ice-verify --src src.sales.orders --dst src.sales.orders --source-ref main --output json
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
