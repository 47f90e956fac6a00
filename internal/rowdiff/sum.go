package rowdiff

import (
	"encoding/binary"
	"math/bits"
)

// Sum adds up hashes modulo 2^256, in words from the most significant on: sums of the same hashes are the same
// in whatever order they were added, and how often each was added counts, as it would not for XOR.
type Sum [4]uint64

// Add adds a hash, which is read as a big-endian number.
func (s *Sum) Add(hash [32]byte) {
	var carry uint64
	for i := 3; i >= 0; i-- {
		s[i], carry = bits.Add64(s[i], binary.BigEndian.Uint64(hash[8*i:]), carry)
	}
}
