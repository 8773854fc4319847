package configfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/domain"
)

// A published test key (BIP-39 "abandon … about"): never one for money.
const xpub = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"

func TestWithoutAnAccountKeyPaymentsComeFromTheDevelopmentChain(t *testing.T) {
	clean(t)
	s, err := configfile.Load(rules())
	if err != nil || s.Payments.AccountKey != "" || s.Payments.DevchainBlock != time.Second {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
	t.Setenv("AGENTPROXY_DEVCHAIN_BLOCK_MS", "50")
	if s, err = configfile.Load(rules()); err != nil || s.Payments.DevchainBlock != 50*time.Millisecond {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
}

func TestAnAccountKeyMeansMainnetByDefault(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	s, err := configfile.Load(rules())
	if err != nil || s.Payments.AccountKey == "" || s.Payments.Network != "tron-mainnet" ||
		s.Payments.BaseURL != "https://api.trongrid.io" || s.Payments.Contract != "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t" {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
	for _, local := range []string{"http://127.0.0.1:8090", "http://[::1]:8090", "http://localhost:8090", "https://203.0.113.7"} {
		t.Setenv("AGENTPROXY_TRON_API_URL", local)
		if s, err = configfile.Load(rules()); err != nil || s.Payments.BaseURL != local {
			t.Errorf("%s is refused: %v", local, err)
		}
	}
	t.Setenv("AGENTPROXY_TRON_NETWORK", "nile")
	t.Setenv("AGENTPROXY_TRON_CONTRACT", "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj")
	if s, err = configfile.Load(rules()); err != nil || s.Payments.Network != "tron-nile" || s.Payments.Contract != "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj" {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
}

func TestPaymentsAreOffOutsideDevelopmentMode(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_DEV", "false")
	s, err := configfile.Load(rules())
	if err != nil || !s.Payments.Off || !warned(s, "AGENTPROXY_TRON_XPUB") {
		t.Errorf("payments are %+v, warnings %v, %v", s.Payments, s.Warnings, err)
	}
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	if s, err = configfile.Load(rules()); err != nil || s.Payments.Off || warned(s, "AGENTPROXY_TRON_XPUB") || !warned(s, "AGENTPROXY_TRON_API_KEY") {
		t.Errorf("with a key payments are %+v, warnings %v, %v", s.Payments, s.Warnings, err)
	}
	t.Setenv("AGENTPROXY_TRON_API_KEY", "k")
	if s, err = configfile.Load(rules()); err != nil || warned(s, "AGENTPROXY_TRON_API_KEY") {
		t.Errorf("warnings are %v, %v", s.Warnings, err)
	}
}

func warned(s configfile.Settings, name string) bool {
	return slices.ContainsFunc(s.Payments.Warnings(), func(f configfile.Fault) bool { return f.Path == name })
}

func TestThePaymentSource(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	t.Setenv("AGENTPROXY_TRON_SOURCE", "jsonrpc")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_TRON_API_URL") {
		t.Errorf("a node without an address: %v", err)
	}
	t.Setenv("AGENTPROXY_TRON_API_URL", "https://node.example")
	if s, err := configfile.Load(rules()); err != nil || !s.Payments.JSONRPC || warned(s, "AGENTPROXY_TRON_API_KEY") {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
	t.Setenv("AGENTPROXY_TRON_SOURCE", "carrier pigeon")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_TRON_SOURCE") {
		t.Errorf("another source: %v", err)
	}
}

func TestTheSecondNode(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	t.Setenv("AGENTPROXY_TRON_WITNESS_URL", "https://two.example/key")
	s, err := configfile.Load(rules())
	if err != nil || s.Payments.WitnessURL != "https://two.example/key" || s.Payments.WitnessAbove != 1000*domain.Dollar {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
	t.Setenv("AGENTPROXY_TRON_WITNESS_ABOVE", "0")
	if s, err = configfile.Load(rules()); err != nil || s.Payments.WitnessAbove != 0 {
		t.Errorf("payments are %+v, %v", s.Payments, err)
	}
}

func TestPaymentsThatCannotBeAreRefused(t *testing.T) {
	const private = "xprv9s21ZrQH143K3GJpoapnV8SFfukcVBSfeCficPSGfubmSFDxo1kuHnLisriDvSnRRuL2Qrg5ggqHKNVpxR86QEC8w35uxmGoggxtQTPvfUu"
	for name, c := range map[string]struct{ env, want []string }{
		"a private key":            {[]string{"TRON_XPUB=" + private}, []string{"TRON_XPUB"}},
		"another token":            {[]string{"TRON_XPUB=" + xpub, "TRON_CONTRACT=TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs"}, []string{"TRON_CONTRACT"}},
		"a contract in lower case": {[]string{"TRON_XPUB=" + xpub, "TRON_CONTRACT=tr7nhqjekqxgtci8q8zy4pl8otszgjlj6t"}, []string{"TRON_CONTRACT"}},
		"both chains":              {[]string{"TRON_XPUB=" + xpub, "DEVCHAIN_BLOCK_MS=1000"}, []string{"DEVCHAIN_BLOCK_MS"}},
		"an unknown network":       {[]string{"TRON_XPUB=" + xpub, "TRON_NETWORK=ropsten"}, []string{"TRON_NETWORK"}},
		"no network at all":        {[]string{"TRON_NETWORK=nile", "TRON_API_URL=https://example.com"}, []string{"TRON_NETWORK", "TRON_API_URL"}},
		"a URL with a password":    {[]string{"TRON_XPUB=" + xpub, "TRON_API_URL=https://me:secret@example.com"}, []string{"TRON_API_URL"}},
		"a source over http":       {[]string{"TRON_XPUB=" + xpub, "TRON_API_URL=http://203.0.113.7:8090"}, []string{"TRON_API_URL"}},
		"one by name over http":    {[]string{"TRON_XPUB=" + xpub, "TRON_API_URL=http://node.internal"}, []string{"TRON_API_URL"}},
		"a witness over http":      {[]string{"TRON_XPUB=" + xpub, "TRON_WITNESS_URL=http://node.internal"}, []string{"TRON_WITNESS_URL"}},
		"itself as the witness":    {[]string{"TRON_XPUB=" + xpub, "TRON_WITNESS_URL=https://api.trongrid.io"}, []string{"TRON_WITNESS_URL"}},
		"an amount and no witness": {[]string{"TRON_XPUB=" + xpub, "TRON_WITNESS_ABOVE=5"}, []string{"TRON_WITNESS_ABOVE"}},
		"a negative amount":        {[]string{"TRON_XPUB=" + xpub, "TRON_WITNESS_URL=https://two.example", "TRON_WITNESS_ABOVE=-1"}, []string{"TRON_WITNESS_ABOVE"}},
		"blocks too fast":          {[]string{"DEVCHAIN_BLOCK_MS=1"}, []string{"DEVCHAIN_BLOCK_MS"}},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for _, e := range c.env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv("AGENTPROXY_"+name, value)
			}
			_, err := configfile.Load(rules())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), "AGENTPROXY_"+want+":") {
					t.Errorf("the error does not name %s: %v", want, err)
				}
			}
			if err != nil && (strings.Contains(err.Error(), private[:20]) || strings.Contains(err.Error(), "secret@")) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}
