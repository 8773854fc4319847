package main

import (
	"errors"
	"io"
)

// streams are where a command reads and writes.
type streams struct {
	in       io.ReadCloser
	out, err io.Writer
}

// options are the options of every command.
type options struct {
	JSON bool `name:"json" help:"Print the data of the answer as JSON."`
}

// errMisuse marks an error that comes from how a command was called.
var errMisuse = errors.New("misuse")
