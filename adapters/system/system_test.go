package system_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/system"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

const rootText = "an-example-of-a-root-secret-0123456789"

func newSecrets(t testing.TB, root string) *system.Secrets {
	t.Helper()
	s, err := system.NewSecrets(system.Root(root))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClock(t *testing.T) {
	before := time.Now().Truncate(time.Microsecond)
	now := system.Clock{}.Now()
	if now.Location() != time.UTC || now.Nanosecond()%1000 != 0 || now.Before(before) || now.After(time.Now()) {
		t.Errorf("the time is %s", now)
	}
	if now != now.Round(0) {
		t.Error("the time carries a monotonic part, so it would not equal what is read back")
	}
}

func TestIDs(t *testing.T) {
	shape := regexp.MustCompile(`^sess_[a-z0-9]{20}$`)
	var ids system.IDs
	t.Run("an id has the shape of the contract, and a user name can be made of it", func(t *testing.T) {
		id := ids.New(session.IDPrefix)
		if !shape.MatchString(id) {
			t.Errorf("the id is %s", id)
		}
		u := traffic.User{SessionID: id, Number: 7}
		if back, ok := traffic.ParseUser(u.String()); !ok || back != u {
			t.Errorf("%+v is read as %+v", u, back)
		}
	})
	t.Run("of 40,000 made at once none is like another", func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]bool{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				mine := make([]string, 5000)
				for i := range mine {
					mine[i] = ids.New(session.IDPrefix)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range mine {
					if seen[id] || !shape.MatchString(id) {
						t.Errorf("%s was made twice, or is no id", id)
					}
					seen[id] = true
				}
			})
		}
		wg.Wait()
	})
	t.Run("every place behind the span has every character", func(t *testing.T) {
		var seen [20]map[byte]bool
		for range 4000 {
			id := ids.New("")
			for i := range seen {
				if seen[i] == nil {
					seen[i] = map[byte]bool{}
				}
				seen[i][id[i]] = true
			}
		}
		for i, at := range seen {
			if i > 1 && len(at) != 36 {
				t.Errorf("at place %d are only %d characters", i, len(at))
			}
		}
	})
}

func TestKeysAndSecrets(t *testing.T) {
	s := newSecrets(t, rootText)
	shape := regexp.MustCompile(`^(ak_[A-Za-z0-9]{43}[0-9a-f]{8}|sk_[A-Za-z0-9]{43})$`)
	seen, letters := map[string]bool{}, map[rune]int{}
	for range 500 {
		for _, text := range []string{s.NewKey(), s.NewSecret()} {
			if !shape.MatchString(text) || seen[text] {
				t.Fatalf("%s has the wrong shape, or was made twice", text)
			}
			seen[text] = true
			for _, r := range text[3:46] {
				letters[r]++
			}
		}
	}
	for r, n := range letters { // 43,000 letters, 694 of each expected; 8 standard deviations
		if n < 480 || n > 905 {
			t.Errorf("%c was drawn %d times of 43000", r, n)
		}
	}
	if len(letters) != 62 {
		t.Errorf("%d different letters were drawn, want 62", len(letters))
	}
}

func TestHash(t *testing.T) {
	s := newSecrets(t, rootText)
	key := s.NewKey()
	hash := s.Hash(key)
	if len(hash) != 32 || !s.Same(key, hash) {
		t.Errorf("a key does not equal its hash of %d bytes", len(hash))
	}
	for claim, same := range map[string]bool{
		"another key":                s.Same(s.NewKey(), hash),
		"a key cut short":            s.Same(key[:len(key)-1], hash),
		"no key":                     s.Same("", hash),
		"a hash cut short":           s.Same(key, hash[:31]),
		"no hash":                    s.Same(key, nil),
		"a hash under another root":  newSecrets(t, rootText+"x").Same(key, hash),
		"the hash taken for the key": s.Same(string(hash), hash),
	} {
		if same {
			t.Errorf("%s is the same", claim)
		}
	}
}

// A changed derivation would lock every agent out: these values, computed by
// another program (HKDF and HMAC of Python's hashlib), are for ever.
func TestWhatIsDerivedNeverChanges(t *testing.T) {
	s := newSecrets(t, rootText)
	for claim, c := range map[string][2]string{
		"hash":           {fmt.Sprintf("%x", s.Hash("ak_example")), "7bb8b2e0c2705208628dab5b889efed254d32164d6d34f477fc5c3706547d6d6"},
		"proxy password": {s.ProxyPassword("sess_aaaaaaaaaaaaaaaaaaaa", 0), "yapwgmwuyiaz2uuwucekx4og3dgm2ewd"},
		"webhook secret": {s.WebhookSecret("agt_1", 1), "whsec_zwSkH86u+M07GgVA1WH1TCOQgKv/wFZ4IuberhzgD8c="},
	} {
		if c[0] != c[1] {
			t.Errorf("the %s is %s, want %s", claim, c[0], c[1])
		}
	}
	if again := newSecrets(t, " "+rootText+"\n"); again.ProxyPassword("sess_1", 0) != s.ProxyPassword("sess_1", 0) {
		t.Error("white space round the root secret changes what is derived")
	}
}

func TestDerivedSecretsAreApart(t *testing.T) {
	s, other := newSecrets(t, rootText), newSecrets(t, rootText+"x")
	seen := map[string]bool{}
	for _, text := range []string{
		s.WebhookSecret("agt_1", 1), s.WebhookSecret("agt_1", 2), s.WebhookSecret("agt_11", 1), s.WebhookSecret("agt_1", 11),
		other.WebhookSecret("agt_1", 1), s.ProxyPassword("sess_1", 0), s.ProxyPassword("sess_2", 0), other.ProxyPassword("sess_1", 0),
		string(s.Hash("sess_1")), string(s.ProxyKey()),
	} {
		if seen[text] {
			t.Errorf("%q was derived twice", text)
		}
		seen[text] = true
	}
	if !traffic.CheckPassword(s.ProxyKey(), "sess_1", s.ProxyPassword("sess_1", 0)) {
		t.Error("the gateway's key does not open what was derived")
	}
	clear(s.ProxyKey())
	if s.ProxyPassword("sess_1", 0) != newSecrets(t, rootText).ProxyPassword("sess_1", 0) {
		t.Error("who holds the gateway's key can change it")
	}
	text, ok := strings.CutPrefix(s.WebhookSecret("agt_1", 1), "whsec_")
	if raw, err := base64.StdEncoding.DecodeString(text); !ok || err != nil || len(raw) != 32 {
		t.Errorf("the webhook secret has %d bytes, %v", len(raw), err)
	}
}

func TestSecretsHideThemselves(t *testing.T) {
	s := newSecrets(t, rootText)
	tokens := system.NewTokens(s, new(system.IDs))
	var out bytes.Buffer
	text, json := slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))
	for _, secret := range []any{system.Root(rootText), s, tokens} {
		text.Info("x", "secret", secret)
		json.Info("x", "secret", secret)
		fmt.Fprintf(&out, "%v %+v %#v %s\n", secret, secret, secret, secret)
	}
	if n := strings.Count(out.String(), "[hidden]"); n != 18 {
		t.Errorf("hidden %d times, want 18:\n%s", n, out.String())
	}
	for _, leak := range []string{rootText, string(s.ProxyKey()), fmt.Sprint(s.ProxyKey()), fmt.Sprintf("%x", s.ProxyKey())} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the log", leak)
		}
	}
}

func TestModule(t *testing.T) {
	var ids ports.IDs
	var secrets ports.Secrets
	var tokens ports.Tokens
	var own *system.Secrets
	app := fx.New(fx.NopLogger, system.Module, fx.Supply(system.Roots{Current: system.Root(rootText)}), fx.Populate(&ids, &secrets, &tokens, &own))
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	if secrets != ports.Secrets(own) {
		t.Error("the gateway and the core have different secrets")
	}
	short := fx.New(fx.NopLogger, system.Module, fx.Supply(system.Roots{Current: system.Root("short")}), fx.Populate(&secrets))
	if err := short.Err(); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short root secret starts: %v", err)
	}
}

func BenchmarkNewID(b *testing.B) {
	var ids system.IDs
	for b.Loop() {
		ids.New("sess_")
	}
}

func BenchmarkHash(b *testing.B) {
	s := newSecrets(b, rootText)
	key := s.NewKey()
	for b.Loop() {
		s.Hash(key)
	}
}
