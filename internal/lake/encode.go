package lake

import (
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/codec"
)

// EncodeFile writes a data file of the table as a manifest entry has it, to be committed by another
// process. The partition spec's ID is not in it.
func (t *Table) EncodeFile(f iceberg.DataFile) ([]byte, error) {
	spec := t.Metadata().PartitionSpecByID(int(f.SpecID()))
	if spec == nil {
		return nil, fmt.Errorf("file %q: partition spec %d is not in the table", f.FilePath(), f.SpecID())
	}
	text, err := codec.EncodeDataFile(f, *spec, t.Schema(), t.Metadata().Version())
	if err != nil {
		return nil, fmt.Errorf("file %q: %w", f.FilePath(), err)
	}
	return text, nil
}

// DecodeFile is the inverse of EncodeFile.
func (t *Table) DecodeFile(text []byte, spec int) (iceberg.DataFile, error) {
	s := t.Metadata().PartitionSpecByID(spec)
	if s == nil {
		return nil, fmt.Errorf("partition spec %d is not in the table", spec)
	}
	return codec.DecodeDataFile(text, *s, t.Schema(), t.Metadata().Version())
}
