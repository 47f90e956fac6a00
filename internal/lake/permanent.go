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
	movedOn          = regexp.MustCompile(`(?i)requirement failed: .*(has changed|created concurrently)`) // another commit was first
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

// givenUp is the error of a commit that was tried as often as the table allows.
func givenUp(tries, retries int, failed error) error {
	cure := "run again"
	if errors.Is(failed, table.ErrCommitFailed) || movedOn.MatchString(failed.Error()) {
		cure = "another writer commits all the time: run again, or raise the table's commit.retry.num-retries"
	}
	return fmt.Errorf("commit, given up after %d tries (the table's commit.retry.num-retries is %d): %w; %s", tries, retries, failed, cure)
}
