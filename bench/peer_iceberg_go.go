//go:build ignore

// The job with iceberg-go alone, as its documentation has it: the records of a scan, so many of them to
// WriteRecords, its files to AddDataFiles, one commit each. The library promotes and fills with null.
//
// usage: go run bench/peer_iceberg_go.go JOB
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite"
)

type job struct {
	Source, Table, Out string
	Rename             map[string]string
	Filter             *struct {
		Column string
		Below  int64
	}
	BatchRows int64 `json:"batch_rows"`
	Most      int
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	var j job
	if err := json.Unmarshal([]byte(os.Args[1]), &j); err != nil {
		return err
	}
	src, err := open(ctx, j.Source, "src", j.Table)
	if err != nil {
		return err
	}
	_, name, _ := strings.Cut(j.Table, ".")
	dst, err := open(ctx, j.Out, "dst", "warehouse."+name)
	if err != nil {
		return err
	}
	begin := time.Now()
	var options []table.ScanOption
	if j.Filter != nil {
		options = append(options, table.WithRowFilter(iceberg.LessThan(iceberg.Reference(j.Filter.Column), j.Filter.Below)))
	}
	schema, records, err := src.Scan(options...).ToArrowRecords(ctx)
	if err != nil {
		return err
	}
	schema, err = renamed(schema, dst, j.Rename)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(records)
	defer stop()
	s := &source{next: next, schema: schema}
	commits := 0
	for j.Most == 0 || commits < j.Most {
		var files []iceberg.DataFile
		for file, err := range table.WriteRecords(ctx, dst, schema, s.batch(j.BatchRows)) {
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		if len(files) == 0 {
			break
		}
		tx := dst.NewTransaction()
		if err := tx.AddDataFiles(ctx, files, nil); err != nil {
			return err
		}
		if dst, err = tx.Commit(ctx); err != nil {
			return err
		}
		commits++
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"rows": s.rows, "commits": commits, "seconds": time.Since(begin).Seconds()})
}

func open(ctx context.Context, folder, side, name string) (*table.Table, error) {
	c, err := catalog.Load(ctx, "default", iceberg.Properties{
		"type": "sql", "uri": fmt.Sprintf("file:%s/%s.db", folder, side), "sql.driver": "sqlite", "sql.dialect": "sqlite",
		"warehouse": fmt.Sprintf("file://%s/%s_wh", folder, side),
	})
	if err != nil {
		return nil, err
	}
	return c.LoadTable(ctx, catalog.ToIdentifier(name))
}

// renamed is the schema of the records with the destination's names and field IDs.
func renamed(schema *arrow.Schema, dst *table.Table, names map[string]string) (*arrow.Schema, error) {
	target, err := table.SchemaToArrowSchema(dst.Schema(), nil, true, false)
	if err != nil {
		return nil, err
	}
	fields := schema.Fields()
	for i, f := range fields {
		if new, ok := names[f.Name]; ok {
			f.Name = new
		}
		at := target.FieldIndices(f.Name)
		if len(at) != 1 {
			return nil, fmt.Errorf("no column %s", f.Name)
		}
		f.Metadata = target.Field(at[0]).Metadata
		if arrow.TypeEqual(f.Type, target.Field(at[0]).Type) {
			f.Type = target.Field(at[0]).Type // with the IDs of nested fields
		}
		fields[i] = f
	}
	return arrow.NewSchema(fields, nil), nil
}

// source hands out the records of a scan in batches of so many rows.
type source struct {
	next   func() (arrow.RecordBatch, error, bool)
	schema *arrow.Schema
	rest   arrow.RecordBatch
	rows   int64
}

func (s *source) batch(rows int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for left := rows; left > 0; {
			rec := s.rest
			if s.rest = nil; rec == nil {
				read, err, ok := s.next()
				if err != nil {
					yield(nil, err)
					return
				}
				if !ok {
					return
				}
				rec = array.NewRecordBatch(s.schema, read.Columns(), read.NumRows())
				read.Release()
			}
			if rec.NumRows() > left {
				s.rest = rec.NewSlice(left, rec.NumRows())
				part := rec.NewSlice(0, left)
				rec.Release()
				rec = part
			}
			left -= rec.NumRows()
			s.rows += rec.NumRows()
			if !yield(rec, nil) {
				return
			}
		}
	}
}
