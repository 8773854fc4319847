package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// silence keeps a terminal from showing what is typed until the returned function is called.
func silence(f *os.File) (restore func()) {
	before, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &quiet) // then it is shown
	return func() { _ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, before) }
}
