package traffic_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

var (
	sessionID = rapid.Map(rapid.StringMatching(`[a-z2-7]{20}`), func(s string) string { return session.IDPrefix + s })
	plain     = regexp.MustCompile(`^[a-z0-9]+$`)
)

func TestAUserNameIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := traffic.User{SessionID: sessionID.Draw(t, "id"), Static: rapid.Bool().Draw(t, "static"),
			Number: rapid.IntRange(0, 999_999_999).Draw(t, "number")}
		name := u.String()
		if !plain.MatchString(name) {
			t.Errorf("%s needs escaping in a URL", name)
		}
		if back, ok := traffic.ParseUser(name); !ok || back != u {
			t.Errorf("%+v is written %s and read as %+v, %v", u, name, back, ok)
		}
	})
}

func TestParseUserTakesWhatStringWritesAlone(t *testing.T) {
	id := strings.Repeat("a", 20)
	for _, name := range []string{
		"", id, id + "r", id + "x1", id + "r01", id + "r-1", id + "r+1", id + "r1 ", id + "r1.0", id + "R1", id + "r1r2",
		id + "r1234567890", id[:19] + "r1", "sess_" + id + "r1", id + "r٣",
	} {
		if u, ok := traffic.ParseUser(name); ok {
			t.Errorf("%q is read as %+v", name, u)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z2-7]{18,22}[ri]?[0-9]{0,11}`)).Draw(t, "name")
		if u, ok := traffic.ParseUser(name); ok && u.String() != name {
			t.Errorf("%q is read as %+v, which is written %q", name, u, u)
		}
	})
}

func TestPassword(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	one := traffic.Password(key, "sess_aaaaaaaaaaaaaaaaaaaa")
	if len(one) != 32 || !plain.MatchString(one) {
		t.Errorf("the password %s has %d characters, want 32 letters and digits", one, len(one))
	}
	if one != traffic.Password(key, "sess_aaaaaaaaaaaaaaaaaaaa") {
		t.Error("it is another one each time")
	}
	for claim, other := range map[string]string{
		"another session":  traffic.Password(key, "sess_aaaaaaaaaaaaaaaaaaab"),
		"another key":      traffic.Password(bytes.Repeat([]byte{8}, 32), "sess_aaaaaaaaaaaaaaaaaaaa"),
		"one cut short":    one[:31],
		"one too long":     one + "a",
		"another case":     strings.ToUpper(one),
		"none":             "",
		"an untrimmed one": " " + one,
	} {
		if other == one || traffic.CheckPassword(key, "sess_aaaaaaaaaaaaaaaaaaaa", other) {
			t.Errorf("the password of %s is taken", claim)
		}
	}
	if !traffic.CheckPassword(key, "sess_aaaaaaaaaaaaaaaaaaaa", one) {
		t.Error("the right password is refused")
	}
}

func BenchmarkCheckPassword(b *testing.B) {
	key := bytes.Repeat([]byte{7}, 32)
	password := traffic.Password(key, "sess_aaaaaaaaaaaaaaaaaaaa")
	for b.Loop() {
		if !traffic.CheckPassword(key, "sess_aaaaaaaaaaaaaaaaaaaa", password) {
			b.Fatal("refused")
		}
	}
}

func TestNumberedPasswords(t *testing.T) {
	key := []byte("key")
	id := "sess_aaaaaaaaaaaaaaaaaaaa"
	seen := map[string]bool{}
	for number := range 12 {
		p := traffic.NumberedPassword(key, id, number)
		if n, ok := traffic.PasswordNumber(p); !ok || n != number || seen[p[:32]] || !traffic.CheckPassword(key, id, p) {
			t.Errorf("%d: %q has number %d, %v", number, p, n, ok)
		}
		seen[p[:32]] = true
		for _, other := range []string{p + "0", p + "1", p[:31], p[:32] + "13", "a" + p, p + "x", p[:32] + "01", p[:32] + "-1"} {
			if other != p && traffic.CheckPassword(key, id, other) {
				t.Errorf("%q passes for %q", other, p)
			}
		}
	}
	if traffic.Password(key, id) != traffic.NumberedPassword(key, id, 0) {
		t.Error("the first password has changed")
	}
}
