//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// replaceBy makes this process the program, which has its signals and its exit status then.
func replaceBy(path string, args, env []string, _ streams) error {
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, args, env))
}
