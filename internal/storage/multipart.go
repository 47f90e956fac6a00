//go:build !noclouds && !nos3

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
)

// What S3 says of parts, and how large they are made. Those of an object of more than a thousand parts are larger, so
// that there are never too many: the sizes double with each thousand.
const (
	mostParts  = 10_000
	leastPart  = 5 << 20  // but the last
	mostCopied = 5 << 30  // in one part
	partSize   = 8 << 20  // of bytes
	copySize   = 64 << 20 // of a range
	atOnce     = 4        // parts on their way
)

// A multipart is an upload in parts. Parts are numbered as they are given, and made several at a time; who gives them
// waits while all are on their way. The first that fails ends the others, and is the error of all calls from then on.
type multipart struct {
	objects
	name   string
	made   context.Context // ends with the caller's, and by a failure
	fail   context.CancelCauseFunc
	id     *string
	list   []*types.CompletedPart
	slots  chan struct{}
	work   sync.WaitGroup
	whole  sync.Mutex   // one part that the store refused is held at a time
	copied atomic.Int64 // bytes of ranges that the store copied
}

func newMultipart(o objects, name string) *multipart {
	m := &multipart{objects: o, name: name, slots: make(chan struct{}, atOnce)}
	m.made, m.fail = context.WithCancelCause(o.ctx)
	return m
}

// scaled is a size for an object of so many parts as there are.
func (m *multipart) scaled(size int64) int64 { return size << (len(m.list) / 1000) }

// begun reports whether the store knows of the upload.
func (m *multipart) begun() bool { return m.id != nil }

// ask makes a request with the client of the bucket.
func (o objects) ask(do func(*awss3.Client) error) error {
	return o.request(func(b *blob.Bucket) error {
		var client *awss3.Client
		if !b.As(&client) {
			return errors.New("the storage is not S3 any more")
		}
		return do(client)
	})
}

// begin has the store begin an upload, if it has not. The answer is waited for when the caller's context has ended
// too, or nobody would know what to give up.
func (m *multipart) begin() error {
	if m.begun() {
		return nil
	}
	if err := context.Cause(m.made); err != nil {
		return err
	}
	ctx, done := outliving(m.made)
	defer done()
	in := &awss3.CreateMultipartUploadInput{Bucket: m.bucketName(), Key: aws.String(keyOf(m.name)), ContentType: aws.String(contentType)}
	in.ServerSideEncryption, in.SSEKMSKeyId = encryption(m.properties)
	return m.ask(func(client *awss3.Client) error {
		out, err := client.CreateMultipartUpload(ctx, in)
		if err == nil {
			m.id = out.UploadId
		}
		return err
	})
}

// part makes the next part, beside others.
func (m *multipart) part(do func(number int32) (etag *string, err error)) error {
	if err := m.begin(); err != nil {
		return err
	}
	p, err := m.number()
	if err != nil {
		return err
	}
	select {
	case m.slots <- struct{}{}:
	case <-m.made.Done():
		return context.Cause(m.made)
	}
	m.list = append(m.list, p)
	m.work.Go(func() { // complete and drop wait for it
		defer func() { <-m.slots }()
		var err error
		if p.ETag, err = do(*p.PartNumber); err != nil {
			m.fail(err)
		}
	})
	return nil
}

// number is the next part without what is in it.
func (m *multipart) number() (*types.CompletedPart, error) {
	if len(m.list) == mostParts {
		return nil, fmt.Errorf("more than %d parts are needed: set write.target-file-size-bytes of the table lower", mostParts)
	}
	return &types.CompletedPart{PartNumber: aws.Int32(int32(len(m.list) + 1))}, nil
}

// send makes a part of bytes, which are the multipart's from then on.
func (m *multipart) send(text []byte) error {
	return m.part(func(number int32) (*string, error) { return m.put(number, text) })
}

func (m *multipart) put(number int32, text []byte) (etag *string, err error) {
	err = m.ask(func(client *awss3.Client) error {
		in := &awss3.UploadPartInput{Bucket: m.bucketName(), Key: aws.String(keyOf(m.name)), UploadId: m.id, PartNumber: &number, Body: bytes.NewReader(text)}
		out, err := client.UploadPart(m.made, in, plainParts)
		if err == nil {
			etag = out.ETag
		}
		return err
	})
	return etag, err
}

// plainParts leaves out checksums that copied parts would have to have too: a part is guarded by its signature.
func plainParts(o *awss3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// complete makes the object. One with copied parts has another length where a server takes no notice of the headers
// that say which bytes are to be copied.
func (m *multipart) complete(size int64) error {
	m.work.Wait()
	if err := context.Cause(m.made); err != nil {
		return err
	}
	var list []types.CompletedPart
	for _, p := range m.list {
		list = append(list, *p)
	}
	bucket, key := m.bucketName(), aws.String(keyOf(m.name))
	err := m.ask(func(client *awss3.Client) error {
		_, err := client.CompleteMultipartUpload(m.made, &awss3.CompleteMultipartUploadInput{
			Bucket: bucket, Key: key, UploadId: m.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
		})
		return err
	})
	if err != nil {
		return err
	}
	m.id = nil // there is nothing to be given up
	defer m.end()
	err = m.kept(m.name, size)
	if cut := (*shortened)(nil); errors.As(err, &cut) && m.copied.Load() > 0 {
		return fmt.Errorf("%w: it does not copy ranges of objects; --copy never does without", err)
	}
	return err
}

// end frees what an upload has that is at its end, or was never begun.
func (m *multipart) end() { m.fail(errGivenUp) }

// drop gives the upload up. It waits for the parts that are on their way, so that none comes behind.
func (m *multipart) drop() error {
	m.end()
	m.work.Wait()
	if !m.begun() {
		return nil
	}
	ctx, done := outliving(m.made)
	defer done()
	o := m.objects
	o.ctx = ctx
	err := o.ask(func(client *awss3.Client) error {
		_, err := client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: m.bucketName(), Key: aws.String(keyOf(m.name)), UploadId: m.id})
		return err
	})
	if err == nil {
		m.id = nil
	}
	return err
}
