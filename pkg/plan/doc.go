// Package plan decides how the columns of a source table become those of a destination table, and
// carries it out on record batches.
//
// Build makes a Plan from two Iceberg schemas and the user's Options: for every destination column
// where it comes from and what happens to it. Columns are matched by name, case-sensitively, never
// by position or field ID, and so are the fields of structs at every depth, inside lists and maps
// too. Everything that can be refused is refused here, before a row is read, by an error of one
// line that names the column and the cure.
//
// A Plan is a document: MarshalJSON and Parse are inverses, Explain prints it for people. Changes
// are the schema changes that the destination needs first; once they are made (or if somebody else
// changed the schema meanwhile), Resolve finds the targets again.
//
// A Projector applies a plan to record batches. Columns that are taken as they are share their
// memory with the source; the cost is linear in the columns.
package plan
