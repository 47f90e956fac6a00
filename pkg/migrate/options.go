package migrate

import (
	"cmp"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// DefaultMemory is how many bytes rows on their way may take unless something else is asked for.
const DefaultMemory = datafile.DefaultMemory

// A WriteOptions says where and how rows are written.
type WriteOptions struct {
	Branch     string      // "" for main; it must exist
	Checkpoint *ckpt.Store // nil: a run that dies cannot be resumed
	Jobs       int         // columns encoded at once, 0 for the number of processors
	Memory     int64       // bytes that rows on their way may take, about; 0 for 256 MiB
	Observe    func(Event) // called now and then, by the goroutine that called Write; may be nil

	NewJob               bool // begin a job although the branch holds batches of one with these settings, or of iceberg-ops
	Again                bool // write a stream that the branch holds batches of once more
	AcceptExpiredHistory bool // take batches that the branch's history does not show for expired, not rolled back

	// Copy says whether column chunks of the source's files are copied as they are: CopyAuto (or empty), CopyNever,
	// CopyRequire. With CopyPromoted those of promoted columns stay in their old type. Neither decides which rows are
	// written, so that a resume may have another. Streams out of a pipe carry rows: nothing of them is copied.
	Copy         string
	CopyPromoted bool

	Once bool // stage all batches and land them as one snapshot at the end, instead of one a batch

	// OverwritePartitions makes a job replace exactly the partitions, by value under the destination's current
	// spec, that its rows lie in; it lands as one snapshot. Without rows it changes nothing.
	OverwritePartitions bool
	WholeTable          bool // it may replace all rows of a destination without partitions
	OverwriteConcurrent bool // what others wrote into these partitions since the job began is replaced too

	Upsert *UpsertOptions // rows take the place of those with the same key; nil: they are added

	unique bool // the source's keys were looked through: none of them comes twice

	// Begin is told, when all checks are made and before the first row, the advice on the run; may be nil.
	Begin func(hints []string)
	// Waiting is called when the run was interrupted and waits for a commit to end, by a goroutine of
	// its own that Write waits for; may be nil.
	Waiting func()
}

func (o WriteOptions) resources() datafile.Resources {
	return datafile.Resources{Jobs: o.Jobs, Memory: o.Memory}
}

func (o WriteOptions) branch() string { return cmp.Or(o.Branch, table.MainBranch) }

// once reports whether all batches land as one snapshot.
func (o WriteOptions) once() bool { return o.Once || o.OverwritePartitions }

// An UpsertOptions says how rows of the destination are found that rows of the source take the place of.
type UpsertOptions struct {
	Keys       []string // top-level columns of the destination; nil for its identifier fields
	DeleteMode string   // DeleteAuto (or empty), DeleteCopyOnWrite, DeletePosition
	Duplicates string   // of keys in the source: DuplicateWithinBatch (or empty), DuplicateError, DuplicateFirst, DuplicateLast
	NullKeys   string   // NullKeysError (or empty), NullKeysMatch, NullKeysInsert
	FloatKeys  bool     // float and double columns may be keys: -0.0 equals 0.0, and NaN equals NaN
	UpdateAll  bool     // a destination that holds a key more than once is taken: all of its rows are updated
	Dir        string   // of temporary files, "" for the system's
}

// How rows of an upsert are taken out.
const (
	DeleteAuto        = "auto" // by the destination's properties and format version
	DeleteCopyOnWrite = "copy-on-write"
	DeletePosition    = "position" // position deletes, deletion vectors in format version 3
)

// Whether column chunks are copied.
const (
	CopyAuto    = "auto" // where it can be done
	CopyNever   = "never"
	CopyRequire = "require" // or not at all: the first row group that cannot be ends the run
)

// What becomes of rows of the source with the same key.
const (
	DuplicateWithinBatch = "within-batch" // two in one batch are an error; across batches the later row wins
	DuplicateError       = "error"
	DuplicateFirst       = "first"
	DuplicateLast        = "last"
)

// What becomes of rows with a null in their key.
const (
	NullKeysError  = "error"
	NullKeysMatch  = "match"
	NullKeysInsert = "insert"
)

// ErrMovedAway says that the destination, or its branch, is no longer the one that the job was writing to: another run
// does not mend it.
var ErrMovedAway = lake.ErrMovedAway

// Upsert is the write mode of a job with Upsert, as its settings have it.
const Upsert = "upsert"

// OverwritePartition is the write mode of a job with OverwritePartitions, as its settings have it.
const OverwritePartition = "overwrite_partition"

// mode is the write mode as settings have it.
func (o WriteOptions) mode() string {
	switch {
	case o.OverwritePartitions:
		return OverwritePartition
	case o.Upsert != nil:
		return Upsert
	}
	return appends
}

// appends is the write mode of a job that leaves the destination's rows alone, as its settings have it.
const appends = "append"

// An Event is the state of a run, for progress displays.
type Event struct {
	Rows              int64 // source rows so far, those of former runs included
	Expected          int64 // source rows in all, at most
	Commits           int64 // of this run, with those that it found landed
	BytesWritten      int64
	Resumed, Finished bool
}

func (w *writer) observe() {
	if w.options.Observe == nil {
		return
	}
	j, h := w.job, w.in.Header
	e := Event{Rows: w.had + w.taken, Expected: h.Expected.Rows, Resumed: j.resumed, Finished: w.complete}
	if (h.First != rows.Cursor{}) {
		e.Expected += j.before // the scan left them out
	}
	j.mu.Lock()
	e.Commits, e.BytesWritten = j.batches, j.run.BytesWritten
	j.mu.Unlock()
	w.options.Observe(e)
}
