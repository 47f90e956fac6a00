package command

import "icepipe/pkg/migrate"

// modeFlags say what becomes of the destination's rows, and how many snapshots a job makes.
type modeFlags struct {
	WriteMode  string   `enum:"append,upsert,overwrite_partition" default:"append" help:"append adds rows; overwrite_partition puts them in the place of all rows of the partitions that they lie in, as one snapshot; upsert is not supported in this version."`
	UpsertKeys []string `placeholder:"COLUMN,…" help:"Not supported in this version."`
	Commit     string   `enum:"batch,once," default:"" placeholder:"batch|once" help:"A snapshot for each batch (batch, the default of append), or one for all of them at the end (once)."`
}

// mode puts the flags into the options of a run.
func (f modeFlags) mode(o *migrate.WriteOptions) error {
	if f.WriteMode == "upsert" || len(f.UpsertKeys) > 0 {
		return usagef("--write-mode upsert and --upsert-keys are not supported in this version; append and overwrite_partition are")
	}
	o.OverwritePartitions = f.WriteMode == migrate.OverwritePartition
	if o.OverwritePartitions && f.Commit == "batch" {
		return usagef("--write-mode overwrite_partition lands as one commit, since a second one would replace what the first one wrote; leave out --commit batch")
	}
	o.Once = f.Commit == "once"
	return nil
}

// overwriteFlags are what the user says to an overwrite.
type overwriteFlags struct {
	Yes                 bool `help:"With --write-mode overwrite_partition: replace all rows of a destination that has no partitions."`
	OverwriteConcurrent bool `help:"With --write-mode overwrite_partition: replace also what other writers changed in these partitions since the job began."`
}
