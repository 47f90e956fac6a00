package command

import "icepipe/pkg/migrate"

// modeFlags say what becomes of the destination's rows, and how many snapshots a job makes.
type modeFlags struct {
	WriteMode  string   `enum:"append,upsert,overwrite_partition" default:"append" help:"append; upsert and overwrite_partition are not supported in this version."`
	UpsertKeys []string `placeholder:"COLUMN,…" help:"Not supported in this version."`
	Commit     string   `enum:"batch,once," default:"" placeholder:"batch|once" help:"A snapshot for each batch (batch, the default), or one for all of them at the end (once)."`
}

// mode puts the flags into the options of a run.
func (f modeFlags) mode(o *migrate.WriteOptions) error {
	if f.WriteMode != "append" || len(f.UpsertKeys) > 0 {
		return usagef("--write-mode %s and --upsert-keys are not supported in this version; append is", f.WriteMode)
	}
	o.Once = f.Commit == "once"
	return nil
}
