// Package crash names the places of the programs where a process may die between two steps that only
// make sense together. In a program that people use Here does nothing, and nothing can arm it: the code
// that kills is compiled only with the build tag "crash", which the tests of internal/interop use.
package crash

// Points are the names that Here is called with, in the order in which a run passes them. Each stands
// in the sources once; a test says so, and another one that each of them is passed.
var Points = []string{
	"migrate.begun",         // the job is noted, nothing of it is written
	"lake.schema-changed",   // the catalog has the plan's schema changes, the checkpoint has not
	"migrate.arranged",      // the checkpoint has them too
	"datafile.created",      // a data file is there, empty
	"datafile.closed",       // a data file is whole and synced
	"datafile.written",      // all files of a batch, and their folders, are synced
	"migrate.thinned",       // staged files of an upsert whose rows later batches change are written anew, their note names the old ones
	"migrate.pending-noted", // the checkpoint names the files of the batch
	"lake.deletes-written",  // the delete files of an upsert, or its copies of rows, are synced
	"lake.staged",           // manifests and manifest list are written, the catalog does not know of them
	"lake.sent",             // the catalog has the snapshot, the checkpoint has not
	"migrate.landed-noted",  // the checkpoint has it too
	"migrate.marks-found",   // a resume has found what landed without a note
	"migrate.redone",        // a resume has committed the pending batch, and not noted it
	"migrate.all-written",   // every batch is noted, the end is not
	"migrate.completed",     // the end is noted
}
