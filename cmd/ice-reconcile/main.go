// Ice-reconcile projects an Arrow IPC stream to the columns of a destination table.
//
// Usage:
//
//	ice-scan … | ice-reconcile [flags] [CATALOG.namespace.table] | ice-write
//
// It makes a plan: for each destination column where its values come from. Columns and fields of structs
// are matched by name, never by position or ID; --ignore-case takes names that differ only by case for the
// same, --column-mapping renames, --drop leaves a column out. Types are widened as Iceberg promotes them, and
// cast where that has a meaning (docs/CASTS.md); timestamps get or lose a zone only by --assume-timezone. What
// one side lacks is refused unless --on-missing-in-source or --on-missing-in-dest say what becomes of it. All
// that types and names decide is refused before a row is read, in one line that names the column and the cure;
// casts that may not go through are warned of.
//
// A value that does not fit ends the stream, named by column, file, row group and row (counted from 0, after
// deletes). By --on-cast-error null takes its place, or its row goes into --reject-file (reject): an Arrow
// stream or JSON lines, with reason, place and the whole source row. A resumed run leaves no entry twice.
//
// --explain prints the plan for people and no stream; --plan-out writes it as JSON, and --plan takes it in
// place of the mapping flags, on another machine too: no destination needs to be named then, and no catalog is
// asked.
//
// Ice-reconcile looks at the destination and changes nothing there: the columns that auto_add adds are
// added by ice-write.
//
// Examples:
//
//	ice-scan src.sales.orders --limit 1 | ice-reconcile dst.warehouse.orders --column-mapping order_total:total_amount \
//	    --on-missing-in-source null --on-missing-in-dest auto_add --explain
//	ice-scan src.sales.orders | ice-reconcile dst.warehouse.orders --column-mapping order_total:total_amount \
//	    --on-missing-in-source null --on-missing-in-dest ignore --on-cast-error reject --reject-file bad.jsonl | ice-write
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

func main() { command.Main("ice-reconcile") }
