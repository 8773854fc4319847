package wire_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/wire"
)

// Each example of docs/providers.md is a file that the service starts with.
func TestEveryDocumentedProviderIsAccepted(t *testing.T) {
	text, err := os.ReadFile("../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, found := strings.Cut(string(text), "```text\n")
	lines, _, closed := strings.Cut(lines, "```")
	if !found || !closed {
		t.Fatal("docs/providers.md shows no list")
	}
	examples := 0
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(part, "```")
		examples++
		dir := t.TempDir()
		for name, content := range map[string]string{"config.yaml": example, "own.txt": lines, "royal.key": "key654"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("AGENTPROXY_CONFIG", filepath.Join(dir, "config.yaml"))
		for name, value := range map[string]string{"BRD_PASSWORD": "password321", "EXPORT_URL": "https://seller.example/list?token=x",
			"WEBSHARE_KEY": "key", "GATE_PASSWORD": "password321", "TOR_ANY_PASSWORD": "any"} {
			t.Setenv(name, value)
		}
		if _, err := (wire.Loader{}).Load(); err != nil {
			for _, f := range configfile.FaultsOf(err) {
				t.Errorf("example %d: %v", examples, f)
			}
		}
	}
	if examples < 4 {
		t.Errorf("%d examples", examples)
	}
}
