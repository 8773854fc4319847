package main

import (
	_ "embed"
	"fmt"
	"os"
)

//go:embed starter.yaml
var starter string

type configInitCmd struct {
	File string `arg:"" optional:"" default:"agentproxy.yaml" name:"FILE" help:"A file that does not exist yet."`
}

// Run writes a configuration to begin with, which config check accepts.
func (c configInitCmd) Run(k *kit) error {
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return fmt.Errorf("%s exists; nothing was changed. Name another file", c.File)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(starter)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return k.record("file", c.File, "next", "AGENTPROXY_CONFIG="+c.File+" agentproxy config check")
}
