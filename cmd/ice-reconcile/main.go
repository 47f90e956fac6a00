// Ice-reconcile projects an Arrow IPC stream to the columns of a destination table.
//
// Usage:
//
//	ice-scan … | ice-reconcile [flags] [CATALOG.namespace.table] | ice-write
//
// It makes a plan: for each destination column where its values come from. Columns and fields of structs
// are matched by name, never by position or ID; --column-mapping renames. Types may be widened as Iceberg
// promotes them; other casts are refused. What one side lacks is refused unless --on-missing-in-source or
// --on-missing-in-dest say what becomes of it. All is refused before a row is read, in one line that names
// the column and the cure.
//
// --explain prints the plan for people and no stream; --plan-out writes it as JSON, and --plan takes it in
// place of the mapping flags, on another machine too.
//
// Ice-reconcile looks at the destination and changes nothing there: the columns that auto_add adds are
// added by ice-write.
//
// Examples:
//
//	ice-scan src.sales.orders --limit 1 | ice-reconcile dst.warehouse.orders --column-mapping order_total:total_amount \
//	    --on-missing-in-source null --on-missing-in-dest auto_add --explain
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
