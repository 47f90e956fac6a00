package lake

import "fmt"

// checkStart refuses to start a scan at a cursor that does not lie in its files: rows would be left
// out, or read twice, without a word.
func (s *Scan) checkStart() error {
	from := s.options.From
	if from == nil || from.File == 0 && from.RowGroup == 0 && from.Row == 0 {
		return nil
	}
	if from.File < 0 || from.File >= int64(len(s.files)) {
		return fmt.Errorf("cursor %s is not in it, which has %d data files: the source changed", from, len(s.files))
	}
	f := s.files[from.File]
	if path := f.File.FilePath(); from.Path != "" && from.Path != path {
		return fmt.Errorf("cursor %s is not in it, where file %d is %q: the source changed", from, from.File, path)
	}
	if from.RowGroup == 0 && from.Row == 0 {
		return nil
	}
	if from.RowGroup < 0 || from.RowGroup >= len(f.groups) || from.Row < 0 || from.Row > f.groups[from.RowGroup] {
		return fmt.Errorf("cursor %s lies behind the end of its file's %d row groups or of its row group: the source changed", from, len(f.groups))
	}
	return nil
}
