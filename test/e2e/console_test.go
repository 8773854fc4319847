package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium on the console of a service.
type browser struct {
	*service
	ctx context.Context
}

// browse starts a browser, of the kind without a window if there is one: that takes half the processor time. The test
// is skipped where there is none; under CI it fails.
func (s *service) browse() *browser {
	s.t.Helper()
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		path, err = exec.LookPath("chromium")
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			s.t.Fatal(err)
		}
		s.t.Skip("there is no chromium: ", err)
	}
	oneBrowser(s.t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-software-rasterizer", true))
	ctx, cancel := chromedp.NewExecAllocator(s.t.Context(), opts...)
	s.t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	s.t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 15*time.Minute)
	s.t.Cleanup(cancel)
	return &browser{s, ctx}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		at, _ := chromedp.Run(b.ctx, chromedp.Location())
		text, _ := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("main")))
		b.t.Fatalf("at %s: %v\n%s", at, err, text)
	}
}

// visit opens a page of the console.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate("http://" + b.api + path))
}

// press clicks an element and waits for one of the page that it leads to.
func (b *browser) press(id, then string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.ID(id)), chromedp.WaitReady(chromedp.ID(then)))
}

// text returns the text of an element. It is read in one step, since pages that update themselves replace
// their elements.
func (b *browser) text(id string) string {
	b.t.Helper()
	b.do(chromedp.WaitReady(chromedp.ID(id)))
	return strings.Join(strings.Fields(evaluate[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`, id))), " ")
}

// evaluate returns the value of an expression on the page.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// scheme sets what the system is set to: light or dark.
func (b *browser) scheme(name string) {
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// scripts turns the scripts of pages on or off.
func (b *browser) scripts(on bool) {
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	}))
}

// TestAPersonUsesTheConsole is a person's way through the console, from the first page to the end of a
// session.
func TestAPersonUsesTheConsole(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DEVCHAIN_BLOCK_MS=300", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	b := s.browse()
	key, _ := s.register("person")

	// By keyboard alone, and without scripts: the field has the focus.
	b.scripts(false)
	b.visit("/console/money")
	for evaluate[string](b, `document.activeElement.id`) != "api_key" {
		b.do(chromedp.Sleep(10 * time.Millisecond)) // the browser sets the focus after the page is loaded
	}
	b.do(chromedp.KeyEvent(key+"\r"), chromedp.WaitReady(chromedp.ID("ledger")))
	if got := b.text("balance"); got != "$10.00" {
		t.Errorf("without scripts the balance is %q", got)
	}
	b.scripts(true)

	b.visit("/console/")
	if got := b.text("active-sessions"); got != "0" {
		t.Errorf("%q sessions are active", got)
	}
	b.visit("/console/sessions")
	b.press("buy", "products")
	b.press("choose-dyn_fast_1", "quote")
	b.do(chromedp.SetValue(chromedp.ID("traffic_gb"), "0.5"))
	b.press("quote", "quote-cost")
	if cost, left := b.text("quote-cost"), b.text("quote-balance"); cost != "$0.20" || left != "$9.80" {
		t.Errorf("the quote is %s, and leaves %s", cost, left)
	}
	b.do(chromedp.DoubleClick(chromedp.ID("confirm")), chromedp.WaitReady(chromedp.ID("connect")))
	if n := evaluate[string](b, `location.pathname`); !strings.HasPrefix(n, "/console/sessions/sess_") {
		t.Fatalf("the purchase leads to %s", n)
	}
	page := evaluate[string](b, `location.pathname`)

	// Snippets are tabs that remember the last one, and times are those of the reader.
	b.press("tab-client-go", "snippet-go")
	b.visit(page)
	if got := evaluate[string](b, `[...document.querySelectorAll("[data-tab]")].filter(p => p.open).map(p => p.dataset.tab).join()`); got != "go" {
		t.Errorf("after a visit the tab %q is open", got)
	}
	if got := evaluate[string](b, `document.querySelector("time").title`); !strings.HasSuffix(got, " UTC") || !strings.Contains(got, "·") {
		t.Errorf("the title of a time is %q", got)
	}

	// What is copied from the page connects, and a failure is shown with its reason.
	b.press("reveal", "hide")
	proxy := b.text("proxy-0")
	first := s.exitOf(proxy)
	if status, _ := through(t, proxy, "http://no-such-host.invalid/"); status != 502 {
		t.Errorf("a host that does not exist answers %d", status)
	}
	within(t, soon, "the failure is listed", func() bool {
		b.visit("/console/")
		return strings.Contains(b.text("failure-list"), "no-such-host.invalid")
	})
	if got := b.text("failure-list"); !strings.Contains(got, "TARGET_UNREACHABLE") || !strings.Contains(got, "Check the spelling") {
		t.Errorf("the failures are %q", got)
	}
	if n := evaluate[int](b, `document.querySelectorAll("canvas").length`); n != 4 {
		t.Errorf("the page has %d charts", n)
	}

	b.visit(page)
	b.press("rotate", "notice")
	b.press("reveal", "hide")
	if again := s.exitOf(b.text("proxy-0")); again == first {
		t.Errorf("after the rotation the exit is still %s", again)
	}
	b.visit("/console/sessions")
	if n := evaluate[int](b, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("the double click bought %d sessions", n)
	}

	b.visit("/console/money")
	b.do(chromedp.SendKeys(chromedp.ID("amount"), "12.5"))
	b.press("recharge", "address")
	within(t, soon, "the code is at least 200 pixels wide", func() bool {
		return evaluate[int](b, `document.querySelector("img.qr").naturalWidth`) >= 200
	})
	s.object("devchain", "send", "--to", b.text("address"), "--amount", "12.5")
	within(t, soon, "the page shows that the order is paid", func() bool { return b.text("state") == "paid" })

	b.visit(page)
	b.press("end", "confirm")
	b.press("confirm", "status")
	if got := b.text("status"); !strings.HasPrefix(got, "terminated") {
		t.Errorf("the session is %s", got)
	}
	b.looks(page)

	// The reference shows which calls take a credential.
	b.do(chromedp.Navigate("http://"+b.api+"/docs"), chromedp.WaitReady(chromedp.ID("rotate-session")))
	for operation, want := range map[string]bool{"rotate-session": true, "register": false} {
		text := evaluate[string](b, fmt.Sprintf(`(() => { const d = document.querySelector("#%s details"); d.open = true;
			d.dispatchEvent(new Event("toggle")); return d.textContent })()`, operation))
		if strings.Contains(text, "X-API-Key or Bearer") != want || strings.Contains(text, "-H 'X-API-Key: ") != want ||
			strings.Contains(text, "no credential") == want {
			t.Errorf("the reference of %s has a credential: %v, want %v:\n%.300s", operation, !want, want, text)
		}
	}

	b.visit("/console/")
	if got := b.text("balance"); got != "$"+s.balance(key) && got != "$"+s.balance(key)+"0" {
		t.Errorf("the balance is %s, the API has %s", got, s.balance(key))
	}
	b.press("sign-out", "api_key")
	b.visit("/console/access")
	if at := evaluate[string](b, `location.pathname`); at != "/console/sign-in" {
		t.Errorf("after signing out the console shows %s", at)
	}
}

// looks checks how the pages of an agent look.
func (b *browser) looks(page string) {
	b.suits("/console/", "/console/sessions", page, "/console/sessions/new", "/console/sessions/new?product_no=sta_isp_1",
		"/console/sessions/quote?product_no=dyn_fast_1&traffic_gb=1", page+"/end", "/console/money", "/console/access",
		"/console/access/rotate-secret",
		"/console/access/keys/new", "/console/access/keys", b.keyPage(), "/console/register", page+"/settings", page+"/traffic?traffic_gb=1")
}

// keyPage makes a key with limits and returns its page.
func (b *browser) keyPage() string {
	b.t.Helper()
	b.visit("/console/access/keys/new")
	evaluate[bool](b, `(() => {
		document.getElementById("name").value = "child";
		document.getElementById("total").value = "2";
		return document.querySelector("[name=permission]").checked = document.querySelector("[name=product]").checked = true;
	})()`)
	b.press("create-key", "shown-once")
	b.visit("/console/access/keys")
	if n := evaluate[int](b, `document.querySelectorAll("canvas").length`); n != 1 {
		b.t.Errorf("the page has %d charts", n)
	}
	return evaluate[string](b, `new URL(document.querySelector("#key-spending tbody a").href).pathname`)
}

// suits checks each page in both widths and both settings: nothing is wider than the window, nothing
// came from elsewhere or was blocked, texts have enough contrast, and the Tab key goes through it. A page is
// loaded once for each width, in another setting each time, and has to follow when the setting changes.
func (b *browser) suits(paths ...string) {
	b.t.Helper()
	for _, path := range paths {
		b.looksWell(path, 360, "light", "dark")
		b.looksWell(path, 1280, "dark", "light")
		for _, from := range evaluate[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name)`) {
			if u, err := url.Parse(from); err != nil || u.Host != b.api {
				b.t.Errorf("%s loads %s", path, from)
			}
		}
		b.walks(path)
	}
}

// looksWell loads a page in a window of a width, and checks it in each setting.
func (b *browser) looksWell(path string, width int64, schemes ...string) {
	b.t.Helper()
	b.scheme(schemes[0])
	b.do(chromedp.EmulateViewport(width, 800))
	b.visit(path)
	back := ""
	for _, scheme := range schemes {
		b.scheme(scheme)
		if thin := evaluate[[]string](b, squeezed); len(thin) > 0 {
			b.t.Errorf("%s at %d pixels: the captions %q are narrower than their tables", path, width, thin)
		}
		if over := evaluate[[]string](b, wider); len(over) > 0 {
			b.t.Errorf("%s at %d pixels: %q are wider than the window", path, width, over)
		}
		if now := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`); now == back {
			b.t.Errorf("%s has the background %s in both settings", path, now)
		} else {
			back = now
		}
		if pale := evaluate[[]string](b, contrast); len(pale) > 0 {
			b.t.Errorf("%s, %s: too little contrast of %q", path, scheme, pale)
		}
	}
}

// wider lists the elements that make a page scroll sideways.
const wider = `document.documentElement.scrollWidth <= innerWidth ? [] :
	[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + " " + e.id)`

// squeezed lists captions of tables that have less than the width of the table.
const squeezed = `[...document.querySelectorAll(".stack caption")].filter((e) => e.checkVisibility() &&
	e.offsetWidth < e.closest(".stack").clientWidth - 2).map((e) => e.textContent)`

// contrast lists texts whose contrast is below 4.5:1, as WCAG 2 computes it.
const contrast = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m; };
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
	const pale = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || e.closest("noscript, .u-legend, .unseen, .skip, option")) continue;
		let back = null;
		for (let at = e; at && !back; at = at.parentElement) back = parse(getComputedStyle(at).backgroundColor);
		const [a, b] = [light(parse(getComputedStyle(e).color)), light(back || [255, 255, 255])].sort((x, y) => y - x);
		if ((a + .05) / (b + .05) < 4.5) pale.push(e.tagName + " " + e.textContent.trim().slice(0, 30));
	}
	return pale;
})()`
