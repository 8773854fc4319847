package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/test/campaign"
)

// firefoxScript opens a page by a proxy with TLS, which Firefox takes from a PAC file alone, and prints its text.
const firefoxScript = `
import puppeteer from 'puppeteer-core';
const proxy = new URL(process.env.PROXY);
const browser = await puppeteer.launch({
  browser: 'firefox', executablePath: process.env.FIREFOX, headless: true, acceptInsecureCerts: true, protocolTimeout: 0,
  extraPrefsFirefox: {
    'network.proxy.type': 2, 'network.proxy.allow_hijacking_localhost': true,
    'network.proxy.autoconfig_url': ` + "`data:text/plain,function FindProxyForURL() { return \"HTTPS ${proxy.host}\" }`" + `,
  },
});
try {
  const page = await browser.newPage();
  await page.authenticate({username: decodeURIComponent(proxy.username), password: decodeURIComponent(proxy.password)});
  for (const target of process.env.TARGETS.split(' ')) {
    await page.goto(target, {timeout: 0});
    console.log(await page.evaluate(() => document.documentElement.textContent));
  }
} finally {
  await browser.close();
}
`

// Firefox goes through the gateway by TLS, to targets with TLS and without.
func TestFirefoxConnectsByTLS(t *testing.T) {
	t.Parallel()
	if campaign.Rounds(0, 1) == 0 {
		t.Skip("a campaign has this browser")
	}
	firefox, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Skipf("Firefox is missing: %v", err)
	}
	modules, err := filepath.Abs(examples + "node/node_modules")
	succeeds(t, err)
	if _, err := os.Stat(filepath.Join(modules, "puppeteer-core")); err != nil {
		need(t, "puppeteer-core", err)
	}
	s, file := withCertificate(t, []string{"localhost"}, "AGENTPROXY_GATEWAY_PLAINTEXT=refuse")
	key, _ := s.register("firefox")
	id := s.dynamic(key, "0.1")
	target, _ := secureSite(t, file)
	dir := t.TempDir()
	succeeds(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	script := filepath.Join(dir, "a.mjs")
	succeeds(t, os.WriteFile(script, []byte(firefoxScript), 0o600))
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Env = append(os.Environ(), "FIREFOX="+firefox, "PROXY="+text(s.session(key, id).Proxy.HTTPSURL),
		"TARGETS="+target+" http://"+s.api+"/v1/ip", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"reached from 127.", `"127.`} { // by the exits of the embedded provider
		if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "127.0.0.1\n") {
			t.Errorf("%v, want %s in:\n%s", err, want, out)
		}
	}
}
