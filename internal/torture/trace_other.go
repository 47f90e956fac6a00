//go:build !(linux && amd64)

package torture

// Names is empty.
func Names() []string { return nil }

// Run returns ErrUnsupported.
func Run(Program, Fault) (Result, error) { return Result{}, ErrUnsupported }
