package lake

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"syscall"

	"github.com/apache/iceberg-go/table"
)

// What errors that have no type say.
var (
	denied           = regexp.MustCompile(`(?i)attempt to write a readonly database|permission denied|read-only file system`)
	readOnlyDatabase = regexp.MustCompile(`(?i)attempt to write a readonly database`)
	movedOn          = regexp.MustCompile(`(?i)requirement failed: .*(has changed|created concurrently)|database is locked|SQLITE_BUSY`)
)

// isDenied reports whether an error says that something may not be written: no further try mends that.
func isDenied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || err != nil && denied.MatchString(err.Error())
}

// deniedText names what may not be written, with the cure.
func (t *Table) deniedText(err error) error {
	what := fmt.Sprintf("table %q", t.Name())
	if readOnlyDatabase.MatchString(err.Error()) {
		what = "the catalog's database"
		if t.Place.DBPath != "" {
			what += fmt.Sprintf(" %q", t.Place.DBPath)
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		what = fmt.Sprintf("%q", path.Path)
	}
	return fmt.Errorf("%s cannot be written by this user: %w; see to its permissions and those of its folder", what, err)
}

// isConflict reports whether an error says that another commit was first, or holds the catalog: the try
// cost nothing, and somebody made progress.
func isConflict(err error) bool {
	return errors.Is(err, table.ErrCommitFailed) || err != nil && movedOn.MatchString(err.Error())
}
