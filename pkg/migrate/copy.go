package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/internal/datafile"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
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

// copying is what is copied by the options of a stream in this process.
func (o WriteOptions) copying(h rows.Header) datafile.Copy {
	c := datafile.Copy{Mode: datafile.CopyAuto, Promoted: o.CopyPromoted}
	switch {
	case o.Copy == CopyNever, o.Upsert != nil:
		c.Mode = datafile.CopyNever
	case o.Copy == CopyRequire:
		c.Mode = datafile.CopyRequire
	}
	c.Rows = min(h.BatchRows, h.Expected.Rows) / fewGroups
	return c
}

// copied refuses a job of which all must be copied where that cannot be done with a row group, before anything is
// written. in is the job's source, ranged over by no one else.
func (m *Migrator) copied(ctx context.Context, in rows.Stream, p *plan.Plan, o WriteOptions) error {
	if o.Copy != CopyRequire {
		return nil
	}
	config, err := m.Dest.lake.FileConfigAfter(ctx, p, o.resources())
	if err != nil {
		return err
	}
	config.Copy = o.copying(in.Header)
	projector, err := p.Projector(in.Schema, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	files, err := datafile.NewWriter(ctx, config)
	if err != nil {
		return err
	}
	arranged, err := arrange(projector.Schema(), p, m.Dest.lake, config.Schema)
	if err != nil {
		return err
	}
	for span, err := range in.Spans {
		if err != nil {
			return err
		}
		_, refused := files.Takes(arranged.part(placed(span.Part, projector.Origins())))
		span.Release()
		if refused != nil {
			return fmt.Errorf("%w; %s", refused, copyCure)
		}
	}
	return nil
}

const copyCure = "--copy auto copies what can be copied"

// copied is the error of a record batch that must not come, as everything is to be copied.
func (w *writer) copied() error {
	if w.options.Copy != CopyRequire {
		return nil
	}
	if why := w.refused.Load(); why != nil {
		return fmt.Errorf("%w; %s", *why, copyCure)
	}
	return fmt.Errorf("rows of a row group that lies in more than one batch cannot be copied; %s", copyCure)
}
