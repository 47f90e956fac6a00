//go:build !noclouds

package catalogs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
)

// A glueStore is AWS Glue's metastore.
//
// The library's own Glue catalog is not used: with glue.endpoint set it looks for the metadata there too, it
// reads all metadata before each commit, asks for the names of metadata files that it makes itself, and drops
// what Athena and others have noted in the table's entry.
type glueStore struct {
	ref Ref
	id  *string // of the catalog; nil: the account's own
	glueCalls
}

// glueCalls are the calls that are made, each a method of the SDK's client. A field that holds the client would
// make the linker keep all of its methods, since a glueStore is seen as an interface: 5 MB of code.
type glueCalls struct {
	getTable     func(context.Context, *glue.GetTableInput, ...func(*glue.Options)) (*glue.GetTableOutput, error)
	updateTable  func(context.Context, *glue.UpdateTableInput, ...func(*glue.Options)) (*glue.UpdateTableOutput, error)
	getTables    func(context.Context, *glue.GetTablesInput, ...func(*glue.Options)) (*glue.GetTablesOutput, error)
	getDatabases func(context.Context, *glue.GetDatabasesInput, ...func(*glue.Options)) (*glue.GetDatabasesOutput, error)
}

func callsOf(c *glue.Client) glueCalls {
	return glueCalls{c.GetTable, c.UpdateTable, c.GetTables, c.GetDatabases}
}

// A glueEntry is what Glue keeps of a table.
type glueEntry struct{ types.Table }

func (e glueEntry) parameters() map[string]string { return e.Parameters }

func (g *glueStore) entry(ctx context.Context, database, name string) (entry, error) {
	out, err := g.getTable(ctx, &glue.GetTableInput{CatalogId: g.id, DatabaseName: &database, Name: &name})
	if err != nil {
		return nil, g.explain(err)
	}
	return glueEntry{*out.Table}, nil
}

// errNoVersion says that Glue, or what stands for it, gave no version by which a change could be refused.
var errNoVersion = errors.New("its entry has no version, so that the commits of others would be overwritten: use another kind of catalog for a destination")

// swap changes the entry if its version is still that of old, which Glue checks. Only what is known not to
// have been done is asked for again by the SDK: a change that landed, and whose answer was lost, would come back
// as a conflict with itself. Java checks the version likewise (GlueTableOperations.persistGlueTable).
func (g *glueStore) swap(ctx context.Context, old entry, next table.Metadata, location string) error {
	was := old.(glueEntry).Table
	if aws.ToString(was.VersionId) == "" {
		return &refusedError{"table " + g.ref.String() + ": " + errNoVersion.Error(), errNoVersion}
	}
	_, err := g.updateTable(ctx, &glue.UpdateTableInput{
		CatalogId: g.id, DatabaseName: was.DatabaseName, VersionId: was.VersionId,
		SkipArchive: aws.Bool(!strings.EqualFold(g.ref.Properties["glue.skip-archive"], "false")),
		TableInput:  glueInput(was, next, location),
	}, func(o *glue.Options) {
		o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
			s.MaxAttempts = glueAttempts(g.ref.Properties)
			s.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
		})
	})
	return g.explain(err)
}

// glueInput is the entry with next as its metadata. What else is in it stays: Athena, Lake Formation and crawlers
// keep things there. Its columns are made anew where the schema is another one.
func glueInput(was types.Table, next table.Metadata, location string) *types.TableInput {
	in := &types.TableInput{
		Name: was.Name, Description: was.Description, LastAccessTime: was.LastAccessTime, LastAnalyzedTime: was.LastAnalyzedTime,
		Owner: was.Owner, PartitionKeys: was.PartitionKeys, Retention: was.Retention, TableType: was.TableType,
		TargetTable: was.TargetTable, ViewExpandedText: was.ViewExpandedText, ViewOriginalText: was.ViewOriginalText,
		Parameters: maps.Clone(was.Parameters),
	}
	in.Parameters[previousLocationKey] = was.Parameters[metadataLocationKey]
	in.Parameters[metadataLocationKey] = location
	storage := types.StorageDescriptor{}
	if was.StorageDescriptor != nil {
		storage = *was.StorageDescriptor
	}
	storage.Location = aws.String(next.Location())
	columns := glueColumns(next)
	if !sameColumns(columns, storage.Columns) {
		storage.Columns = columns
	}
	in.StorageDescriptor = &storage
	return in
}

// glueColumns are a table's columns in Glue's form.
func glueColumns(metadata table.Metadata) (out []types.Column) {
	for _, c := range columnsOf(metadata, true, "timestamp") {
		g := types.Column{Name: aws.String(c.name), Type: aws.String(c.kind), Parameters: map[string]string{
			"iceberg.field.id": strconv.Itoa(c.id), "iceberg.field.optional": strconv.FormatBool(c.optional), "iceberg.field.current": strconv.FormatBool(c.current),
		}}
		if c.comment != "" {
			g.Comment = aws.String(c.comment)
		}
		out = append(out, g)
	}
	return out
}

// sameColumns tells whether two lists name the same columns with the same types.
func sameColumns(a, b []types.Column) bool {
	return slices.EqualFunc(a, b, func(x, y types.Column) bool {
		return aws.ToString(x.Name) == aws.ToString(y.Name) && aws.ToString(x.Type) == aws.ToString(y.Type) && maps.Equal(x.Parameters, y.Parameters)
	})
}

func (g *glueStore) databases(ctx context.Context) (names []string, err error) {
	for next := (*string)(nil); ; {
		page, err := g.getDatabases(ctx, &glue.GetDatabasesInput{CatalogId: g.id, NextToken: next})
		if err != nil {
			return names, g.explain(err)
		}
		for _, d := range page.DatabaseList {
			names = append(names, aws.ToString(d.Name))
		}
		if next = page.NextToken; aws.ToString(next) == "" {
			return names, nil
		}
	}
}

func (g *glueStore) tables(ctx context.Context, database string) (names []string, err error) {
	for next := (*string)(nil); ; {
		page, err := g.getTables(ctx, &glue.GetTablesInput{CatalogId: g.id, DatabaseName: &database, NextToken: next})
		if err != nil {
			return names, g.explain(err)
		}
		for _, t := range page.TableList {
			if strings.EqualFold(t.Parameters[tableTypeKey], "iceberg") {
				names = append(names, aws.ToString(t.Name))
			}
		}
		if next = page.NextToken; aws.ToString(next) == "" {
			return names, nil
		}
	}
}

func (g *glueStore) close() error { return nil } // the SDK's client has nothing to give back
