package configfile

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// maxListed is how many faults of one file of lines are listed.
const maxListed = 10

// beside returns the name of a file that the configuration names. A relative one starts at the folder of the
// configuration.
func (v value) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(v.doc.file), name)
}

// fileLines calls fn with the number and the text of each line of a file until it returns false. Empty lines and those
// that begin with # are passed over.
func fileLines(v value, name string, fn func(n int, text string) bool) {
	f, err := os.Open(v.beside(name))
	if err != nil {
		v.fault("cannot read the file of this line: %s", cause(err))
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text != "" && text[0] != '#' && !fn(n, text) {
			return
		}
	}
	if err := lines.Err(); err != nil {
		v.fault("cannot read the file of this line: %s", cause(err))
	}
}

// lineFault notes a fault of a line of a file, and returns false at the bound after which the rest is left unread.
func (v value) lineFault(faults *int, n int, err error) bool {
	if *faults++; *faults > maxListed {
		v.fault("has more faults, which are not listed")
		return false
	}
	v.fault("line %d: %v", n, err)
	return true
}
