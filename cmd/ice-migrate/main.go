// Ice-migrate moves the rows of one Iceberg table into another, exactly once.
//
// Usage:
//
//	ice-migrate [flags]
//	ice-migrate status --checkpoint FILE
//	ice-migrate recover [flags] --checkpoint FILE [--job UUID]
//	ice-migrate undo --checkpoint FILE [--schema] [--force] [--dry-run]
//	ice-migrate redo --checkpoint FILE [--dry-run]
//	ice-migrate reset --checkpoint FILE [--force]
//	ice-migrate config [--src CATALOG] [--dst CATALOG]
//	ice-migrate clean (--checkpoint FILE | --dst CATALOG.namespace.table) [--older-than AGE] [--yes]
//
// It is ice-scan, ice-reconcile and ice-write in one process, with the flags of all three; those of the
// tables carry the prefixes src- and dst-, those that pin the source's snapshot the prefix source-. The
// destination must exist. It is the source's catalog, namespace and name unless flags say otherwise.
//
// With --checkpoint a run that died is resumed by the same command, at the right row, from the snapshot
// that was pinned when the job began. The checkpoint of a completed migration refuses another run.
//
// --dry-run makes every check, prints the plan and counts the rows, bytes and commits to come. It writes
// nothing, takes no lock, and opens both catalogs for reading alone. --explain prints the plan alone.
//
// Columns of row groups whose rows all go into one batch are copied as they are where nothing in them has to be changed,
// with their codec and pages; --copy never writes all of them anew, --copy require refuses before anything is
// written where one cannot be copied, and says why. --copy-promoted copies also what is promoted, in its old type.
// --batch-rows auto makes batches of whole row groups. Between tables on one server of S3 the store copies what it can,
// and the bytes do not pass through the process; pages are not looked at then.
//
// --commit once lands all batches as one snapshot at the end; what is written until then is noted in FILE.staged
// beside the checkpoint. --write-mode overwrite_partition puts the rows, as one snapshot, in the place of all rows
// of the partitions that they lie in, by value under the current partition spec; a table without partitions wants
// --yes. It refuses where another writer changed such a partition since the job began, and names the snapshot;
// --overwrite-concurrent replaces that too.
//
// --write-mode upsert puts each row in the place of the destination's row with the same --upsert-keys, and leaves
// rows alone that are there as they are. --delete-mode says how rows are taken out, --on-duplicate-key which of
// several source rows with one key counts, --null-keys what becomes of nulls in keys. By the order in which the source
// is read, first and last are stable; among rows of one commit of the source they are arbitrary. With error
// the keys of the source are read first, and nothing is written where one comes twice. With --commit once all batches
// land as one snapshot, with the rows that a commit of each would have left.
//
// --verify METHOD compares the source, at the migrated snapshot, with the destination afterwards: the job's rows with
// a checkpoint, else the whole table (--verify-scope). The methods are those of ice-verify; a mismatch exits 2.
//
// A catalog is found by its name in PyIceberg's configuration: .pyiceberg.yaml in PYICEBERG_HOME, the home folder or
// the working directory, variables PYICEBERG_CATALOG__NAME__KEY, default-catalog; or in .iceberg-go.yaml. --src-uri
// and --dst-uri are the address of a REST catalog, of a Hive Metastore (thrift://HOST:9083), or a SQL catalog's database
// as SQLAlchemy names it: postgresql://…, mysql+pymysql://…, sqlite:///FILE. A Glue catalog is reached by glue.region and
// glue.endpoint, a Hadoop catalog is the folder --src-warehouse or --dst-warehouse, a destination on the local disk
// alone. --src-property token=… and the like, and passwords in
// addresses, are seen by others, so that they are better configured. A commit that loses to another writer's is tried
// again, 200 times unless the table's commit.retry.num-retries says how often.
//
// A new job is refused where the destination holds batches of one with the same settings, or was last
// migrated into by iceberg-ops; --new-job begins it all the same. A resume is refused where snapshots of the
// job have expired and nothing in the table shows that its rows are there; --accept-expired-history says that
// nothing was rolled back.
//
// The first SIGINT, SIGTERM or SIGHUP brings the commit in flight to its end, notes it, and exits 130; the
// second kills.
//
// Status says where the job of a checkpoint stands and what another run would do, without changing anything.
//
// Recover makes a lost checkpoint anew, from the marks that the job left in the destination's snapshots
// and from the flags that it was begun with; a run with it goes on after the batches that are there. --job
// names the job where more than one has these settings.
//
// Undo takes a job's batches back: the branch goes to the snapshot that it was at before the job, also where it had
// none, in one commit that asserts where the branch is. Nothing is removed. It refuses where a snapshot of another
// writer came since, and names it; --force takes that back too. Columns that the job added stay, unless --schema
// drops them; a promotion stays. A run with the checkpoint is refused then; redo puts the batches back while their
// snapshots are retained and the branch has not moved, and reset forgets the job.
//
// Reset removes a checkpoint, so that the job is forgotten. It refuses while batches of the job are in the
// destination, or may be, and names the snapshot to roll back to, as undo does; --force leaves their rows there.
//
// Config prints which files and catalogs there are, and for the catalogs of --src and --dst, or the flags in their
// place, each setting and where it is said: a file, a variable, a flag. Secrets are hidden. It touches no catalog.
//
// Clean lists the data files, manifests and manifest lists that jobs left in a table and that no snapshot
// of it names, older than three days or --older-than (36h, 10d), and removes them with --yes. Files of other
// programs stay, and with --checkpoint those that a resume will commit. No job of another checkpoint may be
// at work on the table with files older than that.
//
// Examples:
//
//	ice-migrate \
//	    --src-catalog sqlite --src-db-path src.db --src-warehouse src_wh --src-namespace sales --src-table orders \
//	    --dst-catalog sqlite --dst-db-path dst.db --dst-warehouse dst_wh --dst-namespace warehouse --dst-table orders \
//	    --batch-rows 50000 --column-mapping order_total:total_amount \
//	    --on-missing-in-source null --on-missing-in-dest auto_add \
//	    --checkpoint orders.checkpoint.json --verify row_count
//	ice-migrate status --checkpoint orders.checkpoint.json
//	ice-migrate clean --checkpoint orders.checkpoint.json
//	ice-migrate config --src-catalog sqlite --src-db-path src.db
//
// Exit codes:
//
//	0    done; the tables agree
//	1    failed, a refused resume included
//	2    verification: the tables differ
//	3    the input stream ended before its seal: look upstream
//	64   the command line is wrong
//	130  interrupted; what was committed is recorded, run again to resume
package main

import "icepipe/internal/command"

func main() { command.Main("ice-migrate") }
