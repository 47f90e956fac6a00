// Package arrowipc is the wire between programs: a rows.Stream as a plain Arrow IPC stream that any
// Arrow reader can read, with the marks of icepipe as metadata.
//
// Write and Read are inverses up to laziness: what comes out of a pipe is opened. Neither closes
// what it did not open.
//
// # The stream
//
// An Arrow schema message, a record batch message for each span, the seal, Arrow's end marker, and
// nothing behind it. There are no dictionary batches. Metadata:
//
//	schema        icepipe.header      the rows.Header as JSON
//	              icepipe.hash        of this very message, with 32 zeros in the place of the hash
//	record batch  icepipe.from        the cursors it spans, as rows.Cursor prints them
//	              icepipe.to
//	              icepipe.rows        source rows that it stands for, before rejects
//	              icepipe.kept        which of them are left, a bitmap in base64; absent: all
//	              icepipe.ends-batch  "true" where a batch ends after it
//	              icepipe.hash        of all bytes of the stream before this message
//	seal          icepipe.seal        the rows.Seal as JSON, on a record batch without rows
//	              icepipe.seal-hash   of that JSON
//	              icepipe.hash        of all bytes of the stream before this message
//
// Hashes are xxh3-128 in 32 hexadecimal digits. They find damage, not forgery.
//
// # What a consumer may rely on
//
// A span comes out of Read only after the next message has vouched for its bytes; the last one only
// after the seal, the end marker and the end of the input. Its cursors, counts and bitmap agree with
// its rows and with the span before it. So whatever a consumer was given it may commit.
//
// Input that ends early wraps rows.ErrUnsealed, at whatever byte it ends; damage is another error.
// Input of any content is an error at worst: it is never decoded before its structure was checked,
// memory follows what was really read, and no message is larger than the Limits.
//
// # Streams of other programs
//
// With WithUnsealedOK, Read takes a plain Arrow stream as well. It has no hashes and no seal, but it
// must end with Arrow's end marker. Encodings are undone: see Read.
package arrowipc
