package migrate

import (
	"errors"
	"fmt"

	"icepipe/internal/datafile"
)

// fewGroups is how many small row groups a batch may be copied of.
const fewGroups = 8

// copyable refuses a job that cannot copy and must.
func copyable(o WriteOptions, ahead int) error {
	switch {
	case o.Copy != CopyRequire:
		return nil
	case o.Upsert != nil:
		return errors.New("an upsert looks at every row, so that nothing is copied; leave copying to be required out")
	case ahead == 0:
		return errors.New("a stream carries rows and no files, so that nothing can be copied; leave copying to be required out, or migrate in one process")
	}
	return nil
}

// copying is what is copied by the options.
func (w *writer) copying() datafile.Copy {
	c := datafile.Copy{Mode: datafile.CopyAuto, Promoted: w.options.CopyPromoted}
	switch {
	case w.options.Copy == CopyNever, w.ahead == 0, w.upsert != nil:
		c.Mode = datafile.CopyNever
	case w.options.Copy == CopyRequire:
		c.Mode = datafile.CopyRequire
	}
	c.Rows = min(w.in.Header.BatchRows, w.in.Header.Expected.Rows) / fewGroups
	return c
}

// copied is the error of a record batch that must not come, as everything is to be copied.
func (w *writer) copied() error {
	if w.options.Copy != CopyRequire {
		return nil
	}
	const cure = "--copy auto copies what can be copied"
	if why := w.refused.Load(); why != nil {
		return fmt.Errorf("%w; %s", *why, cure)
	}
	return fmt.Errorf("rows of a row group that lies in more than one batch cannot be copied; %s", cure)
}
