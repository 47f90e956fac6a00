package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"time"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"icepipe/internal/localdisk"
)

// CommitTable implements catalog.Catalog: the requirements are checked on the newest version, and the new
// metadata takes the name of the next one, which one writer alone can take. A catalog that is opened ReadOnly,
// or that is not on the local disk, refuses it.
func (c *hadoopCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if c.mode != ReadWrite {
		return nil, "", c.refuse("a commit")
	}
	folder, err := c.folder(ctx, identifier)
	if err != nil {
		return nil, "", err
	}
	if folder.path == "" {
		return nil, "", &refusedError{fmt.Sprintf("table %s: %v", c.ref, errNotLocal), errNotLocal}
	}
	version, name, err := folder.newest()
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		return nil, "", fmt.Errorf("folder %q: %w", folder.location, catalog.ErrNoSuchTable)
	}
	now := folder.location + "/" + name
	loaded, err := c.load(ctx, identifier, now)
	if err != nil {
		return nil, "", err
	}
	next, same, err := applied(loaded.Metadata(), now, requirements, updates)
	if err != nil || same {
		return loaded.Metadata(), now, err
	}
	if name, err = c.nextName(loaded.Metadata(), next, version+1); err != nil {
		return nil, "", err
	}
	text, err := c.texts.file(next)
	if err != nil {
		return nil, "", err
	}
	if err := folder.publish(ctx, version+1, name, text); err != nil {
		return nil, "", err
	}
	folder.moveHint(version + 1)
	return next, folder.location + "/" + name, nil
}

// nextName is the name of the next version, if a table in a file system can have it.
func (c *hadoopCatalog) nextName(base, next table.Metadata, version int) (string, error) {
	refused := func(format string, args ...any) (string, error) {
		err := fmt.Errorf(format, args...)
		return "", &refusedError{fmt.Sprintf("table %s: %v", c.ref, err), err}
	}
	if base.Location() != next.Location() {
		return refused("a hadoop catalog's table cannot change its location")
	}
	if p := next.Properties()[table.WriteMetadataPathKey]; p != "" {
		return refused("its property %s is set, and a hadoop catalog finds metadata in the table's own folder alone: unset it", table.WriteMetadataPathKey)
	}
	switch codec := metadataCodec(next); codec {
	case table.MetadataCompressionCodecNone:
		return versionForms(version)[0], nil
	case table.MetadataCompressionCodecGzip:
		return versionForms(version)[1], nil
	default:
		return refused("its property %s is %q, which other readers of a hadoop catalog do not know: set none or gzip", table.MetadataCompressionKey, codec)
	}
}

// publish gives a version its metadata, if no other writer has done so: the text is written and synced under a
// name of its own, and linked to the version's name, which fails if that is taken. Any number of such
// writers, and of those of Java that come later, are safe from each other: Java looks whether the name is
// taken, and then renames. What it does between the two is seen to by settle. An error that wraps
// table.ErrCommitFailed says that the version is another's.
func (f tableFolder) publish(ctx context.Context, version int, name string, text []byte) error {
	own := path.Join(f.path, ".icepipe-"+uuid.NewString()+".tmp")
	defer os.Remove(own)
	if err := writeSynced(own, text); err != nil {
		return err
	}
	held, err := f.form(version)
	if err != nil {
		return err
	}
	if held != "" {
		return conflict("another writer has made version %d, %q", version, held)
	}
	// Hadoop's local file system keeps a checksum beside each file. One that is left of a file that is gone would
	// make ours unreadable there.
	if err := os.Remove(path.Join(f.path, "."+name+".crc")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made, err := os.Stat(own)
	if err != nil {
		return err
	}
	err = moveNew(own, path.Join(f.path, name))
	if errors.Is(err, fs.ErrExist) {
		return conflict("another writer has made version %d, %q", version, name)
	}
	if err != nil {
		return err
	}
	if err := localdisk.SyncDir(f.path); err != nil {
		return err
	}
	return f.settle(ctx, version, name, made)
}

// writeSynced writes a new file, which is on the disk when it returns.
func writeSynced(name string, text []byte) error {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = out.Write(text); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// javaName is the name under which Java writes metadata before it is renamed to a version
// (HadoopTableOperations.commit).
var javaName = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json(?:\.gz)?$`)

// How long a commit waits for Java's writers that may have looked before it, and how old their files are at most
// before they are taken for those of the dead.
const (
	javaWait  = 10 * time.Second
	javaAlive = time.Minute
	javaLook  = 5 * time.Millisecond
)

// settle waits for those of Java's writers that were about to rename when the version's name was taken, and
// looks whether it is still ours. On a local disk Java's rename takes a name that is taken, and what keeps it
// from that is a look before: a writer that had looked already takes our version away. Such a writer has its
// metadata in the folder by then, and is done when that file is gone; those that come later see our version.
func (f tableFolder) settle(ctx context.Context, version int, name string, made fs.FileInfo) error {
	names, err := f.names()
	if err != nil {
		return err
	}
	until := time.Now().Add(javaWait)
	for _, other := range names {
		if !javaName.MatchString(other) {
			continue
		}
		for time.Now().Before(until) {
			st, err := os.Stat(path.Join(f.path, other))
			if err != nil || time.Since(st.ModTime()).Abs() > javaAlive {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("another writer is at work on version %d: %w", version, ctx.Err())
			case <-time.After(javaLook):
			}
		}
	}
	now, err := os.Stat(path.Join(f.path, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(made, now) {
		return conflict("another writer has put its own metadata in the place of version %d, %q", version, name)
	}
	for _, other := range versionForms(version) {
		there, err := f.has(other)
		if err != nil {
			return err
		}
		if there && other != name { // of two forms readers take the first: the other's commit must not be lost
			return errors.Join(conflict("another writer has made version %d, %q", version, other), os.Remove(path.Join(f.path, name)))
		}
	}
	return nil
}

// moveHint makes the hint name a version, if it names an older one. What fails here does no harm: readers look
// for newer versions, whatever it says.
func (f tableFolder) moveHint(version int) {
	if f.hint() >= version {
		return
	}
	own := path.Join(f.path, ".icepipe-"+uuid.NewString()+".hint")
	if os.WriteFile(own, []byte(strconv.Itoa(version)), 0o666) != nil {
		return
	}
	os.Remove(path.Join(f.path, "."+hintName+".crc")) // of the hint before
	if os.Rename(own, path.Join(f.path, hintName)) != nil {
		os.Remove(own)
	}
}
