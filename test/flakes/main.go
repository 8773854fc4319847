// Command flakes reads what go test -json printed in several runs, and prints each test that
// failed at least once and the slowest tests. .ci/flakes makes the runs.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := printReport(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printReport prints the report of logs, each named SURROUNDINGS-N.json.
func printReport(out io.Writer, logs []string) error {
	r := newReport()
	for _, log := range logs {
		f, err := os.Open(log)
		if err != nil {
			return err
		}
		surroundings, _, _ := strings.Cut(filepath.Base(log), "-")
		err = r.read(surroundings, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
	}
	r.print(out)
	return nil
}
