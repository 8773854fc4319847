//go:build !linux

package secure

import "errors"

// readNow is not called: no reader asks for it.
func readNow(int, []byte) (int, error) { return 0, errors.ErrUnsupported }
