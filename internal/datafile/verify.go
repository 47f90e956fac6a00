package datafile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

// Verify looks whether a data file that was written earlier is there and whole: its size is what df
// says, its footer can be read and tells df's number of rows. It does not read the rows.
func Verify(ctx context.Context, fs iceio.IO, df iceberg.DataFile) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("data file %s: %w", df.FilePath(), err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := openData(fs, df.FilePath())
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != df.FileSizeBytes() {
		return fmt.Errorf("has %d bytes, %d were written", info.Size(), df.FileSizeBytes())
	}
	r, err := file.NewParquetReader(f)
	if err != nil {
		return err
	}
	if r.NumRows() != df.Count() {
		return fmt.Errorf("has %d rows, %d were written", r.NumRows(), df.Count())
	}
	return nil
}

func openData(fs iceio.IO, location string) (iceio.File, error) {
	if path, local := localdisk.Path(location); local {
		return os.Open(path)
	}
	if fs == nil {
		return nil, errors.New("no file system for its store")
	}
	return fs.Open(location)
}
