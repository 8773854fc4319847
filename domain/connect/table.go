package connect

const (
	noSOCKSPassword = "it takes no SOCKS proxy with a password"
	noTLSInTLS      = "asyncio before Python 3.11 has no TLS inside TLS"
	byForward       = "apx forward, which adds the password, reaches the proxy by TLS itself"
	notInVariables  = "many programs that read the variables take no https:// there"
	olderHTTPX      = "httpx before 0.25 has no TLS inside TLS"
)

// clients is the table of the clients. Snippet replaces in one: {URL}, {SERVER}, {HOSTPORT}, {USER}
// and {PASSWORD}; in many: {BEFORE} and {AFTER}, which are the address around the name of a worker,
// {BASE}, which is the user name before it, and the names themselves as {WORDS} of a shell or {LIST}.
// {USER}, {PASSWORD}, {BASE} and what {LIST} holds are quoted as JSON, which Python, JavaScript and Go read.
//
// No snippet may connect by this host's own address. The environment can exclude hosts from proxies (NO_PROXY,
// which curl applies to -x too), Chromium excludes loopback, and Node's fetch ignores proxies without an option,
// which older versions refuse.
var clients = []Client{
	{"curl", "sh", "", "", `curl --noproxy '' -x '{URL}' https://example.com/`, `for name in {WORDS}; do
  curl --noproxy '' -x "{BEFORE}${name}{AFTER}" https://example.com/
done`},
	{"requests", "python", "", "", `import requests
proxy = "{URL}"  # for SOCKS5: pip install requests[socks]
r = requests.get("https://example.com/", proxies={"http": proxy, "https": proxy})
print(r.status_code, r.text)`, `import requests
for name in [{LIST}]:
    proxy = "{BEFORE}" + name + "{AFTER}"  # for SOCKS5: pip install requests[socks]
    r = requests.get("https://example.com/", proxies={"http": proxy, "https": proxy})
    print(name, r.status_code, r.text)`},
	{"httpx", "python", "", olderHTTPX, `import httpx
proxy = httpx.Proxy("{URL}")  # for SOCKS5: pip install httpx[socks]
with httpx.Client(transport=httpx.HTTPTransport(proxy=proxy)) as c:
    r = c.get("https://example.com/")
    print(r.status_code, r.text)`, `import httpx
for name in [{LIST}]:
    proxy = httpx.Proxy("{BEFORE}" + name + "{AFTER}")  # for SOCKS5: pip install httpx[socks]
    with httpx.Client(transport=httpx.HTTPTransport(proxy=proxy)) as c:
        r = c.get("https://example.com/")
        print(name, r.status_code, r.text)`},
	{"aiohttp", "python", "it takes HTTP proxies alone", noTLSInTLS, `import aiohttp, asyncio
async def main():
    auth = aiohttp.BasicAuth({USER}, {PASSWORD})
    async with aiohttp.ClientSession() as s:
        async with s.get("https://example.com/", proxy="{SERVER}", proxy_auth=auth) as r:
            print(r.status, await r.text())
asyncio.run(main())`, `import aiohttp, asyncio
async def fetch(name):
    auth = aiohttp.BasicAuth({BASE} + name, {PASSWORD})
    async with aiohttp.ClientSession() as s:
        async with s.get("https://example.com/", proxy="{SERVER}", proxy_auth=auth) as r:
            print(name, r.status, await r.text())
async def main():
    await asyncio.gather(*(fetch(name) for name in [{LIST}]))
asyncio.run(main())`},
	{"undici", "javascript", "ProxyAgent takes HTTP proxies", "", `import { ProxyAgent, fetch } from "undici";
const dispatcher = new ProxyAgent("{URL}");
const r = await fetch("https://example.com/", { dispatcher });
console.log(r.status, await r.text());`, `import { ProxyAgent, fetch } from "undici";
for (const name of [{LIST}]) {
  const dispatcher = new ProxyAgent("{BEFORE}" + name + "{AFTER}");
  const r = await fetch("https://example.com/", { dispatcher });
  console.log(name, r.status, await r.text());
}`},
	{"fetch", "sh", "the variables take HTTP proxies", "", `# Node.js 22.21, 24.5 and later; older ones stop here
http_proxy='{URL}' https_proxy='{URL}' NO_PROXY= no_proxy= node --use-env-proxy -e '
fetch("https://example.com/").then(async r => console.log(r.status, await r.text()))'`,
		`# Node.js 22.21, 24.5 and later: the fetch of older ones ignores proxies. A process a worker
for name in {WORDS}; do
  http_proxy="{BEFORE}${name}{AFTER}" https_proxy="{BEFORE}${name}{AFTER}" NO_PROXY= no_proxy= node --use-env-proxy -e '
  fetch("https://example.com/").then(async r => console.log(r.status, await r.text()))'
done`},
	{"axios", "javascript", "proxy takes HTTP proxies", "", `import axios from "axios";
import { HttpsProxyAgent } from "https-proxy-agent";
const agent = new HttpsProxyAgent("{URL}");
const r = await axios.get("https://example.com/", { httpAgent: agent, httpsAgent: agent, proxy: false });
console.log(r.status, r.data);`, `import axios from "axios";
import { HttpsProxyAgent } from "https-proxy-agent";
for (const name of [{LIST}]) {
  const agent = new HttpsProxyAgent("{BEFORE}" + name + "{AFTER}");
  const r = await axios.get("https://example.com/", { httpAgent: agent, httpsAgent: agent, proxy: false });
  console.log(name, r.status, r.data);
}`},
	{"playwright", "javascript", noSOCKSPassword, "", `import { chromium } from "playwright";
const browser = await chromium.launch();
const context = await browser.newContext({
  proxy: { server: "{SERVER}", username: {USER}, password: {PASSWORD} },{PASSPORT}
});
const page = await context.newPage();
await page.goto("https://example.com/");
console.log(await page.title());
await browser.close();`, `import { chromium } from "playwright";
const browser = await chromium.launch(); // Firefox mixes up the credentials of its contexts
for (const name of [{LIST}]) {
  const context = await browser.newContext({
    proxy: { server: "{SERVER}", username: {BASE} + name, password: {PASSWORD} },
  });
  const page = await context.newPage();
  await page.goto("https://example.com/");
  console.log(name, await page.title());
}
await browser.close();`},
	{"puppeteer", "javascript", noSOCKSPassword, "", `import puppeteer from "puppeteer";
const browser = await puppeteer.launch({ args: ["--proxy-server={SERVER}", "--proxy-bypass-list=<-loopback>"] });
const page = await browser.newPage();
await page.authenticate({ username: {USER}, password: {PASSWORD} });{PASSPORT}
await page.goto("https://example.com/");
console.log(await page.title());
await browser.close();`, `import puppeteer from "puppeteer";
for (const name of [{LIST}]) { // one browser for each worker
  const browser = await puppeteer.launch({ args: ["--proxy-server={SERVER}", "--proxy-bypass-list=<-loopback>"] });
  const page = await browser.newPage();
  await page.authenticate({ username: {BASE} + name, password: {PASSWORD} });
  await page.goto("https://example.com/");
  console.log(name, await page.title());
  await browser.close();
}`},
	{"selenium", "python", noSOCKSPassword, byForward, `# Selenium gives a proxy no password: a local proxy adds it.
# Start it first, and leave it running:
#   apx forward {SESSION} --listen 127.0.0.1:8899    # to {HOSTPORT}
from selenium import webdriver
o = webdriver.ChromeOptions()
o.add_argument("--proxy-server=http://127.0.0.1:8899")
o.add_argument("--proxy-bypass-list=<-loopback>")
driver = webdriver.Chrome(options=o){PASSPORT}
driver.get("https://example.com/")
print(driver.title)
driver.quit()`, `# Selenium gives a proxy no password: local proxies add it.
# Start them first, and leave them running:
#   port=8900; for name in {WORDS}; do
#     apx forward {SESSION} --worker $name --listen 127.0.0.1:$port & port=$((port+1))
#   done    # to {HOSTPORT}
from selenium import webdriver
for n, name in enumerate([{LIST}]):
    o = webdriver.ChromeOptions()
    o.add_argument("--proxy-server=http://127.0.0.1:" + str(8900 + n))
    o.add_argument("--proxy-bypass-list=<-loopback>")
    driver = webdriver.Chrome(options=o)
    driver.get("https://example.com/")
    print(name, driver.title)
    driver.quit()`},
	{"go", "go", "", "", `package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

func main() {
	proxy, err := url.Parse("{URL}")
	if err != nil {
		panic(err)
	}
	h1 := &tls.Config{NextProtos: []string{"http/1.1"}} // Go cannot use the HTTP/2 of a proxy
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: h1}}
	r, err := client.Get("https://example.com/")
	if err != nil {
		panic(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, string(body), err)
}`, `package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

func main() {
	for _, name := range []string{{LIST}} {
		proxy, err := url.Parse("{BEFORE}" + name + "{AFTER}")
		if err != nil {
			panic(err)
		}
		h1 := &tls.Config{NextProtos: []string{"http/1.1"}} // Go cannot use the HTTP/2 of a proxy
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: h1}}
		r, err := client.Get("https://example.com/")
		if err != nil {
			panic(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		fmt.Println(name, r.StatusCode, string(body), err)
	}
}`},
	{"env", "sh", "", notInVariables, `export HTTP_PROXY='{URL}' HTTPS_PROXY='{URL}' ALL_PROXY='{URL}'
export http_proxy='{URL}' https_proxy='{URL}' all_proxy='{URL}'
export NO_PROXY= no_proxy= NODE_USE_ENV_PROXY=1`, `use_worker() { # name, one of: {WORDS}
  export HTTP_PROXY="{BEFORE}${1}{AFTER}"
  export HTTPS_PROXY="$HTTP_PROXY" ALL_PROXY="$HTTP_PROXY"
  export http_proxy="$HTTP_PROXY" https_proxy="$HTTP_PROXY" all_proxy="$HTTP_PROXY"
  export NO_PROXY= no_proxy= NODE_USE_ENV_PROXY=1
}`},
}
