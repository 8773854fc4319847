package gateway_test

import (
	"testing"

	"agentproxy/domain/traffic"
)

// A password of a previous key is right like that of the current one, in any order, and that of
// another key is wrong.
func TestPasswordsOfPreviousKeys(t *testing.T) {
	older, foreign := []byte("a key of before"), []byte("an unknown key")
	core := newCore(t)
	w := begin(t, core, func(s *setup) { s.OlderKeys = [][]byte{[]byte("one of long ago"), older} })
	id := core.add(1, 1<<30)
	target := echo(t)
	for _, c := range []struct {
		key    []byte
		status int
	}{{foreign, 407}, {older, 200}, {key, 200}, {older, 200}, {foreign, 407}} {
		line := basic(user(id, 0), traffic.Password(c.key, id))
		if status := w.connectAs(w.dial(), line, target); status != c.status {
			t.Errorf("the password of %q: %d, want %d", c.key, status, c.status)
		}
	}
}
