//go:build !noclouds && !nos3

package storage

import (
	"encoding/xml"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

var seed = maphash.MakeSeed()

// etagOf is the ETag of a content, by its size and its ends.
func etagOf(text string) string {
	n := min(len(text), 1000)
	return fmt.Sprintf(`"%x"`, maphash.String(seed, fmt.Sprint(len(text), text[:n], text[len(text)-n:])))
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>not\nso</Message></Error>", code)
}

// multipart is what a request does to an upload in parts; f.mu is held.
func (f *fakeS3) multipart(w http.ResponseWriter, r *http.Request, key, body string) {
	query := r.URL.Query()
	number, _ := strconv.Atoi(query.Get("partNumber"))
	parts, ok := f.uploads[key]
	switch {
	case query.Has("uploads"):
		f.uploads[key] = map[int]string{}
		io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
	case !ok:
		fail(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodDelete:
		f.aborted++
		delete(f.uploads, key)
	case r.Method == http.MethodPost:
		f.complete(w, key, body)
	case r.Header.Get("X-Amz-Copy-Source") != "":
		f.copyPart(w, r, parts, number)
	default:
		parts[number] = body
		w.Header().Set("ETag", etagOf(body))
	}
}

func (f *fakeS3) copyPart(w http.ResponseWriter, r *http.Request, parts map[int]string, number int) {
	f.copies++
	if f.refuseCopies != nil {
		if status, code := f.refuseCopies(f.copies); status != 0 {
			fail(w, status, code)
			return
		}
	}
	name, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	text, ok := f.objects[strings.TrimPrefix(name, "b/")]
	var from, to int
	_, ranged := fmt.Sscanf(r.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &from, &to)
	switch {
	case err != nil || ranged != nil || !ok:
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	case r.Header.Get("X-Amz-Copy-Source-If-Match") != etagOf(text):
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	case f.blind:
		from, to = 0, len(text)-1
	}
	parts[number] = text[from : to+1]
	fmt.Fprintf(w, "<CopyPartResult><ETag>%s</ETag></CopyPartResult>", etagOf(parts[number]))
}

// complete makes an object of the parts that a request names, and holds them to the rules.
func (f *fakeS3) complete(w http.ResponseWriter, key, body string) {
	var named struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal([]byte(body), &named); err != nil {
		fail(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	var whole strings.Builder
	for i, p := range named.Part {
		text, ok := f.uploads[key][p.PartNumber]
		switch {
		case p.PartNumber != i+1 || !ok || p.ETag != etagOf(text):
			fail(w, http.StatusBadRequest, "InvalidPart")
			return
		case len(text) < leastPart && i < len(named.Part)-1:
			fail(w, http.StatusBadRequest, "EntityTooSmall")
			return
		}
		whole.WriteString(text)
	}
	f.keep(key, whole.String())
	delete(f.uploads, key)
	io.WriteString(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
}
