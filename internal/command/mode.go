package command

import (
	"strings"

	"icepipe/pkg/migrate"
)

// modeFlags say what becomes of the destination's rows, and how many snapshots a job makes.
type modeFlags struct {
	WriteMode      string   `enum:"append,upsert,overwrite_partition" default:"append" help:"append adds rows; upsert puts them in the place of those with the same key; overwrite_partition in the place of all rows of the partitions that they lie in, as one snapshot."`
	UpsertKeys     []string `sep:"none" placeholder:"COLUMN,…" help:"With --write-mode upsert: the destination's columns that identify a row (default: its identifier fields)."`
	DeleteMode     string   `enum:"auto,copy-on-write,position," default:"" placeholder:"auto|copy-on-write|position" help:"With upsert: how rows are taken out. position writes position deletes (deletion vectors in format version 3); copy-on-write writes the files anew without them; auto, the default, goes by write.merge.mode, write.update.mode and the format version."`
	OnDuplicateKey string   `enum:"within-batch,error,first,last," default:"" placeholder:"within-batch|error|first|last" help:"With upsert: what becomes of source rows with the same key. within-batch, the default, refuses two in one batch, and of different batches the later row wins; error refuses two anywhere; first and last take the first or last of the source, whatever the batch size."`
	NullKeys       string   `enum:"error,match,insert," default:"" placeholder:"error|match|insert" help:"With upsert: what becomes of rows whose key holds a null: refused (the default), null equals null, or added without looking."`
	FloatKeys      bool     `help:"With upsert: columns of float and double may be keys; -0.0 equals 0.0, and NaN equals NaN."`
	UpdateAll      bool     `help:"With upsert: a destination that holds a key more than once is taken, and all rows of the key are updated."`
	Commit         string   `enum:"batch,once," default:"" placeholder:"batch|once" help:"A snapshot for each batch (batch, the default of append and upsert), or one for all of them at the end (once)."`
}

// mode puts the flags into the options of a run.
func (f modeFlags) mode(o *migrate.WriteOptions) error {
	if f.WriteMode != migrate.Upsert {
		for _, given := range []struct {
			flag string
			is   bool
		}{
			{"--upsert-keys", f.UpsertKeys != nil}, {"--delete-mode", f.DeleteMode != ""}, {"--on-duplicate-key", f.OnDuplicateKey != ""},
			{"--null-keys", f.NullKeys != ""}, {"--float-keys", f.FloatKeys}, {"--update-all", f.UpdateAll},
		} {
			if given.is {
				return usagef("%s is for --write-mode upsert, and the mode is %s", given.flag, f.WriteMode)
			}
		}
	}
	o.OverwritePartitions = f.WriteMode == migrate.OverwritePartition
	if o.OverwritePartitions && f.Commit == "batch" {
		return usagef("--write-mode overwrite_partition lands as one commit, since a second one would replace what the first one wrote; leave out --commit batch")
	}
	o.Once = f.Commit == "once"
	if f.WriteMode == migrate.Upsert {
		o.Upsert = &migrate.UpsertOptions{Keys: f.keys(), DeleteMode: f.DeleteMode, Duplicates: f.OnDuplicateKey, NullKeys: f.NullKeys, FloatKeys: f.FloatKeys, UpdateAll: f.UpdateAll}
	}
	return nil
}

// keys are the names of --upsert-keys, nil where it is not given; blanks around commas are not meant.
func (f modeFlags) keys() []string {
	var out []string
	for _, list := range f.UpsertKeys {
		for _, name := range strings.Split(list, ",") {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

// overwriteFlags are what the user says to an overwrite.
type overwriteFlags struct {
	Yes                 bool `help:"With --write-mode overwrite_partition: replace all rows of a destination that has no partitions."`
	OverwriteConcurrent bool `help:"With --write-mode overwrite_partition: replace also what other writers changed in these partitions since the job began."`
}
