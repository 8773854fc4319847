package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string

	Elapsed float64 // seconds
}

// test names a test or, with an empty name, what a package does beside its tests.
type test struct{ pkg, name string }

// run is what the events of one run add up to.
type run struct {
	failed  map[test]string // the first message
	seconds map[test]float64
	output  map[test][]string
	running map[test]bool
	seed    map[string]string // by package, if the order was random
	crash   map[string]string // by package: the first line of a panic
	build   map[string]string // by package: the compiler's first message
}

// readRun reads a log. A line that is no event is an error.
func readRun(log io.Reader) (*run, error) {
	r := &run{map[test]string{}, map[test]float64{}, map[test][]string{}, map[test]bool{},
		map[string]string{}, map[string]string{}, map[string]string{}}
	in := json.NewDecoder(log)
	for n := 1; ; n++ {
		var e event
		if err := in.Decode(&e); err == io.EOF {
			return r, nil
		} else if err != nil {
			return nil, fmt.Errorf("event %d: %w", n, err)
		}
		r.add(e)
	}
}

func (r *run) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "run", "cont":
		r.running[t] = true
	case "pause", "skip":
		delete(r.running, t)
	case "pass":
		delete(r.running, t)
		r.seconds[t] = e.Elapsed
	case "fail":
		delete(r.running, t)
		r.addFailure(t, e.FailedBuild)
	case "output":
		r.addOutput(t, e.Output)
	case "build-output":
		if r.build[e.ImportPath] == "" && !strings.HasPrefix(e.Output, "#") {
			r.build[e.ImportPath] = strings.TrimSpace(e.Output)
		}
	}
}

// framing is what go test prints itself, and located a message of a test.
var (
	framing = regexp.MustCompile(`^(=== |\s*--- |PASS|FAIL|ok  |\s*$)`)
	located = regexp.MustCompile(`^\s+\S+\.go:\d+: `)
	crashes = regexp.MustCompile(`^(panic|fatal error): `)
)

func (r *run) addOutput(t test, line string) {
	seed, random := strings.CutPrefix(line, "-test.shuffle ")
	switch {
	case random:
		r.seed[t.pkg] = strings.TrimSpace(seed)
	case framing.MatchString(line):
	default:
		r.output[t] = append(r.output[t], line)
		if r.crash[t.pkg] == "" && crashes.MatchString(line) {
			r.crash[t.pkg] = strings.TrimSpace(line)
		}
	}
}

// addFailure leaves out a test that fails only because a subtest does, and a package that
// fails only because a test does: not one that has ended before its tests.
func (r *run) addFailure(t test, build string) {
	inner := func(other test) bool {
		return other.pkg == t.pkg && (t.name == "" || strings.HasPrefix(other.name, t.name+"/"))
	}
	explained := slices.ContainsFunc(slices.Collect(maps.Keys(r.failed)), inner)
	switch {
	case build != "":
		r.failed[t] = "does not build: " + r.build[build]
	case t.name != "" && !(explained && len(r.output[t]) == 0):
		r.failed[t] = firstMessage(r.output[t])
	case t.name == "" && len(r.unfinished(t.pkg)) > 0:
		r.failed[t] = r.crash[t.pkg] + "; running: " + strings.Join(r.unfinished(t.pkg), ", ")
	case t.name == "" && !explained:
		r.failed[t] = firstMessage(r.output[t])
	}
}

// unfinished returns the tests that a package began and did not end, without their parents.
func (r *run) unfinished(pkg string) []string {
	var names []string
	for t := range r.running {
		if t.pkg == pkg {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}

// firstMessage prefers what a test reported to what it printed.
func firstMessage(lines []string) string {
	for _, kind := range []*regexp.Regexp{located, crashes} {
		if n := slices.IndexFunc(lines, kind.MatchString); n >= 0 {
			return strings.TrimSpace(lines[n])
		}
	}
	if len(lines) == 0 {
		return "no message"
	}
	return strings.TrimSpace(lines[0])
}
