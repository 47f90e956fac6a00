// Package datafile writes the Parquet data files of an Iceberg table, and says what is in each as
// an iceberg.DataFile.
//
// A file is assembled from column chunks (File, Chunk): an Encoder per top-level column makes them,
// many columns at a time, from record batches or, for what is flat, from the pages of a source file
// (Source), which its leaves are read from without Arrow in between. A Writer stands above: it checks the values,
// clusters rows by partition, sorts them where the table asks for it, cuts row groups and files,
// and gives the data files of a batch once they are on disk. It commits nothing and deletes nothing.
package datafile

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// Config says which table a Writer writes for, and with what means.
type Config struct {
	Schema     *iceberg.Schema // of the rows and of the table
	Spec       iceberg.PartitionSpec
	SortOrder  table.SortOrder
	Properties iceberg.Properties // of the table
	Version    int                // format version of the table: 1, 2 or 3
	Location   string             // of the table

	// FS writes what is not local. Local files (file: and bare paths) are written and synced
	// without it, so that it may be nil for a local table.
	FS iceio.WriteFileIO
	// Name gives a new file name without a directory; default a random UUID. Calls do not overlap.
	Name func() string
	Resources
	// Mem holds what the Writer gathers; default Go's heap.
	Mem memory.Allocator

	// Copy says which column chunks of source files are copied as they are; default none.
	Copy Copy

	// GatherBytes bounds the record batches held of a partitioned or sorted table: that many bytes
	// are clustered at a time, and a batch above it makes more files. Default a quarter of Memory.
	GatherBytes int64
	// RowGroupBytes ends a row group when that many bytes of Arrow data went in, below what the
	// table's write.parquet.row-group-size-bytes says: all columns of a row group are encoded at the
	// same time, so their pages are held in memory until it ends. Default an eighth of Memory, of which
	// a third is held.
	RowGroupBytes int64
}

// Resources are what a Writer may use.
type Resources struct {
	// Jobs is how many columns are encoded at a time; default one more than GOMAXPROCS, so that a
	// processor has work while another column waits for its turn.
	Jobs int
	// Memory is about how many bytes what is on its way may take; default DefaultMemory.
	Memory int64
}

// DefaultMemory is 256 MiB.
const DefaultMemory = 256 << 20

func (c Config) withDefaults() Config {
	if c.Name == nil {
		c.Name = uuid.NewString
	}
	if c.Jobs <= 0 {
		c.Jobs = runtime.GOMAXPROCS(0) + 1
	}
	if c.Memory <= 0 {
		c.Memory = DefaultMemory
	}
	if c.Mem == nil {
		c.Mem = memory.DefaultAllocator
	}
	if c.GatherBytes <= 0 {
		c.GatherBytes = c.Memory / 4
	}
	if c.RowGroupBytes <= 0 {
		c.RowGroupBytes = c.Memory / 8
	}
	return c
}

// Table properties read here; the names are those of Iceberg's Java library.
const (
	propTargetSize   = "write.target-file-size-bytes"
	propRowGroupSize = "write.parquet.row-group-size-bytes"
	propPageSize     = "write.parquet.page-size-bytes"
	propPageRows     = "write.parquet.page-row-limit"
	propDictSize     = "write.parquet.dict-size-bytes"
	propCodec        = "write.parquet.compression-codec"
	propLevel        = "write.parquet.compression-level"
	propDict         = "parquet.enable.dictionary"
	propDictColumn   = "write.parquet.dict-encoding-enabled.column."
	propDataPath     = "write.data.path"
	propObjectStore  = "write.object-storage.enabled"
	propObjectPaths  = "write.object-storage.partitioned-paths"
	propMetrics      = "write.metadata.metrics.default"
	propMetricsCol   = "write.metadata.metrics.column."
)

// Pages of 256 KiB cost no measurable speed against the 1 MiB that Java writes, and hold less per
// open column; a table that sets write.parquet.page-size-bytes is obeyed.
const defaultPageSize = 256 << 10

// settings is what the table's properties decide about how bytes are written.
type settings struct {
	codec        compress.Compression
	level        int
	pageSize     int64
	pageRows     int // 0: pages end by size alone
	dictSize     int64
	dict         bool
	rowGroupSize int64
	targetSize   int64
}

func parseSettings(props iceberg.Properties) (settings, error) {
	s := settings{dict: true}
	var pageRows int64
	for _, p := range []struct {
		key   string
		unset int64
		to    *int64
	}{
		{propTargetSize, 512 << 20, &s.targetSize},
		{propRowGroupSize, 128 << 20, &s.rowGroupSize},
		{propPageSize, defaultPageSize, &s.pageSize},
		{propPageRows, 0, &pageRows},
		{propDictSize, 2 << 20, &s.dictSize},
	} {
		*p.to = p.unset
		text, ok := props[p.key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return s, fmt.Errorf("table property %q is %q: want a whole number above 0", p.key, text)
		}
		*p.to = n
	}
	s.pageRows = int(min(pageRows, 1<<30))
	// A page is one allocation and its size an int32 in the file.
	s.pageSize = min(s.pageSize, 1<<30)
	if v, ok := props[propDict]; ok {
		s.dict = strings.EqualFold(v, "true")
	}
	return s, s.parseCodec(props)
}

// levels is the range of compression levels of each codec that has them.
var levels = map[compress.Compression][2]int{
	compress.Codecs.Zstd:   {1, 22},
	compress.Codecs.Gzip:   {1, 9},
	compress.Codecs.Brotli: {0, 11},
}

func (s *settings) parseCodec(props iceberg.Properties) error {
	name := strings.ToLower(props.Get(propCodec, "zstd"))
	switch name {
	case "zstd":
		s.codec = compress.Codecs.Zstd
	case "gzip":
		s.codec = compress.Codecs.Gzip
	case "snappy":
		s.codec = compress.Codecs.Snappy
	case "brotli":
		s.codec = compress.Codecs.Brotli
	case "lz4", "lz4_raw", "lz4raw":
		// Parquet's codec of the name LZ4 is deprecated, as two readings of it are in the field.
		s.codec = compress.Codecs.Lz4Raw
	case "uncompressed", "none":
		s.codec = compress.Codecs.Uncompressed
	default:
		return fmt.Errorf("table property %q is %q, which cannot be written: set it to zstd, gzip, snappy, brotli, lz4 or uncompressed", propCodec, name)
	}
	s.level = compress.DefaultCompressionLevel
	text, ok := props[propLevel]
	if !ok || text == "" || strings.EqualFold(text, "null") {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("table property %q is %q: want a whole number", propLevel, text)
	}
	r, leveled := levels[s.codec]
	if !leveled || n == compress.DefaultCompressionLevel {
		return nil
	}
	if n < r[0] || n > r[1] {
		return fmt.Errorf("table property %q is %d: want %d to %d for codec %s", propLevel, n, r[0], r[1], name)
	}
	s.level = n
	return nil
}
