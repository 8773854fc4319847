package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain/policy"
)

// Fault is one thing that is wrong in the configuration. It never repeats what
// might be a secret.
type Fault struct {
	File string // empty if a variable is wrong
	Line int    // of File, from 1
	Path string // such as products[0].price, or the name of a variable; may be empty
	Text string
}

// Error returns the place and the fault, in the form that editors can open.
func (f Fault) Error() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":" + strconv.Itoa(f.Line) + ": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	return b.String() + f.Text
}

// FaultsOf returns the faults in an error of Load.
func FaultsOf(err error) (list []Fault) {
	if err == nil {
		return nil
	}
	for _, e := range leaves(err) {
		f, ok := errors.AsType[Fault](e)
		if !ok {
			path, text, found := strings.Cut(e.Error(), ": ")
			if f = (Fault{Path: path, Text: text}); !found {
				f = Fault{Text: path}
			}
		}
		list = append(list, f)
	}
	return list
}

// ordered sorts the faults of the file by line, and puts those of variables
// behind them.
func ordered(err error) error {
	faults := FaultsOf(err)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.File == "" || b.File == "" {
			return cmp.Compare(b.File, a.File)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	list := make([]error, len(faults))
	for i, f := range faults {
		list[i] = f
	}
	return errors.Join(list...)
}

// leaves returns the single errors of a joined one.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, leaves(e)...)
	}
	return list
}

// check collects faults by the name of the variable, or by the place in the file
// that sets the value.
type check struct {
	rules  Rules
	faults []error
	places map[string]value // of settings in the file, by the name of the variable
	trial  *policy.Rules    // for accounts on trial
}

// fault adds a fault of a setting, at its place in the file unless its variable
// is set.
func (c *check) fault(name, format string, args ...any) {
	f := Fault{Path: name, Text: fmt.Sprintf(format, args...)}
	if v, ok := c.places[name]; ok && os.Getenv(name) == "" {
		if v.faulty() {
			return
		}
		f.File, f.Line, f.Path = v.doc.file, v.line, v.path
	}
	c.faults = append(c.faults, f)
}
