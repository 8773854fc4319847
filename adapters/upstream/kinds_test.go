package upstream_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/syncbuffer"
)

var update = flag.Bool("update", false, "rewrite the settings of each kind in docs/providers.md")

// The page lists what each kind declares.
func TestThePageHasTheSettingsOfEachKind(t *testing.T) {
	t.Parallel()
	const page, heading, after = "../../docs/providers.md", "## Settings of each kind\n", "\n## Before you sell\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), heading)
	_, rest, foundAfter := strings.Cut(rest, after)
	if !found || !foundAfter {
		t.Fatalf("%s has no %q before %q", page, heading, after)
	}
	var b strings.Builder
	b.WriteString(before + heading + "\nAs `agentproxy providers kinds` lists them; `make generate` writes this table.\n\n" +
		"| Kind | Setting | Required | What it is |\n|---|---|---|---|\n")
	for _, k := range upstream.Kinds() {
		for _, s := range k.Settings {
			if s.Help == "" {
				t.Errorf("%s of %s has no help", s, k.Name)
			}
			required := ""
			if s.Required {
				required = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", k.Name, s, required, strings.ReplaceAll(s.Help, "|", `\|`))
		}
	}
	b.WriteString(after + rest)
	switch {
	case b.String() == string(text):
	case *update:
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run make generate", page)
	}
}

// A seller that repeats all that it was sent, as some do in their errors, puts no secret into ours or into the log.
func TestNoKindShowsASecret(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, k := range upstream.Kinds() {
		sent := &syncbuffer.Buffer{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			all := fmt.Sprint(r.URL, r.Header)
			_, _ = sent.Write([]byte(all))
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"detail": all, "code": all, "message": all, "error": all,
				"errors": []any{map[string]any{"message": all, "code": 1}}})
		}))
		defer server.Close()
		s := kind.Spec{Name: "p", Kind: k.Name, BaseURL: server.URL, PerSecond: 1000, Options: settings[k.Name], Secrets: map[string]string{}}
		for _, f := range k.Settings {
			if f.Secret {
				s.Secrets[f.Name] = "hunter2" + f.Name
			}
		}
		var log syncbuffer.Buffer
		p, err := upstream.New(s, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if err != nil {
			continue // it has no API
		}
		asked++
		_, err1 := p.Balance(t.Context())
		_, err2 := p.Offers(t.Context())
		_, err3 := p.Order(t.Context(), procurement.Intent{Key: "ord_1", SessionID: "sess_1"})
		var err4 error
		if l, ok := p.(ports.Lister); ok {
			_, err4 = l.List(context.WithoutCancel(t.Context()))
		}
		for _, text := range []string{fmt.Sprint(err1, err2, err3, err4), log.String()} {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s shows a secret: %s", k.Name, text)
			}
		}
		if !strings.Contains(sent.String(), "hunter2") {
			t.Errorf("%s sent no secret, so nothing was tested: %s", k.Name, sent.String())
		}
	}
	if asked < 4 {
		t.Errorf("%d kinds have an API", asked)
	}
}

// Options that are no text are checked for all kinds alike.
func TestOptionsHaveTheirTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, option, value, want string }{
		{"list", "probe_minutes", "0", "options.probe_minutes must be 1 to 1440"},
		{"list", "reload_minutes", "1441", "options.reload_minutes must be 1 to 1440"},
		{"gateway", "strict", "yes", "options.strict must be true or false"},
		{"gateway", "tls", "1", "options.tls must be true or false"},
		{"gateway", "zoned", "x", "options.zoned does not exist"},
		{"gateway", "profile", "", "options.profile is missing: the gateway: anyip, "},
	} {
		s := kind.Spec{Kind: c.kind, Options: map[string]string{}, Secrets: map[string]string{"password": "p"}}
		if c.kind == "list" {
			s.Secrets = map[string]string{"url": "https://seller.example/list"}
		}
		for name, value := range settings[c.kind] {
			if name != "file" {
				s.Options[name] = value
			}
		}
		s.Options[c.option] = c.value
		_, err := upstream.New(s, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || slices.Contains(strings.Split(err.Error(), "\n"), "") {
			t.Errorf("%s of %s: got %v, want %s", c.option, c.kind, err, c.want)
		}
	}
}
