package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"agentproxy/ports"
)

type verifyCmd struct {
	All     bool   `help:"Prove sealed months too, of which else the sums are taken as they were when they were sealed."`
	Against string `placeholder:"FILE" help:"A log of the service, or the .head file beside a backup: the past must be that of the heads of the ledger's proof in it."`
}

var errFaults = errors.New("the ledger is inconsistent")

// Run verifies the ledger: what is in no sealed month, or all of it.
func (c verifyCmd) Run(k *kit) error {
	var audit ports.Audit
	var heads []ports.ProofHead
	if c.Against != "" {
		var err error
		if heads, err = readHeads(c.Against); err != nil {
			return err
		}
	}
	return k.core(func(ctx context.Context) error {
		found := struct {
			faults  []ports.Fault
			entries int
			sealed  time.Time
		}{}
		var err error
		if c.All || len(heads) > 0 {
			found.faults, found.entries, err = audit.Verify(ctx, heads...)
		} else {
			found.faults, found.entries, found.sealed, err = audit.VerifyOpen(ctx)
		}
		if err != nil {
			return err
		}
		if len(found.faults) == 0 {
			return k.record("entries", found.entries, "heads", len(heads), "faults", 0, "sealed", dayOf(found.sealed))
		}
		t := table{columns: []string{"rule", "where", "detail"}}
		for _, f := range found.faults {
			t.add(f.Rule, f.Where, f.Detail)
		}
		return errors.Join(t.print(k), fmt.Errorf("%w: %d rows break a rule", errFaults, len(found.faults)))
	}, &audit)
}

// dayOf returns the day before when months are left out; "" if none is.
func dayOf(sealed time.Time) string {
	if sealed.IsZero() {
		return ""
	}
	return sealed.Format(time.DateOnly)
}

// noHead is printed for a backup of a database that the service did not prove yet.
const noHead = "none: the service publishes one within minutes of its start"

// writeHead writes the head of the ledger's proof to a file, and returns what to print of it.
func writeHead(ctx context.Context, audit ports.Audit, file string) (printed string, err error) {
	proof, err := audit.Proof(ctx)
	if err != nil || proof.Head.Head == "" {
		return noHead, err
	}
	line, err := json.Marshal(proof.Head)
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, append(line, '\n'), 0o600)
}

// mostHeads is how many heads one run proves: a month of hours has 744.
const mostHeads = 1000

// What a line with a head has, as JSON or as the service logs it.
var (
	headSeq     = regexp.MustCompile(`\bseq"?[=:] ?(\d+)`)
	headEntries = regexp.MustCompile(`\bentries"?[=:] ?(\d+)`)
	headDigest  = regexp.MustCompile(`\bhead"?[=:] ?"?([0-9a-f]{64})\b`)
)

// readHeads reads the heads in a file; lines without one are left out.
func readHeads(file string) (heads []ports.ProofHead, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		digest := headDigest.FindStringSubmatch(lines.Text())
		seq, entries := number(headSeq, lines.Text()), number(headEntries, lines.Text())
		if digest == nil || seq < 0 || entries < 0 {
			continue
		}
		if heads = append(heads, ports.ProofHead{Seq: seq, Entries: entries, Head: digest[1]}); len(heads) > mostHeads {
			return nil, fmt.Errorf("%s has more than %d heads; give a part of it", file, mostHeads)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(heads) == 0 {
		return nil, fmt.Errorf("%s has no head of the ledger's proof", file)
	}
	return heads, nil
}

// number returns the number that a pattern finds in a line, -1 if it finds none.
func number(pattern *regexp.Regexp, line string) int64 {
	found := pattern.FindStringSubmatch(line)
	if found == nil {
		return -1
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
