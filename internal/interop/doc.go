// Package interop holds the tests that need the built programs and other engines beside them: tables
// that PyIceberg and Spark wrote are moved, and PyIceberg, Spark and DuckDB read what arrived; programs
// are killed and disks fail, and the same readers look at what one more run made of it.
//
// The tests stand behind build tags, for they need Python and Java: "interop" (make interop) moves
// the tables of testdata/interop, "memory" (make memory) measures the programs over a large file.
package interop
