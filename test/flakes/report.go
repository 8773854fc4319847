package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const listed = 20 // the slowest tests

// report is the sum of runs.
type report struct {
	order  []string       // of the surroundings
	runs   map[string]int // by surroundings
	failed map[test]*failures
	least  map[test]float64 // seconds: of the runs in which it passed, the shortest
}

// failures are those of one test.
type failures struct {
	message string         // the first
	count   map[string]int // by surroundings
	seeds   []string
}

func newReport() *report {
	return &report{runs: map[string]int{}, failed: map[test]*failures{}, least: map[test]float64{}}
}

// read adds a run.
func (r *report) read(surroundings string, log io.Reader) error {
	x, err := readRun(log)
	if err != nil {
		return err
	}
	if !slices.Contains(r.order, surroundings) {
		r.order = append(r.order, surroundings)
	}
	r.runs[surroundings]++
	for t, message := range x.failed {
		f := r.failed[t]
		if f == nil {
			f = &failures{message: message, count: map[string]int{}}
			r.failed[t] = f
		}
		f.count[surroundings]++
		if seed := x.seed[t.pkg]; seed != "" {
			f.seeds = append(f.seeds, seed)
		}
	}
	for t, took := range x.seconds {
		if least, ok := r.least[t]; !ok || took < least {
			r.least[t] = took
		}
	}
	return nil
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "tests that failed at least once: %d\n", len(r.failed))
	for _, t := range slices.SortedFunc(maps.Keys(r.failed), byName) {
		f := r.failed[t]
		fmt.Fprintf(out, "  %s\n    ", strings.TrimSpace(t.pkg+" "+t.name))
		for _, s := range r.order {
			fmt.Fprintf(out, "%s %d of %d, ", s, f.count[s], r.runs[s])
		}
		if len(f.seeds) > 0 {
			fmt.Fprintf(out, "-shuffle=%s, ", strings.Join(f.seeds, " "))
		}
		fmt.Fprintf(out, "first: %s\n", f.message)
	}
	tests := slices.Collect(maps.Keys(r.least))
	tests = slices.DeleteFunc(tests, func(t test) bool { return t.name == "" || strings.Contains(t.name, "/") })
	slices.SortFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(r.least[b], r.least[a]), byName(a, b)) })
	fmt.Fprintln(out, "slowest tests, seconds of the shortest run:")
	for _, t := range tests[:min(listed, len(tests))] {
		fmt.Fprintf(out, "  %7.2f  %s %s\n", r.least[t], t.pkg, t.name)
	}
}

func byName(a, b test) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name)) }
