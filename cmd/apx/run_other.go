//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

// replaceBy runs the program to its end: this process cannot become it. The signals of a console reach it too.
func replaceBy(path string, args, env []string, s streams) error {
	cmd := &exec.Cmd{Path: path, Args: args, Env: env, Stdin: s.in, Stdout: s.out, Stderr: s.err}
	err := cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended{e.ExitCode()}
	}
	return err
}
