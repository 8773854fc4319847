package connect

import (
	"slices"
	"strings"
)

// Client is a program or library that is configured with a proxy.
type Client struct {
	Name     string
	Language string
	// NoSOCKS explains why the client takes no SOCKS5 proxy with a password; empty: it does. The
	// proxies of the gateway take HTTP on the same port.
	NoSOCKS string
	text    string
}

const noSOCKSPassword = "it takes no SOCKS proxy with a password"

// clients is the table of the clients. Snippet replaces {URL}, {SERVER}, {HOSTPORT}, {USER} and
// {PASSWORD} in a text.
var clients = []Client{
	{"curl", "sh", "", `curl -x '{URL}' https://example.com/`},
	{"requests", "python", "", `import requests
proxy = "{URL}"  # for SOCKS5: pip install requests[socks]
r = requests.get("https://example.com/", proxies={"http": proxy, "https": proxy})`},
	{"httpx", "python", "", `import httpx
with httpx.Client(proxy="{URL}") as c:  # for SOCKS5: pip install httpx[socks]
    r = c.get("https://example.com/")`},
	{"aiohttp", "python", "it takes HTTP proxies alone", `import aiohttp
auth = aiohttp.BasicAuth("{USER}", "{PASSWORD}")
async with aiohttp.ClientSession() as s:
    async with s.get("https://example.com/", proxy="{SERVER}", proxy_auth=auth) as r:
        text = await r.text()`},
	{"undici", "javascript", "ProxyAgent takes HTTP proxies", `import { ProxyAgent, fetch } from "undici";
const dispatcher = new ProxyAgent("{URL}");
const r = await fetch("https://example.com/", { dispatcher });`},
	{"fetch", "sh", "the variables take HTTP proxies", `# Node.js 24 and later; its fetch ignores proxies otherwise
NODE_USE_ENV_PROXY=1 HTTP_PROXY='{URL}' HTTPS_PROXY='{URL}' node app.js`},
	{"axios", "javascript", "proxy takes HTTP proxies", `import axios from "axios";
import { HttpsProxyAgent } from "https-proxy-agent";
const httpsAgent = new HttpsProxyAgent("{URL}");
const r = await axios.get("https://example.com/", { httpsAgent, proxy: false });`},
	{"playwright", "javascript", noSOCKSPassword, `import { chromium } from "playwright";
const browser = await chromium.launch();
const context = await browser.newContext({
  proxy: { server: "{SERVER}", username: "{USER}", password: "{PASSWORD}" },
});`},
	{"puppeteer", "javascript", noSOCKSPassword, `import puppeteer from "puppeteer";
const browser = await puppeteer.launch({ args: ["--proxy-server={HOSTPORT}"] });
const page = await browser.newPage();
await page.authenticate({ username: "{USER}", password: "{PASSWORD}" });`},
	{"selenium", "python", noSOCKSPassword, `# Selenium gives a proxy no password: use a local proxy that adds it
from selenium import webdriver
o = webdriver.ChromeOptions()
o.add_argument("--proxy-server=http://127.0.0.1:PORT")  # forwards to {HOSTPORT} as {USER}:{PASSWORD}
driver = webdriver.Chrome(options=o)`},
	{"go", "go", "", `proxy, _ := url.Parse("{URL}")
client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
r, err := client.Get("https://example.com/")`},
	{"env", "sh", "", `export HTTP_PROXY='{URL}' HTTPS_PROXY='{URL}' ALL_PROXY='{URL}'
export http_proxy='{URL}' https_proxy='{URL}' all_proxy='{URL}'`},
}

// Names returns the names of the clients, in the order of the documentation.
func Names() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.Name
	}
	return names
}

// Find returns a client by its name.
func Find(name string) (Client, bool) {
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return clients[i], true
}

// Snippet returns the configuration of the client for a proxy. The password is written as it is, so
// that a masked proxy gives a masked text.
func (c Client) Snippet(p Proxy) string {
	return strings.NewReplacer("{URL}", p.URL(), "{SERVER}", p.Protocol+"://"+p.Address(), "{HOSTPORT}", p.Address(),
		"{USER}", p.Username, "{PASSWORD}", p.Password).Replace(c.text)
}
