package command

import (
	"context"

	"icepipe/internal/catalogs"
	"icepipe/pkg/migrate"
)

// migrateProgram is ice-migrate.
type migrateProgram struct {
	versionFlag
	Run_    runCommand     `cmd:"" name:"run" default:"withargs" help:"Migrate (the default). ice-migrate status, recover, undo, redo, reset and clean see to a job, config shows what is configured; each has its --help."`
	Status  statusCommand  `cmd:"" help:"Say where a job stands, by its checkpoint, and what another run would do."`
	Recover recoverCommand `cmd:"" help:"Make a lost checkpoint anew, from the marks in the destination and the flags that the job was begun with."`
	Undo    undoCommand    `cmd:"" help:"Take a job's batches back: put the destination back to the snapshot that it was at before the job."`
	Redo    redoCommand    `cmd:"" help:"Put back what undo took, while its snapshots are retained."`
	Reset   resetCommand   `cmd:"" help:"Forget a job: remove its checkpoint."`
	Config  configCommand  `cmd:"" help:"Print what is in force of the configuration of both catalogs, and where it is said; secrets are hidden."`
	Clean   cleanCommand   `cmd:"" help:"List, and with --yes remove, files that jobs left in a table and that no snapshot names."`
}

// jobFlags say which rows a job moves, from where to where.
type jobFlags struct {
	catalogs.PairFlags `embed:""`
	pinFlags           `embed:"" prefix:"source-"`
	cutFlags           `embed:""`
	reconcileFlags     `embed:""`
	modeFlags          `embed:""`
	DstBranch          string `name:"dst-branch" placeholder:"NAME" help:"Branch of the destination to append to (default main). It must exist."`
}

// runCommand is ice-migrate without a verb.
type runCommand struct {
	jobFlags    `embed:""`
	DryRun      bool   `help:"Make every check and count what is to come; write nothing."`
	Explain     bool   `help:"Print the plan for people, and write nothing."`
	Verify      string `enum:"row_count,partition_hash,sample,diff,auto," default:"" placeholder:"METHOD" help:"Verify afterwards: row_count, partition_hash, sample, diff or auto, as ice-verify has them."`
	Copy        string `enum:"auto,never,require" default:"auto" help:"Copy column chunks of the source's files as they are, with their codec and pages: where it can be done (auto, the default), never, or require it and end at the first row group that cannot be copied."`
	Promoted    bool   `name:"copy-promoted" help:"Copy chunks of promoted columns too, in their old type: int below long, float below double, a decimal below a wider one."`
	VerifyScope string `enum:"job,table," default:"" placeholder:"job|table" help:"Verify the rows that the job added (job, the default with a checkpoint), or the whole destination (table)."`
	commitFlags `embed:""`
}

// Run implements Program.
func (p *runCommand) Run(ctx context.Context, w *World) error {
	m, err := p.migrator()
	if err != nil {
		return err
	}
	srcRef, dstRef, err := p.Resolve(w.Env)
	if err != nil {
		return err
	}
	mode := catalogs.ReadWrite
	if p.DryRun || p.Explain {
		mode = catalogs.ReadOnly
	}
	done, err := openPair(ctx, m, srcRef, dstRef, mode)
	if err != nil {
		return err
	}
	defer done()
	if p.DryRun || p.Explain {
		return p.preview(ctx, w, m)
	}
	show := newProgress(w, p.Quiet)
	defer show.end()
	show.watch(&m.Write)
	receipt, err := m.Run(ctx)
	show.end()
	if err == nil {
		m.Compare.Observe = show.compared
		err = p.verify(ctx, m, &receipt)
		show.end()
	}
	return p.result(w, receipt, err)
}

// openPair opens both tables of a migration, the source for reading; done gives them back.
func openPair(ctx context.Context, m *migrate.Migrator, src, dst catalogs.Ref, mode catalogs.Mode) (done func(), err error) {
	var closeSrc, closeDst func()
	if m.Source, closeSrc, err = open(ctx, src, catalogs.ReadOnly); err != nil {
		return nil, err
	}
	if m.Dest, closeDst, err = open(ctx, dst, mode); err != nil {
		closeSrc()
		return nil, err
	}
	return func() { closeDst(); closeSrc() }, nil
}

func (p *runCommand) migrator() (*migrate.Migrator, error) {
	m, err := p.jobFlags.migrator()
	if err != nil {
		return nil, err
	}
	if m.Rejects, err = p.rejects(); err != nil {
		return nil, err
	}
	if p.Checkpoint != "" && m.Scan.Limit > 0 {
		return nil, usagef("--limit makes a trial, which takes no checkpoint")
	}
	if p.WriteMode == migrate.Upsert && p.Verify != "" && p.VerifyScope != "table" {
		return nil, usagef("--verify compares an upsert with the whole destination alone: say --verify-scope table, where source and destination hold the same rows afterwards")
	}
	if m.Write, err = p.writeOptions(p.DstBranch); err != nil {
		return nil, err
	}
	m.Write.Copy, m.Write.CopyPromoted = p.Copy, p.Promoted
	if err := p.mode(&m.Write); err != nil {
		return nil, err
	}
	collectEarly(m.Write.Memory, m.Write.Upsert != nil)
	return m, nil
}

// migrator is the migration that the flags describe, without its tables.
func (f *jobFlags) migrator() (*migrate.Migrator, error) {
	m := &migrate.Migrator{}
	var err error
	if err := f.mode(&m.Write); err != nil {
		return nil, err
	}
	if m.Scan, err = f.cutFlags.options(); err != nil {
		return nil, err
	}
	if m.Scan.Pin, err = f.pin("source-"); err != nil {
		return nil, err
	}
	if m.Reconcile, err = f.reconcileFlags.options(); err != nil {
		return nil, err
	}
	m.Plan, err = f.load()
	return m, err
}

func (p *runCommand) preview(ctx context.Context, w *World, m *migrate.Migrator) error {
	v, err := m.DryRun(ctx)
	if err != nil {
		return err
	}
	dst, err := m.Dest.Describe()
	if err != nil {
		return err
	}
	if err := p.save(v.Plan, dst); err != nil {
		return err
	}
	if p.Explain && !p.DryRun && p.Output == "text" {
		return v.Explain(w.Stdout)
	}
	return writeResult(w, p.Output, v)
}

// verify makes the verification a member of the receipt; tables that differ are an error.
func (p *runCommand) verify(ctx context.Context, m *migrate.Migrator, r *migrate.Receipt) error {
	if p.Verify == "" {
		return nil
	}
	m.Compare.WholeTable, m.Compare.Memory = p.VerifyScope == "table", m.Write.Memory
	collectEarly(m.Write.Memory, true)
	v, err := m.Verify(ctx, p.Verify)
	if err != nil {
		return verifyError{err}
	}
	r.Verification = &v
	if !v.Matches {
		return errDiffer
	}
	return nil
}
