package command

import (
	"context"

	"icepipe/internal/catalogs"
	"icepipe/pkg/migrate"
)

// verifyProgram is ice-verify.
type verifyProgram struct {
	versionFlag
	catalogs.PairFlags `embed:""`
	pinFlags           `embed:"" prefix:"source-"`
	Method             string `enum:"row_count,partition_hash,sample,diff,auto" default:"row_count" help:"row_count (the others are not supported in this version)."`
	RowFilter          string `placeholder:"TEXT" help:"Not supported in this version."`
	DstBranch          string `name:"dst-branch" placeholder:"NAME" help:"Branch of the destination to compare (default main)."`
	Output             string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program.
func (p *verifyProgram) Run(ctx context.Context, w *World) error {
	if p.RowFilter != "" {
		return usagef("--row-filter is not supported in this version; leave it out")
	}
	if err := knownMethod(p.Method); err != nil {
		return err
	}
	o := migrate.VerifyOptions{Method: p.Method, DestBranch: p.DstBranch}
	var err error
	if o.Source, err = p.pin("source-"); err != nil {
		return err
	}
	srcRef, dstRef, err := p.Resolve(w.Env)
	if err != nil {
		return err
	}
	src, done, err := open(ctx, srcRef, catalogs.ReadOnly)
	if err != nil {
		return verifyError{err}
	}
	defer done()
	dst, done, err := open(ctx, dstRef, catalogs.ReadOnly)
	if err != nil {
		return verifyError{err}
	}
	defer done()
	if src.Iceberg().MetadataLocation() == dst.Iceberg().MetadataLocation() && o.Source == (migrate.Pin{}) && o.DestBranch == "" {
		return usagef("source and destination are the same table %s; name another one, or another snapshot of it with --source-snapshot, --source-ref or --source-as-of", src.Name())
	}
	v, err := migrate.Verify(ctx, src, dst, o)
	if err != nil {
		return verifyError{err}
	}
	if err := writeResult(w, p.Output, v); err != nil {
		return verifyError{err}
	}
	if !v.Matches {
		return errDiffer
	}
	return nil
}
