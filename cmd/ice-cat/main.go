// Ice-cat prints an Arrow IPC stream for people.
//
// Usage:
//
//	ice-scan … | ice-cat [flags]
//	ice-cat [flags] FILE
//
// It prints rows as a table, as JSON lines or as CSV, or the header alone, and then the seal. A stream that
// is broken is printed up to where it broke, and the error says where that is. Streams of other programs
// are printed too.
//
// Examples:
//
//	ice-scan src.sales.orders --limit 10 | ice-cat
//	ice-scan src.sales.orders --batch-rows 1000 --limit 5000 -o orders.arrows
//	ice-cat --format header orders.arrows
//	ice-cat --marks --format jsonl orders.arrows
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

func main() { command.Main("ice-cat") }
