package system_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/system"
	"agentproxy/domain/account"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var (
	oldRoot   = system.Root("0123456789abcdefghijklmnopqrstuvwxyz")
	newRoot   = system.Root("zyxwvutsrqponmlkjihgfedcba9876543210")
	otherRoot = system.Root("another-secret-with-forty-characters-ab")
)

func derive(t *testing.T, root system.Root, previous ...system.Root) *system.Secrets {
	t.Helper()
	s, err := system.NewSecrets(root, previous...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a root made works as long as it is listed, and nothing new is made with it.
func TestAPreviousRootStillWorks(t *testing.T) {
	old, both, after := derive(t, oldRoot), derive(t, newRoot, otherRoot, oldRoot), derive(t, newRoot)
	key, now := old.NewKey(), time.Now()
	sign := func(s *system.Secrets) string {
		text, err := system.NewTokens(s, new(system.IDs)).Sign(ports.Token{AgentID: "agt_1", Version: 1,
			Scopes: account.Scopes, Expires: now.Add(time.Hour)}, now)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	reads := func(s *system.Secrets, text string) bool {
		_, err := system.NewTokens(s, new(system.IDs)).Read(text, now)
		return err == nil
	}
	opens := func(s *system.Secrets, sealed []byte) bool {
		plain, err := s.Open(sealed, "order/1")
		return err == nil && string(plain) == "plain"
	}
	hash := old.Hash(key)
	if !both.Same(key, hash) || after.Same(key, hash) || both.Same(key+"x", hash) || both.Same(key, nil) {
		t.Error("a hash of the previous root is not compared as such")
	}
	if fresh := both.Hash(key); !both.Same(key, fresh) || both.Same(key+"x", fresh) {
		t.Error("a hash of the current root is not compared beside previous ones")
	}
	if list := both.Hashes(key); len(list) != 3 || !bytes.Equal(list[2], hash) || !bytes.Equal(list[0], after.Hash(key)) {
		t.Errorf("the hashes are %x", list)
	}
	if !bytes.Equal(both.Hash(key), after.Hash(key)) {
		t.Error("a new key is stored under a previous root")
	}
	if text := sign(old); !reads(both, text) || reads(after, text) {
		t.Error("a token of the previous root is not read as such")
	}
	if text := sign(both); !reads(after, text) || reads(old, text) {
		t.Error("a new token is signed under a previous root")
	}
	if sealed := old.Seal([]byte("plain"), "order/1"); !opens(both, sealed) || opens(after, sealed) {
		t.Error("what the previous root sealed is not opened as such")
	}
	if sealed := both.Seal([]byte("plain"), "order/1"); !opens(after, sealed) || opens(old, sealed) {
		t.Error("something new is sealed under a previous root")
	}
	if both.ProxyPassword("sess_1", 0) != after.ProxyPassword("sess_1", 0) || len(both.OlderProxyKeys()) != 2 ||
		!traffic.CheckPassword(both.OlderProxyKeys()[1], "sess_1", old.ProxyPassword("sess_1", 0)) {
		t.Error("the proxy password of the previous root is not among the older ones")
	}
	if list := both.WebhookSecrets("agt_1", 1); len(list) != 3 || list[0] != after.WebhookSecret("agt_1", 1) ||
		list[0] != both.WebhookSecret("agt_1", 1) || list[2] != old.WebhookSecret("agt_1", 1) {
		t.Errorf("the webhook secrets are %q", list)
	}
	if list := both.Checks(); len(list) != 3 || !bytes.Equal(list[0], after.Checks()[0]) || !bytes.Equal(list[2], old.Checks()[0]) ||
		bytes.Equal(list[0], list[2]) {
		t.Errorf("the check values are %x", list)
	}
}

func TestPreviousRootsThatAreRefused(t *testing.T) {
	if _, err := system.NewSecrets(newRoot, oldRoot, system.Root("short")); err == nil {
		t.Error("one that is too short is taken")
	}
	many := make([]system.Root, 9)
	for i := range many {
		many[i] = oldRoot
	}
	if _, err := system.NewSecrets(newRoot, many...); err == nil || strings.Contains(err.Error(), string(oldRoot)) {
		t.Errorf("nine of them: %v", err)
	}
}

func TestLoadSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "previous")
	if list, err := system.LoadSecrets(path); len(list) != 0 || err != nil {
		t.Errorf("without a file: %v, %v", list, err)
	}
	write := func(text string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(string(oldRoot)+"\n\n  "+string(otherRoot), 0o600)
	if list, err := system.LoadSecrets(path); len(list) != 2 || err != nil || string(list[0]) != string(oldRoot) || string(list[1]) != string(otherRoot) {
		t.Errorf("two lines are %d secrets, %v", len(list), err)
	}
	write(string(oldRoot)+"\nshort\n", 0o600)
	if _, err := system.LoadSecrets(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a line that is no secret: %v", err)
	}
	write(string(oldRoot), 0o644)
	if _, err := system.LoadSecrets(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
}
