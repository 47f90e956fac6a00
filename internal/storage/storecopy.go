//go:build !noclouds && !nos3

package storage

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// asItWas is the object to copy ranges from. It outlives the one that was opened, and what it reads is refused if the
// object has changed since.
func (f *object) asItWas() *object {
	return &object{objects: f.objects, location: f.location, key: f.key, about: f.about, unchanged: true}
}

// reaches tells whether the store of o can be asked to copy from an object: both are of one server of S3, and the
// object can be told from a changed one. Whether the keys of o may read it shows when they do.
func (o objects) reaches(f *object) bool {
	if f.about.etag == "" || strings.HasPrefix(f.about.etag, "W/") {
		return false
	}
	here, err := o.endpoint()
	if err != nil {
		return false // who writes is told
	}
	there, err := f.endpoint()
	return err == nil && here == there
}

// endpoint is where the requests for a bucket go, in the form of the client's setting, which is that of the
// properties, of the environment or of what the catalog vends; "" is Amazon's.
func (o objects) endpoint() (url string, err error) {
	err = o.ask(func(client *awss3.Client) error {
		url = strings.ToLower(strings.TrimRight(aws.ToString(client.Options().BaseEndpoint), "/"))
		return nil
	})
	return url, err
}

// bucketName is the name of the bucket alone.
func (o objects) bucketName() *string {
	_, authority, _ := strings.Cut(o.place, "://")
	return aws.String(authority[strings.LastIndexByte(authority, '@')+1:])
}

// between names the copies from the bucket of an object into that of o.
func (o objects) between(f *object) [2]string { return [2]string{f.place, o.place} }

// refusedFrom tells whether the store has refused to copy from the bucket of an object.
func (o objects) refusedFrom(f *object) bool {
	works, known := o.copies.Load(o.between(f))
	return known && works == false
}

// copy makes parts of a range, which is large enough for one. The first copy between two buckets is made alone: where
// the store refuses it, copy gives the rest of the range, which is to be read.
func (m *multipart) copy(r byteRange) (refused byteRange, err error) {
	size := min(m.scaled(copySize), mostCopied)
	for k := (r.n + size - 1) / size; k > 0; k-- {
		if works, _ := m.copies.Load(m.between(r.from)); works != true {
			one := r
			ok, err := m.try(one.cut(r.n / k))
			if err != nil {
				return byteRange{}, err
			}
			if !ok {
				return r, nil
			}
			r = one
			continue
		}
		one := r.cut(r.n / k)
		err := m.part(func(number int32) (*string, error) {
			etag, refused, err := m.copyPart(number, one)
			if refused {
				return m.reread(number, one)
			}
			return etag, err
		})
		if err != nil {
			return byteRange{}, err
		}
	}
	return byteRange{}, nil
}

// try makes the next part of a range, and waits for it; false where the store refuses that.
func (m *multipart) try(r byteRange) (bool, error) {
	if err := m.begin(); err != nil {
		return false, err
	}
	p, err := m.number()
	if err != nil {
		return false, err
	}
	etag, refused, err := m.copyPart(*p.PartNumber, r)
	if err != nil || refused {
		return false, err
	}
	p.ETag = etag
	m.list = append(m.list, p)
	return true, nil
}

// copyPart has the store make a part of a range.
func (m *multipart) copyPart(number int32, r byteRange) (etag *string, refused bool, err error) {
	in := &awss3.UploadPartCopyInput{
		Bucket: m.bucketName(), Key: aws.String(keyOf(m.name)), UploadId: m.id, PartNumber: &number,
		CopySource:        aws.String(copySource(*r.from.bucketName(), r.from.key)),
		CopySourceIfMatch: aws.String(r.from.about.etag),
		CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", r.off, r.off+r.n-1)),
	}
	err = m.ask(func(client *awss3.Client) error {
		out, err := client.UploadPartCopy(m.made, in)
		switch {
		case err != nil:
			return err
		case out.CopyPartResult == nil || out.CopyPartResult.ETag == nil:
			return errors.New("the answer to a copy has no ETag")
		}
		etag = out.CopyPartResult.ETag
		return nil
	})
	switch {
	case err == nil:
		m.copied.Add(r.n - r.ours)
		m.copies.LoadOrStore(m.between(r.from), true)
		return etag, false, nil
	case m.made.Err() != nil, codeOf(err) == "NoSuchUpload":
		return nil, false, err
	case statusOf(err) == http.StatusPreconditionFailed:
		return nil, false, failed("copy", r.from.location, err)
	}
	if refusesCopies(err) {
		m.copies.Store(m.between(r.from), false)
	}
	return nil, true, nil
}

// reread makes a part of a range that the store did not copy although it had copied others.
func (m *multipart) reread(number int32, r byteRange) (*string, error) {
	m.whole.Lock()
	defer m.whole.Unlock()
	text := make([]byte, r.n)
	if _, err := r.from.ReadAt(text, r.off); err != nil {
		return nil, err
	}
	return m.put(number, text)
}

// refusesCopies tells whether a refusal is one of all copies: it is not for this object, nor for now.
func refusesCopies(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return cures[codeOf(err)] != keysEnded
	}
	return false
}

// statusOf is the status of an answer of HTTP; 0 where there was none.
func statusOf(err error) int {
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// copySource is an object in the form of a header, in which all but the plainest letters are percent-encoded.
func copySource(bucket, key string) string {
	var b strings.Builder
	b.WriteString(bucket + "/")
	for _, c := range []byte(key) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
