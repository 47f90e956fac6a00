package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// copiedChunk is a chunk of a source file as a chunk of the output, in which it is leaf to. It holds the source.
func copiedChunk(source *Source, group, leaf int, to *Leaf, index int, stop func() error) Chunk {
	meta := source.Reader.MetaData()
	chunk := *meta.RowGroups[group].Columns[leaf]
	m := *chunk.MetaData // row groups share theirs
	chunk.MetaData = &m
	codec := m.Codec
	start, _ := PagesStart(meta, group, leaf) // known to be right: copyable
	if d := m.DictionaryPageOffset; d != nil && *d <= 0 {
		m.DictionaryPageOffset = nil
	}
	m.KeyValueMetadata, m.GeospatialStatistics, m.Statistics = nil, nil, nil
	b := metadata.NewColumnChunkMetaDataBuilderWithContents(to.Props, to.Col, &chunk)
	m.Codec = codec // the builder takes that of the properties
	k := statisticsOf(source, group, leaf)
	if k.IsSet() {
		b.SetStats(k.EncodedStatistics)
	}
	source.Retain()
	return Chunk{
		Leaf: index, Rows: meta.RowGroups[group].NumRows, NaNs: k.nans, meta: b, base: start, copied: true, nansUnknown: !k.counted,
		body: &fileRange{
			source: source, off: start, promised: promised{size: m.TotalCompressedSize, values: m.NumValues}, stop: stop,
			place: fmt.Sprintf("row group %d, column %q", group, meta.Schema.Column(leaf).Path()),
		},
	}
}
