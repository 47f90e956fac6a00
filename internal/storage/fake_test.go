//go:build !noclouds && !nos3

package storage

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeS3 is a server with one bucket, b, that cuts bodies and refuses requests as a test wants it.
type fakeS3 struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string]string
	requests []string // method, path, range
	headers  []http.Header
	cut      int // so many bodies from now on end in their middle
	refuse   map[string]string
	uploads  map[string]map[int]string // parts by number
	aborted  int

	deaf         bool                                    // it answers requests for ranges with the whole object
	forgets      bool                                    // it says that it made an object, and makes none
	shortens     int                                     // objects lack so many bytes at their end
	late         int                                     // ranges begin so many bytes behind what is asked for
	refuseCopies func(nth int) (status int, code string) // nil, or 0: it does not
	copies       int                                     // that were asked for
	blind        bool                                    // copies are of whole objects, whatever is asked for
}

func newFakeS3(t *testing.T) *fakeS3 {
	f := &fakeS3{objects: map[string]string{}, refuse: map[string]string{}, uploads: map[string]map[int]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// change changes it while requests may be made.
func (f *fakeS3) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

// properties are how it is reached.
func (f *fakeS3) properties(more ...string) map[string]string {
	p := map[string]string{"s3.endpoint": f.URL, "s3.region": "r", "s3.access-key-id": "key", "s3.secret-access-key": "secret"}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

func (f *fakeS3) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/b/")
	f.requests = append(f.requests, strings.Join(strings.Fields(strings.Join([]string{
		r.Method, key, r.URL.Query().Get("partNumber"), r.Header.Get("X-Amz-Copy-Source"), r.Header.Get("X-Amz-Copy-Source-Range"), r.Header.Get("Range"),
	}, " ")), " "))
	f.headers = append(f.headers, r.Header.Clone())
	user, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
	if code := f.refuse[user]; code != "" {
		w.WriteHeader(http.StatusForbidden)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>not\nyou</Message></Error>", code)
		}
		return
	}
	query := r.URL.Query()
	switch {
	case query.Get("list-type") == "2":
		f.list(w, query.Get("prefix"))
	case query.Has("uploads"), query.Has("uploadId"):
		f.multipart(w, r, key, string(body))
	case r.Method == http.MethodPut:
		f.keep(key, string(body))
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
	default:
		f.get(w, r, key)
	}
}

// keep makes an object, or not quite.
func (f *fakeS3) keep(key, text string) {
	if !f.forgets {
		f.objects[key] = text[:len(text)-min(len(text), f.shortens)]
	}
}

func (f *fakeS3) list(w io.Writer, prefix string) {
	fmt.Fprint(w, "<ListBucketResult>")
	var keys []string
	for key := range f.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>", key, len(f.objects[key]))
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

func (f *fakeS3) get(w http.ResponseWriter, r *http.Request, key string) {
	text, ok := f.objects[key]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		}
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != etagOf(text) {
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	w.Header().Set("ETag", etagOf(text))
	w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
	status, from, to := http.StatusOK, 0, len(text)-1
	if first, last, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-"); ok && !f.deaf {
		status = http.StatusPartialContent
		from, _ = strconv.Atoi(first)
		from += f.late
		if n, err := strconv.Atoi(last); err == nil {
			to = min(to, n)
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(text)))
	}
	part := text[from : to+1]
	w.Header().Set("Content-Length", strconv.Itoa(len(part)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if f.cut > 0 && len(part) > 1 {
		f.cut--
		io.WriteString(w, part[:len(part)/2]) // and the connection ends
		return
	}
	io.WriteString(w, part)
}
