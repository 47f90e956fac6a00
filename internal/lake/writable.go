package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/datafile"
	"icepipe/pkg/plan"
)

// FileConfig is how data files of the table as it is now are written.
func (t *Table) FileConfig(ctx context.Context, with datafile.Resources) (datafile.Config, error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return datafile.Config{}, err
	}
	c := t.fileConfig()
	c.Resources = with
	c.FS, _ = fs.(iceio.WriteFileIO)
	return c, nil
}

// FileConfigAfter is FileConfig once the changes of a plan are made to the table's schema.
func (t *Table) FileConfigAfter(ctx context.Context, p *plan.Plan, with datafile.Resources) (datafile.Config, error) {
	c, err := t.FileConfig(ctx, with)
	if err == nil {
		c.Schema, err = t.schemaAfter(p)
	}
	return c, err
}

// schemaAfter is the table's schema once the changes of a plan are made.
func (t *Table) schemaAfter(p *plan.Plan) (*iceberg.Schema, error) {
	pending, err := p.Pending(t.Schema())
	if err != nil {
		return nil, fmt.Errorf("schema of table %q: %w", t.Name(), err)
	}
	fields, err := t.evolution().apply(t.Schema(), pending)
	if err != nil {
		return nil, fmt.Errorf("schema of table %q: %w", t.Name(), err)
	}
	return iceberg.NewSchemaWithIdentifiers(t.Schema().ID, t.Schema().IdentifierFieldIDs, fields...), nil
}

func (t *Table) fileConfig() datafile.Config {
	return datafile.Config{
		Schema: t.Schema(), Spec: t.Spec(), SortOrder: t.SortOrder(), Properties: t.Properties(),
		Version: t.Metadata().Version(), Location: t.Location(),
	}
}

// Writable refuses a table whose data files cannot be written once the changes of a plan are made to its
// schema, and changes that its partitions do not bear. It writes nothing.
func (t *Table) Writable(p *plan.Plan) error {
	after, err := t.schemaAfter(p)
	if err != nil {
		return err
	}
	c := t.fileConfig()
	c.Schema = after
	if err := t.partitionsBear(c.Schema); err != nil {
		return fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if err := datafile.Check(c); err != nil {
		return fmt.Errorf("table %q: %w", t.Name(), err)
	}
	return nil
}

// partitionsBear refuses a promotion after which a transform gives other values for the same rows
// (specification, "Schema Evolution"): that of a date to a timestamp.
func (t *Table) partitionsBear(after *iceberg.Schema) error {
	for _, spec := range t.Metadata().PartitionSpecs() {
		for _, f := range spec.Fields() {
			for _, id := range f.SourceIDs {
				was, ok := t.Schema().FindFieldByID(id)
				is, also := after.FindFieldByID(id)
				if !ok || !also || was.Type.Equals(is.Type) {
					continue
				}
				if _, date := was.Type.(iceberg.DateType); date {
					return fmt.Errorf("column %q cannot become %s, since partition field %q (%s) would have other values for the same rows", was.Name, is.Type, f.Name, f.Transform)
				}
			}
		}
	}
	return nil
}
