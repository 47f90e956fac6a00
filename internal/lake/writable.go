package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/datafile"
	"icepipe/pkg/plan"
)

// FileConfig is how data files of the table as it is now are written, encoding jobs columns at a time.
func (t *Table) FileConfig(ctx context.Context, jobs int) (datafile.Config, error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return datafile.Config{}, err
	}
	c := t.fileConfig()
	c.Jobs = jobs
	c.FS, _ = fs.(iceio.WriteFileIO)
	return c, nil
}

func (t *Table) fileConfig() datafile.Config {
	return datafile.Config{
		Schema: t.Schema(), Spec: t.Spec(), SortOrder: t.SortOrder(), Properties: t.Properties(),
		Version: t.Metadata().Version(), Location: t.Location(),
	}
}

// Writable refuses a table whose data files cannot be written, once the changes are made to its schema.
// It writes nothing.
func (t *Table) Writable(changes []plan.Change) error {
	e := evolution{next: t.Metadata().LastColumnID(), version: t.Metadata().Version(), adds: map[int][]iceberg.NestedField{}}
	fields, _, err := e.apply(t.Schema(), changes)
	if err != nil {
		return fmt.Errorf("schema of table %q: %w", t.Name(), err)
	}
	c := t.fileConfig()
	c.Schema = iceberg.NewSchemaWithIdentifiers(t.Schema().ID, t.Schema().IdentifierFieldIDs, fields...)
	if err := datafile.Check(c); err != nil {
		return fmt.Errorf("table %q: %w", t.Name(), err)
	}
	return nil
}
