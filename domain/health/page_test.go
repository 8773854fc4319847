package health

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// table returns the rows of the first table in a section of docs/health.md, each
// as its cells without backquotes.
func table(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	_, rows, separated := strings.Cut(section, "|---|")
	if !ok || !separated {
		t.Fatalf("the page has no table in section %q", heading)
	}
	var list [][]string
	for _, line := range strings.Split(rows, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, "`", ""), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		list = append(list, cells)
	}
	return list
}

// TestPageHasTheConstants compares every constant of rules.go with the page.
func TestPageHasTheConstants(t *testing.T) {
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(source), "// The constants of the score")
	block, _, _ = strings.Cut(block, "\n)")
	want := map[string]string{"ringWait": "2 s", "ringSize": strconv.Itoa(ringSize)}
	if ringWait != 2*time.Second {
		t.Errorf("ringWait is %v", ringWait)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) += ([^/\n]+)`).FindAllStringSubmatch(block, -1) {
		want[m[1]] = constant(strings.TrimSpace(m[2]))
	}
	got := map[string]string{}
	for _, row := range table(t, "Constants") {
		got[row[0]] = row[1]
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is %q in the code and %q on the page", name, want[name], got[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("the page has other constants: %v", got)
	}
}

// constant writes the value of a constant in rules.go as the page does.
func constant(source string) string {
	n, unit, spans := strings.Cut(source, " * ")
	v, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return source
	}
	if !spans {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	seconds := map[string]float64{"second": 1, "minute": float64(minute / second)}[unit]
	return fmt.Sprintf("%v s", v*seconds)
}

// TestPageHasTheCosts scores every event type and status code and compares cost
// and cause with the page.
func TestPageHasTheCosts(t *testing.T) {
	causes := [...]string{causeBlock: "block", causeRate: "rate", causeNet: "net", causeTarget: "target", worked: "none: the exit worked"}
	want := map[string]string{}
	describe := func(e Event) string {
		found, ok := e.evidence()
		if !ok {
			return " not scored"
		}
		return strconv.FormatFloat(found.cost, 'f', -1, 64) + " " + causes[found.cause]
	}
	for _, typ := range types {
		if typ != HTTPError {
			want[string(typ)] = describe(Event{Type: typ})
		}
	}
	for code := range MaxStatusCode + 1 {
		want[fmt.Sprintf("http_error %d", code)] = describe(Event{Type: HTTPError, StatusCode: code})
	}
	for _, row := range table(t, "Evidence") {
		for _, event := range expand(row[0]) {
			if value := row[1] + " " + row[2]; want[event] != value {
				t.Errorf("%s is %q in the code and %q on the page", event, want[event], value)
			}
			delete(want, event)
		}
	}
	if len(want) > 0 {
		t.Errorf("the page lacks %v", want)
	}
}

// expand returns the events that a cell such as "http_error 500 to 519, 528"
// describes.
func expand(cell string) []string {
	name, codes, _ := strings.Cut(cell, " ")
	if codes == "" {
		return []string{name}
	}
	var list []string
	for part := range strings.SplitSeq(codes, ", ") {
		from, to, spans := strings.Cut(part, " to ")
		if !spans {
			to = from
		}
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		for code := first; code <= last; code++ {
			list = append(list, fmt.Sprintf("http_error %d", code))
		}
	}
	return list
}

// TestPageHasTheVectors replays the histories of the page.
func TestPageHasTheVectors(t *testing.T) {
	rows := table(t, "Vectors")
	if len(rows) < 14 {
		t.Errorf("the page has %d vectors", len(rows))
	}
	for _, row := range rows {
		var s State
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		replay(t, &s, &now, row[0])
		v := s.Verdict(now, false)
		got := fmt.Sprintf("%d %s %s", v.HealthScore, v.RiskLevel, v.Recommendation)
		if want := strings.Join(row[1:], " "); got != want {
			t.Errorf("%s: %s, the page has %s", row[0], got, want)
		}
	}
}

var repeated = regexp.MustCompile(`^\((.*)\) × (\d+)$`)

// replay applies a history such as "5 block, rotate, 5 success" to a state.
func replay(t *testing.T, s *State, now *time.Time, history string) {
	t.Helper()
	if m := repeated.FindStringSubmatch(history); m != nil {
		times, _ := strconv.Atoi(m[2])
		for range times {
			replay(t, s, now, m[1])
		}
		return
	}
	for step := range strings.SplitSeq(history, ", ") {
		var n int
		var what string
		switch {
		case step == "nothing":
		case step == "rotate":
			*now = now.Add(time.Second)
			s.Rotate(RotationManual, *now)
		case strings.HasSuffix(step, " minutes of silence"):
			if _, err := fmt.Sscanf(step, "%d", &n); err != nil {
				t.Fatal(err)
			}
			*now = now.Add(time.Duration(n) * time.Minute)
		default:
			if _, err := fmt.Sscanf(step, "%d %s", &n, &what); err != nil {
				t.Fatalf("%q: %v", step, err)
			}
			for range n {
				*now = now.Add(time.Second)
				s.Report(Event{Type: Type(what), At: *now})
			}
		}
	}
}
