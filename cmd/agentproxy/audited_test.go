package main

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/admin/console"
)

// reads are the commands that change nothing an operator answers for.
var reads = strings.Fields(`serve version doctor verify config-check config-init migrate providers-kinds providers-list
	providers-check providers-catalogue referrer-list agent-list agent-show audit-list exits-lookups exits-holds exits-quality recharge-list
	recharge-show recharge-audit recharge-addresses recharge-moves recharge-aside admin-token admin-hash orders-list jobs-list session-list session-show report-margin`)

// leaves calls fn for each command with its name and its type.
func leaves(of reflect.Type, name string, fn func(name string, cmd reflect.Type)) {
	for f := range of.Fields() {
		if _, ok := f.Tag.Lookup("cmd"); !ok {
			continue
		}
		own := strings.TrimPrefix(name+"-"+strings.ToLower(f.Name), "-")
		if n := f.Tag.Get("name"); n != "" {
			own = strings.TrimPrefix(name+"-"+n, "-")
		}
		if _, ok := reflect.PointerTo(f.Type).MethodByName("Run"); ok {
			fn(own, f.Type)
			continue
		}
		leaves(f.Type, own, fn)
	}
}

func TestCommandsThatChangeSomethingSayWhoDidIt(t *testing.T) {
	var known []string
	leaves(reflect.TypeFor[cli](), "", func(name string, cmd reflect.Type) {
		known = append(known, name)
		_, is := cmd.FieldByName("By")
		_, why := cmd.FieldByName("Reason")
		if changes := !slices.Contains(reads, name); changes && !(is && why) {
			t.Errorf("%s changes something and has no --by and --reason", name)
		}
	})
	if len(known) < 30 {
		t.Errorf("only %d commands are found: %v", len(known), known)
	}
}

// TestEveryCommandHasItsPlaceInTheConsole reads the table of the manual; the tests of the console press
// what it names.
func TestEveryCommandHasItsPlaceInTheConsole(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(manual), "| Command | In the console |")
	part, _, _ = strings.Cut(part, "\n\n")
	places := map[string]string{}
	for _, line := range strings.Split(part, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		family := ""
		for _, m := range regexp.MustCompile("`([a-z -]+)`").FindAllStringSubmatch(cells[1], -1) {
			name := m[1]
			if first, _, two := strings.Cut(name, " "); two {
				family = first
			} else if family != "" {
				name = family + " " + name
			}
			places[name] = cells[2]
		}
	}
	buttons := slices.Collect(maps.Values(console.Commands()))
	leaves(reflect.TypeFor[cli](), "", func(leaf string, cmd reflect.Type) {
		found := ""
		for name := range places {
			if strings.ReplaceAll(name, " ", "-") == leaf {
				found = name
			}
		}
		place := places[found]
		why := strings.Contains(place, "none: ")
		switch _, changes := cmd.FieldByName("Reason"); {
		case found == "":
			t.Errorf("the manual does not name where the console has %s", leaf)
		case !why && !strings.Contains(place, "`/") && !strings.Contains(place, "page"):
			t.Errorf("%s has neither a page nor a reason why not: %s", leaf, place)
		case changes && !why && !slices.Contains(buttons, found):
			t.Errorf("%s changes something and has no button", leaf)
		}
	})
}

// did returns the newest actions as "by action subject reason".
func did(t *testing.T, args ...string) (list []string) {
	t.Helper()
	status, out, errOut := command(append([]string{"--json", "audit", "list"}, args...)...)
	if status != 0 {
		t.Fatal(errOut)
	}
	for _, r := range rows(t, out) {
		list = append(list, strings.Join([]string{r["by"].(string), r["action"].(string), r["subject"].(string), r["reason"].(string)}, "|"))
	}
	return list
}

// done runs a command that must succeed and returns what it prints as JSON.
func done(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errOut := command(append([]string{"--json"}, args...)...)
	if status != 0 {
		t.Fatalf("%q: %d %s%s", args, status, out, errOut)
	}
	return out
}

func TestActionsOfCommandsAreKept(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	done(t, "migrate")
	agent := object(t, done(t, "agent", "add", "--name", "shop", "--by", "ann", "--reason", "a partner"))["agent_id"].(string)
	done(t, "referrer", "add", "--name", "friend", "--code", "FRIEND", "--by", "bob")
	for range 2 {
		done(t, "adjust", agent, "--amount", "2", "--reason", "gift", "--ref", "t7", "--by", "ann")
	}
	done(t, "agent", "set-rate-limit", agent, "--per-minute", "10")
	if status, _, _ := command("agent", "disable", "agt_unknown", "--reason", "x"); status != 1 {
		t.Errorf("an unknown agent: %d", status)
	}
	done(t, "exits", "hold", "--from", "2026-01-01", "--to", "2026-01-02", "--reason", "police", "--by", "ann")
	want := []string{"ann|exits hold|2026-01-01 to 2026-01-02|police", systemUser() + "|agent set-rate-limit|" + agent + "|",
		"ann|adjust|" + agent + "|gift", "bob|referrer add|FRIEND|", "ann|agent add|" + agent + "|a partner"}
	if got := did(t); !slices.Equal(got, want) {
		t.Errorf("kept:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := did(t, "--by", "bob"); len(got) != 1 {
		t.Errorf("of bob: %q", got)
	}
	if got := did(t, "--subject", agent, "--action", "adjust"); len(got) != 1 {
		t.Errorf("adjustments: %q", got)
	}
	if list := rows(t, done(t, "exits", "holds")); len(list) != 1 || list[0]["by"] != "ann" {
		t.Errorf("the hold is %v", list)
	}
}

// object parses the JSON object that a command printed.
func object(t *testing.T, out string) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &fields); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return fields
}
