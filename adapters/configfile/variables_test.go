package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

func TestAVariableOfTheWrongTypeIsExplainedInWords(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_DEV", "maybe")
	t.Setenv("AGENTPROXY_RATE_LIMIT_PER_MINUTE", "many")
	_, err := configfile.Load(rules())
	if err == nil || !strings.Contains(err.Error(), "AGENTPROXY_DEV: must be true or false") ||
		!strings.Contains(err.Error(), "AGENTPROXY_RATE_LIMIT_PER_MINUTE: must be a whole number") {
		t.Errorf("got %v", err)
	}
}

func TestAVariableThatIsNoSettingIsWarnedOf(t *testing.T) {
	clean(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "providers:\n  - name: royal\n    kind: iproyal\n    secrets: {key: {env: AGENTPROXY_ROYAL_KEY}}\n    " + sourced + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AGENTPROXY_CONFIG": file, "AGENTPROXY_ROYAL_KEY": "hunter2", "AGENTPROXY_TRON_NETWORK": "", "AGENTPROXY_SECRET": "",
		"AGENTPROXY_PORT": "tcp://10.0.0.1:80", "AGENTPROXY_SERVICE_HOST": "10.0.0.1", "OTHER": "1",
		"AGENTPROXY_TRON_XPUP": "xpub", "AGENTPROXY_EXITS": "203.0.113.7", "AGENTPROXY_RATE_LIMIT": "5",
	} {
		t.Setenv(name, value)
	}
	s, err := configfile.Load(rules())
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	for _, w := range s.Warnings {
		warned = append(warned, w.Error())
	}
	want := "AGENTPROXY_RATE_LIMIT: is not a setting of agentproxy and has no effect; check its spelling\n" +
		"AGENTPROXY_TRON_XPUP: is not a setting of agentproxy and has no effect; check its spelling"
	if got := strings.Join(warned, "\n"); got != want {
		t.Errorf("warned of\n%s\nwant\n%s", got, want)
	}
}
