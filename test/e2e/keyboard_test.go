package e2e_test

import (
	"strings"

	"github.com/chromedp/chromedp"
)

// walks goes through the page by the Tab key alone: each link, button and field gets the focus once, shows
// that it has it, and lets it go.
func (b *browser) walks(path string) {
	b.t.Helper()
	n := evaluate[int](b, walkStart)
	b.do(chromedp.KeyEvent(strings.Repeat("\t", n)))
	if bad := evaluate[[]string](b, walkFaults); len(bad) > 0 || n == 0 {
		b.t.Errorf("%s by keyboard: of %d stops are wrong: %q", path, n, bad)
	}
	b.do(chromedp.KeyEvent("\t"))
	if evaluate[bool](b, `document.activeElement === walk.all.at(-1)`) {
		b.t.Errorf("%s: the last element keeps the focus", path)
	}
}

// walkStart counts how often the Tab key is pressed to go through a page, and keeps what gets the focus from
// now on and whether a person sees that. Chromium stops four times in the field of a day: at the month, the
// day, the year and the calendar. A part that is shown only while a menu is open does not count.
const walkStart = `(() => {
	document.activeElement.blur();
	getSelection().removeAllRanges();
	scrollTo(0, 0);
	window.walk = {reached: [], all: [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
		.filter((e) => e.checkVisibility() && !e.disabled)};
	addEventListener("focusin", ({target}) => {
		const style = getComputedStyle(target), box = target.getBoundingClientRect();
		walk.reached.push({target, seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 &&
			box.width > 0 && box.height > 0 && box.left >= 0 && box.right <= innerWidth});
	});
	return walk.all.length + 3 * walk.all.filter((e) => e.type === "date").length;
})()`

// walkFaults lists what did not get the focus exactly once, what got it unseen, and what else got it.
const walkFaults = `(() => {
	const name = (e) => e.tagName + " " + (e.id || e.textContent.trim().slice(0, 30));
	return [...walk.all.filter((e) => walk.reached.filter((r) => r.target === e).length !== 1).map((e) => "not once: " + name(e)),
		...walk.reached.filter((r) => !r.seen).map((r) => "not seen: " + name(r.target)),
		...walk.reached.filter((r) => !walk.all.includes(r.target)).map((r) => "besides: " + name(r.target))];
})()`
