package system_test

import (
	"bytes"
	"testing"

	"agentproxy/adapters/system"
)

func TestSeal(t *testing.T) {
	secrets := func(root string) *system.Secrets {
		s, err := system.NewSecrets(system.Root(root))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, other := secrets("0123456789abcdefghijklmnopqrstuvwxyz"), secrets("0123456789abcdefghijklmnopqrstuvwxyZ")
	plain := []byte("user and password")
	sealed := one.Seal(plain, "order 1")
	if got, err := one.Open(sealed, "order 1"); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("opened %q, %v", got, err)
	}
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, one.Seal(plain, "order 1")) {
		t.Error("the seal shows what is in it")
	}
	if _, err := one.Open(sealed, "order 2"); err == nil {
		t.Error("opened for another purpose")
	}
	if _, err := other.Open(sealed, "order 1"); err == nil {
		t.Error("opened with another root")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := one.Open(sealed, "order 1"); err == nil {
		t.Error("a changed seal was opened")
	}
	if _, err := one.Open(nil, "order 1"); err == nil {
		t.Error("nothing was opened")
	}
}
