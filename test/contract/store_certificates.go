package contract

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/ports"
)

var certificateClaims = []claim{
	{"files of certificates are stored, replaced and removed with all below", filesOfCertificates},
	{"of many owners one has a lock of certificates", lockOfCertificates},
	{"a lock of certificates ends with its time", endOfLockOfCertificates},
}

// inCertificates runs f in a unit of its own.
func inCertificates(t *testing.T, st ports.Store, f func(ctx context.Context, c ports.Certificates) error) {
	t.Helper()
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return f(ctx, tx.Certificates()) })
	if err != nil {
		t.Fatal(err)
	}
}

func filesOfCertificates(t *testing.T, st ports.Store) {
	get := func(name string) (text string, at time.Time, found bool) {
		err := st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			sealed, stored, is, err := tx.Certificates().Get(ctx, name)
			text, at, found = string(sealed), stored, is
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text, at, found
	}
	names := func(below string) (list []string) {
		inCertificates(t, st, func(ctx context.Context, c ports.Certificates) (err error) {
			list, err = c.Names(ctx, below)
			return err
		})
		return list
	}
	if _, _, found := get("a"); found || len(names("")) != 0 {
		t.Error("an empty store has a file")
	}
	for i, name := range []string{"a", "a/b", "a/b/c", "ab", "a.b", "b/a", "a/b", "A/b"} {
		inCertificates(t, st, func(ctx context.Context, c ports.Certificates) error {
			return c.Put(ctx, name, []byte("\x00"+strconv.Itoa(i)), storeNow.Add(time.Duration(i)*time.Second))
		})
	}
	if text, at, found := get("a/b"); !found || text != "\x006" || !at.Equal(storeNow.Add(6*time.Second)) {
		t.Errorf("a/b is %q of %v, %v", text, at, found)
	}
	for below, want := range map[string]int{"": 7, "a": 2, "a/b": 1, "a/b/c": 0, "b": 1, "c": 0} {
		if got := names(below); len(got) != want {
			t.Errorf("below %q are %v, want %d", below, got, want)
		}
	}
	for range 2 {
		inCertificates(t, st, func(ctx context.Context, c ports.Certificates) error { return c.Delete(ctx, "a") })
	}
	if got := names(""); len(got) != 4 || got[0] != "A/b" || got[1] != "a.b" || got[2] != "ab" || got[3] != "b/a" {
		t.Errorf("after a was removed there are %v", got)
	}
}

func lockOfCertificates(t *testing.T, st ports.Store) {
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			var has bool
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
				has, err = tx.Certificates().Lock(ctx, "issue", strconv.Itoa(i), storeNow, storeNow.Add(time.Minute))
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if has {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d owners have the lock, want 1", n)
	}
}

func endOfLockOfCertificates(t *testing.T, st ports.Store) {
	lock := func(owner string, after time.Duration) (has bool) {
		inCertificates(t, st, func(ctx context.Context, c ports.Certificates) (err error) {
			has, err = c.Lock(ctx, "issue", owner, storeNow.Add(after), storeNow.Add(after+time.Minute))
			return err
		})
		return has
	}
	unlock := func(owner string) {
		inCertificates(t, st, func(ctx context.Context, c ports.Certificates) error { return c.Unlock(ctx, "issue", owner) })
	}
	for i, step := range []struct {
		owner string
		after time.Duration
		want  bool
	}{
		{"a", 0, true}, {"b", time.Second, false}, {"a", 30 * time.Second, true}, {"b", time.Minute, false},
		{"b", 90 * time.Second, true}, {"a", 91 * time.Second, false},
	} {
		if got := lock(step.owner, step.after); got != step.want {
			t.Errorf("step %d: %s has it: %v", i, step.owner, got)
		}
	}
	if unlock("a"); lock("a", 92*time.Second) {
		t.Error("an owner gave up the lock of another one")
	}
	if unlock("b"); !lock("a", 93*time.Second) {
		t.Error("a lock that was given up is held")
	}
}
