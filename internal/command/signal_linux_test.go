package command_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"icepipe/internal/demo"
	"icepipe/pkg/ckpt"
)

// The tests of signals need the programs in the middle of a commit. The write lock of the catalog's database,
// held by the test, keeps a commit there, and a watch on the table's metadata folder tells that it is.

// moved are the flags of a migration that changes no schema, in six batches.
const moved = "--select order_id,created,order_total --batch-rows 20000"

// bench is a folder with the demonstration's tables.
type bench struct {
	t   *testing.T
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	// Where the tests run under nohup, programs that they start would not hear of hangups either, as it should be.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
	dir := t.TempDir()
	check(t, demo.Make(context.Background(), dir))
	config := fmt.Sprintf("catalog:\n  src:\n    type: sql\n    uri: sqlite:///%[1]s/src.db\n  dst:\n    type: sql\n    uri: sqlite:///%[1]s/dst.db\n", dir)
	check(t, os.WriteFile(filepath.Join(dir, ".pyiceberg.yaml"), []byte(config), 0o666))
	return &bench{t: t, dir: dir}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A process is a program that was started.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr *bufio.Reader
}

// start starts a program with the words of line as its arguments.
func (b *bench) start(stdin io.Reader, line string) *process {
	b.t.Helper()
	words := strings.Fields(line)
	p := &process{Cmd: exec.Command(words[0], words[1:]...)}
	p.Dir, p.Stdin, p.Stdout = b.dir, stdin, &p.stdout
	p.Env = append(os.Environ(), "HOME="+b.dir)
	stderr, err := p.StderrPipe()
	check(b.t, err)
	p.stderr = bufio.NewReader(stderr)
	check(b.t, p.Cmd.Start())
	return p
}

// says reads stderr up to a line that begins so.
func (b *bench) says(p *process, begin string) {
	b.t.Helper()
	var all []string
	for {
		line, err := p.stderr.ReadString('\n')
		if strings.HasPrefix(line, begin) {
			return
		}
		all = append(all, line)
		if err != nil {
			b.t.Fatalf("%s: no line %q on stderr: %q", p, begin, all)
		}
	}
}

// ends waits for a program and returns its exit code, -1 where a signal killed it.
func (b *bench) ends(p *process) int {
	b.t.Helper()
	if _, err := io.Copy(io.Discard, p.stderr); err != nil {
		b.t.Fatal(err)
	}
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// lock takes the write lock of the destination's catalog.
func (b *bench) lock() (unlock func()) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.dir, "dst.db")+"?_txlock=immediate&_busy_timeout=60000")
	check(b.t, err)
	tx, err := db.Begin()
	check(b.t, err)
	return func() { check(b.t, errors.Join(tx.Rollback(), db.Close())) }
}

// A watch tells of metadata files that are written for a table.
type watch struct {
	t *testing.T
	f *os.File
}

func (b *bench) watch(table string) *watch {
	b.t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	check(b.t, err)
	_, err = syscall.InotifyAddWatch(fd, filepath.Join(b.dir, "dst_wh", "warehouse.db", table, "metadata"), syscall.IN_CLOSE_WRITE)
	check(b.t, err)
	w := &watch{t: b.t, f: os.NewFile(uintptr(fd), "inotify")}
	b.t.Cleanup(func() { w.f.Close() })
	return w
}

// committing waits until a table's metadata file is written: the next step is to tell the catalog.
func (w *watch) committing() {
	w.t.Helper()
	buffer := make([]byte, 4096)
	for {
		n, err := w.f.Read(buffer)
		check(w.t, err)
		for at := 0; at < n; {
			event := (*syscall.InotifyEvent)(unsafe.Pointer(&buffer[at]))
			name := buffer[at+syscall.SizeofInotifyEvent : at+syscall.SizeofInotifyEvent+int(event.Len)]
			if strings.HasSuffix(strings.TrimRight(string(name), "\x00"), ".metadata.json") {
				return
			}
			at += syscall.SizeofInotifyEvent + int(event.Len)
		}
	}
}

func (b *bench) note() *ckpt.Checkpoint {
	b.t.Helper()
	c, err := ckpt.Open(filepath.Join(b.dir, "job.json")).Load()
	check(b.t, err)
	if c == nil {
		b.t.Fatal("no checkpoint")
	}
	return c
}

const (
	wholeJob = "ice-migrate --src src.sales.orders --dst dst.warehouse.orders --column-mapping order_total:total_amount --on-missing-in-source null --checkpoint job.json " + moved
	pipeJob  = "ice-write dst.warehouse.orders --column-mapping order_total:total_amount --on-missing-in-source null --checkpoint job.json"
	scanJob  = "ice-scan src.sales.orders " + moved
)

// resumed goes on with the job to its end, and holds every row to be there once.
func (b *bench) resumed() {
	b.t.Helper()
	p := b.start(nil, wholeJob+" --verify row_count --output json")
	if code := b.ends(p); code != 0 {
		b.t.Fatalf("the resume exited %d: %s", code, &p.stdout)
	}
	var r struct {
		Resumed, Complete bool
		Verification      struct {
			Matches bool
			Dest    int64 `json:"dest_count"`
		}
	}
	check(b.t, json.Unmarshal(p.stdout.Bytes(), &r))
	if !r.Resumed || !r.Complete || !r.Verification.Matches || r.Verification.Dest != 120_000 {
		b.t.Errorf("receipt %+v", r)
	}
	out, err := exec.Command("bash", "-c", "cd "+b.dir+" && HOME=$PWD ice-scan dst.warehouse.orders --select order_id | ice-cat --format csv | grep -E '^[0-9]+$' | sort -u | wc -l").Output()
	check(b.t, err)
	if strings.TrimSpace(string(out)) != "120000" {
		b.t.Errorf("%s distinct rows", out)
	}
}

// input is what ice-write reads: a whole stream that was saved, or none for ice-migrate.
func (b *bench) input(line string) io.Reader {
	b.t.Helper()
	if line == wholeJob {
		return nil
	}
	p := b.start(nil, scanJob+" -o s.arrows")
	if code := b.ends(p); code != 0 {
		b.t.Fatalf("ice-scan exited %d", code)
	}
	f, err := os.Open(filepath.Join(b.dir, "s.arrows"))
	check(b.t, err)
	b.t.Cleanup(func() { f.Close() })
	return f
}

// The first signal brings the commit in flight to its end, notes it, says how to resume, and exits 130.
func TestSignalInACommit(t *testing.T) {
	for line, signals := range map[string][]syscall.Signal{wholeJob: {syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, pipeJob: {syscall.SIGINT}} {
		for _, signal := range signals {
			t.Run(strings.Fields(line)[0]+", "+signal.String(), func(t *testing.T) {
				b := newBench(t)
				in := b.input(line)
				w, unlock := b.watch("orders"), b.lock()
				p := b.start(in, line)
				w.committing()
				check(t, p.Process.Signal(signal))
				b.says(p, "Interrupted: the commit in flight is brought to its end first; interrupt again to kill")
				unlock()
				b.says(p, "Error: interrupted\n")
				b.says(p, "Hint: what was committed is recorded in the checkpoint; run the same command again to resume\n")
				if code := b.ends(p); code != 130 {
					t.Errorf("exit code %d", code)
				}
				if c := b.note(); c.Batches != 1 || c.Pending != nil || c.State != ckpt.Running {
					t.Errorf("checkpoint: %d batches, pending %v, %s", c.Batches, c.Pending, c.State)
				}
				if !strings.Contains(p.stdout.String(), "20,000 in 1 batch") {
					t.Errorf("receipt %s", &p.stdout)
				}
				b.resumed()
			})
		}
	}
}

// The second signal kills, in the middle of a commit too, and the job is resumed all the same.
func TestSecondSignal(t *testing.T) {
	for _, line := range []string{wholeJob, pipeJob} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			b := newBench(t)
			in := b.input(line)
			w, unlock := b.watch("orders"), b.lock()
			p := b.start(in, line)
			w.committing()
			check(t, p.Process.Signal(syscall.SIGINT))
			b.says(p, "Interrupted: ")
			check(t, p.Process.Signal(syscall.SIGINT))
			b.ends(p)
			status := p.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v", p.ProcessState)
			}
			unlock()
			if c := b.note(); c.Batches != 0 || c.Pending == nil {
				t.Errorf("checkpoint: %d batches, pending %v", c.Batches, c.Pending)
			}
			b.resumed()
		})
	}
}

// A program before it that is stopped leaves ice-write with what it has: whole batches are committed,
// nothing is held that another program's commit needs, and a signal ends it with 130, not with the 3 of a
// stream that broke off. What was stopped then finds nobody reading, and dies of it quietly (case 99).
func TestStoppedUpstream(t *testing.T) {
	b := newBench(t)
	r, w, err := os.Pipe()
	check(t, err)
	watch, unlock := b.watch("orders"), b.lock()
	// Small record batches make the stream larger than all buffers between the programs together, so that
	// the scan is in the middle of it while the first commit waits.
	scan := exec.Command("ice-scan", strings.Fields(strings.TrimPrefix(scanJob, "ice-scan ")+" --record-batch-rows 10")...)
	var said bytes.Buffer
	scan.Dir, scan.Env, scan.Stdout, scan.Stderr = b.dir, append(os.Environ(), "HOME="+b.dir), w, &said
	check(t, scan.Start())
	p := b.start(r, pipeJob)
	check(t, errors.Join(r.Close(), w.Close()))
	watch.committing()
	check(t, scan.Process.Signal(syscall.SIGSTOP))
	unlock()

	other := b.start(nil, strings.Replace(strings.Replace(wholeJob, "dst.warehouse.orders", "dst.warehouse.orders_by_pipe", 1), "job.json", "other.json", 1))
	if code := b.ends(other); code != 0 {
		t.Fatalf("another job exited %d: %s", code, &other.stdout)
	}
	check(t, p.Process.Signal(syscall.SIGINT))
	b.says(p, "Error: interrupted\n")
	if code := b.ends(p); code != 130 {
		t.Errorf("exit code %d", code)
	}
	check(t, scan.Process.Signal(syscall.SIGCONT))
	scan.Wait() // its error is its signal
	if status := scan.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE || said.Len() > 0 {
		t.Errorf("the scan ended with %v and said %q", scan.ProcessState, &said)
	}
	if c := b.note(); c.Batches == 0 || c.State != ckpt.Running {
		t.Errorf("checkpoint: %d batches, %s", c.Batches, c.State)
	}
	b.resumed()
}
