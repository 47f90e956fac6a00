package arrowipc

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // registers uuid, variant and others
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A decoder makes record batches of messages, which it has checked, through arrow-go's reader. That
// reader asks for messages by itself; the decoder stands between.
type decoder struct {
	src    *source
	reader *ipc.Reader
	feed   *feed
	schema *arrow.Schema // marks taken out

	// broken says that the reader failed to decode. It may then have released dictionaries that it
	// still holds, and is left to the garbage collector.
	broken bool

	batches      layout
	dictionaries map[int64]layout
}

// newDecoder takes the schema's message.
func newDecoder(src *source, schema *message) (_ *decoder, err error) {
	d := &decoder{src: src, feed: &feed{}}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("schema: %v", p)
		}
	}()
	d.feed.queue(schema)
	d.reader, err = ipc.NewReaderFromMessageReader(d.feed, ipc.WithAllocator(src.mem))
	if err != nil {
		return nil, err
	}
	for _, f := range d.reader.Schema().Fields() {
		if err := checkType(f.Type); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	d.schema = withoutMarks(d.reader.Schema())
	var values []arrow.DataType
	for _, f := range d.schema.Fields() {
		d.batches.add(f.Type)
		values = append(values, dictionaryValues(f.Type)...)
	}
	if len(values) != len(schema.flat.dictionaries) {
		return nil, errors.New("schema with a dictionary out of place")
	}
	d.dictionaries = map[int64]layout{}
	for i, id := range schema.flat.dictionaries {
		var l layout
		l.add(values[i])
		d.dictionaries[id] = l
	}
	return d, nil
}

// dictionaryValues are the types of the values of all dictionaries in a type, depth first.
func dictionaryValues(dt arrow.DataType) []arrow.DataType {
	var out []arrow.DataType
	if ext, ok := dt.(arrow.ExtensionType); ok {
		dt = ext.StorageType()
	}
	if d, ok := dt.(*arrow.DictionaryType); ok {
		out = append(out, d.ValueType)
		dt = d.ValueType
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			out = append(out, dictionaryValues(f.Type)...)
		}
	}
	return out
}

// decode decodes a record batch, which the caller owns.
func (d *decoder) decode(m *message) (_ arrow.RecordBatch, err error) {
	if err := d.check(m); err != nil {
		return nil, err
	}
	d.feed.queue(m)
	return d.next()
}

// check holds what a message says of its buffers against its body.
func (d *decoder) check(m *message) error {
	body, limit := m.body.Bytes(), d.src.limits.Body
	switch m.kind {
	case kindBatch:
		return checkBatch(m.flat, m.pos, d.batches, body, limit)
	case kindDictionary:
		var id int64
		if at := m.flat.slot(m.pos, 0); at != 0 {
			id = m.flat.i64(at)
		}
		want, ok := d.dictionaries[id]
		if !ok {
			return fmt.Errorf("dictionary %d is not in the schema", id)
		}
		values := m.flat.table(m.pos, 1)
		if values == 0 {
			return fmt.Errorf("dictionary %d without values", id)
		}
		return checkBatch(m.flat, values, want, body, limit)
	}
	return errors.New("a second schema")
}

// next takes the next record batch out of the reader, and checks that all of its values can be
// got at. It returns nil without an error where the feed has ended.
func (d *decoder) next() (_ arrow.RecordBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("record batch: %v", p)
		}
	}()
	if !d.reader.Next() {
		if d.feed.err != nil {
			return nil, d.feed.err
		}
		err := d.reader.Err()
		d.broken = !errors.Is(err, errEnded)
		return nil, err
	}
	got := d.reader.RecordBatch()
	cols := make([]arrow.Array, 0, got.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, col := range got.Columns() {
		name := d.schema.Field(i).Name
		if int64(col.Len()) != got.NumRows() {
			return nil, fmt.Errorf("column %q has %d values for %d rows", name, col.Len(), got.NumRows())
		}
		col = wholeNulls(col)
		cols = append(cols, col)
		if err := validate(col); err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
	}
	return array.NewRecordBatch(d.schema, cols, got.NumRows()), nil
}

// wholeNulls returns arr, with the buffer that arrow-go's own validation wants of an array of type
// null and its reader does not give.
func wholeNulls(arr arrow.Array) arrow.Array {
	if !has(arr.DataType(), arrow.NULL) {
		arr.Retain()
		return arr
	}
	data := wholeNullData(arr.Data())
	defer data.Release()
	return array.MakeFromData(data)
}

func wholeNullData(data arrow.ArrayData) arrow.ArrayData {
	switch data.DataType().ID() {
	case arrow.NULL:
		return array.NewData(data.DataType(), data.Len(), []*memory.Buffer{nil}, nil, data.Len(), 0)
	case arrow.DICTIONARY:
		data.Retain()
		return data
	}
	var children []arrow.ArrayData
	for _, c := range data.Children() {
		child := wholeNullData(c)
		defer child.Release()
		children = append(children, child)
	}
	return array.NewData(data.DataType(), data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

// has says whether a type is, or has inside of it, one of the given kind.
func has(dt arrow.DataType, id arrow.Type) bool {
	if dt.ID() == id {
		return true
	}
	if ext, ok := dt.(arrow.ExtensionType); ok {
		return has(ext.StorageType(), id)
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if has(f.Type, id) {
				return true
			}
		}
	}
	return false
}

func (d *decoder) release() {
	if !d.broken {
		d.reader.Release()
	}
	d.feed.drop()
	if d.feed.next != nil {
		d.feed.next.Release()
		d.feed.next = nil
	}
}

// A feed hands messages to an ipc.Reader.
type feed struct {
	pull func() (*message, error) // asked where nothing is queued; nil: nothing more
	next *ipc.Message
	lent *ipc.Message // valid until the next call, as the reader expects
	err  error        // of pull
}

// queue takes a message for the next call. The message stays the caller's.
func (f *feed) queue(m *message) {
	meta := memory.NewBufferBytes(m.meta)
	f.next = ipc.NewMessage(meta, m.body)
	meta.Release()
}

// errEnded tells the reader that there is no more, other than by the io.EOF that it swallows.
var errEnded = errors.New("no message")

func (f *feed) Message() (*ipc.Message, error) {
	f.drop()
	if f.next == nil && f.pull != nil {
		m, err := f.pull()
		if err != nil {
			f.err = err
			return nil, err
		}
		if m != nil {
			f.queue(m)
			m.release()
		}
	}
	if f.next == nil {
		return nil, errEnded
	}
	f.lent, f.next = f.next, nil
	return f.lent, nil
}

func (f *feed) drop() {
	if f.lent != nil {
		f.lent.Release()
		f.lent = nil
	}
}

func (f *feed) Retain()  {}
func (f *feed) Release() {}

// checkType refuses types with sizes that no array can have.
func checkType(dt arrow.DataType) error {
	switch t := dt.(type) {
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth < 1 || t.ByteWidth > 1<<24 {
			return fmt.Errorf("fixed-size binary of %d bytes", t.ByteWidth)
		}
	case *arrow.FixedSizeListType:
		if t.Len() < 1 || t.Len() > 1<<24 {
			return fmt.Errorf("fixed-size list of %d elements", t.Len())
		}
	case arrow.DecimalType:
		most := map[int]int32{32: 9, 64: 18, 128: 38, 256: 76}[t.BitWidth()]
		if p, s := t.GetPrecision(), t.GetScale(); p < 1 || p > most || s < -most || s > most {
			return fmt.Errorf("decimal of %d digits and scale %d", p, s)
		}
	case arrow.UnionType:
		return fmt.Errorf("type %s has no like in a table: leave the column out", t)
	case *arrow.DictionaryType:
		return checkType(t.ValueType)
	case arrow.ExtensionType:
		return checkType(t.StorageType())
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if err := checkType(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}
