package datafile

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// A conversion brings the values of a leaf of a source file to those of a leaf that is written.
type conversion int8

const (
	asIs          conversion = iota
	intToLong                // INT32 to INT64: int to long, and decimals
	floatToDouble            // FLOAT to DOUBLE
	bytesToInt               // decimals: big-endian bytes to INT32
	bytesToLong              // … to INT64
	bytesToBytes             // … to bytes of another length
	intToBytes               // decimals: INT32 to big-endian bytes
	longToBytes              // … INT64
)

// convertible tells how the values of a flat leaf become a column of type t, without decoding them into
// Arrow: they stay what they are, or are promoted as the spec allows (Schema Evolution). It says no to
// whatever it does not know, which is then read the ordinary way.
func convertible(from *schema.Column, t iceberg.PrimitiveType) (conversion, bool) {
	if from.MaxRepetitionLevel() != 0 || from.MaxDefinitionLevel() > 1 {
		return asIs, false
	}
	return conversionOf(from, t)
}

// conversionOf is convertible for leaves at any depth, whose levels are the caller's affair.
func conversionOf(from *schema.Column, t iceberg.PrimitiveType) (conversion, bool) {
	kind, logical := from.PhysicalType(), from.LogicalType()
	none := logical == nil || logical.Equals(schema.NoLogicalType{}) || !logical.IsValid() || logical.IsNone()
	switch t := t.(type) {
	case iceberg.BooleanType:
		return asIs, kind == parquet.Types.Boolean
	case iceberg.Int32Type:
		return asIs, kind == parquet.Types.Int32 && (none || signed(logical, 32))
	case iceberg.Int64Type:
		if kind == parquet.Types.Int32 {
			return intToLong, none || signed(logical, 32)
		}
		return asIs, kind == parquet.Types.Int64 && (none || signed(logical, 64))
	case iceberg.Float32Type:
		return asIs, kind == parquet.Types.Float && none
	case iceberg.Float64Type:
		if kind == parquet.Types.Float {
			return floatToDouble, none
		}
		return asIs, kind == parquet.Types.Double && none
	case iceberg.DateType:
		_, ok := logical.(schema.DateLogicalType)
		return asIs, ok && kind == parquet.Types.Int32
	case iceberg.TimeType:
		l, ok := logical.(schema.TimeLogicalType)
		return asIs, ok && kind == parquet.Types.Int64 && l.TimeUnit() == schema.TimeUnitMicros
	case iceberg.TimestampType:
		return asIs, timestamp(from, schema.TimeUnitMicros, false)
	case iceberg.TimestampTzType:
		return asIs, timestamp(from, schema.TimeUnitMicros, true)
	case iceberg.TimestampNsType:
		return asIs, timestamp(from, schema.TimeUnitNanos, false)
	case iceberg.TimestampTzNsType:
		return asIs, timestamp(from, schema.TimeUnitNanos, true)
	case iceberg.StringType:
		_, ok := logical.(schema.StringLogicalType)
		return asIs, ok && kind == parquet.Types.ByteArray
	case iceberg.BinaryType:
		return asIs, kind == parquet.Types.ByteArray && none
	case iceberg.UUIDType:
		_, ok := logical.(schema.UUIDLogicalType)
		return asIs, (ok || none) && kind == parquet.Types.FixedLenByteArray && from.TypeLength() == 16
	case iceberg.FixedType:
		return asIs, none && kind == parquet.Types.FixedLenByteArray && from.TypeLength() == t.Len()
	case iceberg.DecimalType:
		l, ok := logical.(schema.DecimalLogicalType)
		if !ok || int(l.Scale()) != t.Scale() || int(l.Precision()) > t.Precision() {
			return asIs, false
		}
		return decimals(from, t)
	}
	return asIs, false
}

func signed(l schema.LogicalType, most int8) bool {
	i, ok := l.(schema.IntLogicalType)
	return ok && i.IsSigned() && i.BitWidth() <= most
}

func timestamp(from *schema.Column, unit schema.TimeUnitType, adjusted bool) bool {
	l, ok := from.LogicalType().(schema.TimestampLogicalType)
	return ok && from.PhysicalType() == parquet.Types.Int64 && l.TimeUnit() == unit && l.IsAdjustedToUTC() == adjusted
}

// decimals tells how a decimal of the same scale and no more digits is stored anew (leafOf).
func decimals(from *schema.Column, to iceberg.DecimalType) (conversion, bool) {
	kind := from.PhysicalType()
	bytes := kind == parquet.Types.FixedLenByteArray
	switch {
	case to.Precision() <= 9:
		if bytes {
			return bytesToInt, true
		}
		return asIs, kind == parquet.Types.Int32
	case to.Precision() <= 18:
		switch kind {
		case parquet.Types.Int32:
			return intToLong, true
		case parquet.Types.FixedLenByteArray:
			return bytesToLong, true
		}
		return asIs, kind == parquet.Types.Int64
	}
	switch kind {
	case parquet.Types.Int32:
		return intToBytes, true
	case parquet.Types.Int64:
		return longToBytes, true
	}
	if bytes && from.TypeLength() != decimalBytes(to.Precision()) {
		return bytesToBytes, true
	}
	return asIs, bytes
}
