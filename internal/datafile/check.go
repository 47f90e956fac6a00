package datafile

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
)

// Check says, before anything is written, whether data files of the table can be written at all and
// committed: its types, its partition fields and their names, its properties. What it refuses it
// names, in one line, with the cure where there is one.
func Check(cfg Config) error {
	_, err := newPlan(cfg)
	return err
}

// plan is what a Writer knows of its table for good.
type plan struct {
	cfg      Config
	shape    *Shape
	settings settings
	base     string // data location
	part     *partitioner
	sort     *sorter

	naming sync.Mutex // of Config.Name, as batches overlap

	fitting sync.Mutex        // of layouts, which may be asked for while rows are written
	layouts map[string]*Shape // of files with copied chunks, by what is other than in shape
}

// fileName is a new name by Config.Name.
func (p *plan) fileName() string {
	p.naming.Lock()
	defer p.naming.Unlock()
	return p.cfg.Name()
}

func newPlan(cfg Config) (*plan, error) {
	if cfg.Schema == nil {
		return nil, errors.New("no table schema given")
	}
	if cfg.Version < 1 || cfg.Version > 3 {
		return nil, fmt.Errorf("table has format version %d: 1, 2 and 3 can be written", cfg.Version)
	}
	cfg = cfg.withDefaults()
	p := &plan{cfg: cfg, base: dataLocation(cfg), layouts: map[string]*Shape{}}
	if err := checkProperties(cfg.Properties); err != nil {
		return nil, err
	}
	if err := checkLocation(cfg, p.base); err != nil {
		return nil, err
	}
	var err error
	if p.settings, err = parseSettings(cfg.Properties); err != nil {
		return nil, err
	}
	if p.shape, err = NewShape(cfg.Schema, cfg.Properties); err != nil {
		return nil, err
	}
	if p.part, err = newPartitioner(cfg.Schema, cfg.Spec); err != nil {
		return nil, err
	}
	if err := checkPartitionNames(cfg.Spec); err != nil {
		return nil, err
	}
	// A manifest that cannot be begun is found out now and not after the files were written.
	if _, err := iceberg.NewManifestWriter(cfg.Version, io.Discard, cfg.Spec, cfg.Schema, 1); err != nil {
		return nil, fmt.Errorf("manifests of partition spec %d cannot be written: %w", cfg.Spec.ID(), err)
	}
	p.sort = newSorter(cfg.Schema, cfg.SortOrder)
	return p, nil
}

func checkProperties(props iceberg.Properties) error {
	for k := range props {
		if strings.HasPrefix(k, "encryption.") {
			return fmt.Errorf("table property %q asks for encrypted data files, which cannot be written: write to a table without encryption", k)
		}
	}
	return checkMetrics(props)
}

// checkPartitionNames refuses names that iceberg-go writes into a manifest's Avro schema as they are
// though Avro does not allow them (case 54).
func checkPartitionNames(spec iceberg.PartitionSpec) error {
	for _, f := range spec.Fields() {
		if !avroName(f.Name) {
			return fmt.Errorf("partition field %q cannot be written into a manifest, where a name has only letters, digits and _: rename the partition field in the table (ALTER TABLE … REPLACE PARTITION FIELD … AS name)", f.Name)
		}
	}
	return nil
}
