"use strict";
// What the pages gain from scripts: charts, buttons that copy, forms that are sent once, times in the zone of the
// reader, and tabs.
document.documentElement.classList.add("js");

(() => {
  const say = (text) => { document.getElementById("said").textContent = text; };

  // A form that was sent is not sent again before the answer came.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    if (e.target.dataset.sent) e.preventDefault();
    e.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const f of document.querySelectorAll("form[data-sent]")) delete f.dataset.sent;
  });

  // data-copy is the id of the element whose text is copied.
  document.addEventListener("click", async (e) => {
    const button = e.target.closest("[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(from);
      const chosen = getSelection();
      chosen.removeAllRanges();
      chosen.addRange(range);
      if (!document.execCommand("copy")) { say("Press Ctrl+C to copy"); return; }
    }
    const before = button.textContent;
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => { button.textContent = before; }, 1500);
  });

  // Times are written in UTC. They are shown in the zone of the reader, with how long ago they are as the title.
  const two = (n) => String(n).padStart(2, "0");
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const ago = (d) => {
    const seconds = (d - Date.now()) / 1e3;
    for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
      if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
    }
    return relative.format(Math.trunc(seconds), "second");
  };
  const localize = () => {
    const all = document.querySelectorAll("time[datetime]:not([data-local])");
    for (const el of all) {
      const d = new Date(el.dateTime), utc = el.textContent;
      if (isNaN(d)) continue;
      el.dataset.local = "yes";
      el.textContent = d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) + " " +
        two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
      el.title = ago(d) + " · " + utc;
    }
    const zone = document.getElementById("zone");
    if (all.length && zone.hidden) {
      zone.textContent = "Times are in your zone, " + Intl.DateTimeFormat().resolvedOptions().timeZone + ".";
      zone.hidden = false;
    }
  };

  // What is folded one below the other becomes tabs; the one that was chosen last is open. data-tabs names the choice.
  const remember = (key, value) => { try { localStorage.setItem(key, value); } catch { /* it is not kept */ } };
  const remembered = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const tabs = () => {
    for (const group of document.querySelectorAll("[data-tabs]:not([data-ready])")) {
      group.dataset.ready = "yes";
      const key = "tab-" + group.dataset.tabs, panels = [...group.querySelectorAll("[data-tab]")];
      const list = document.createElement("div");
      list.className = "tablist";
      list.setAttribute("role", "tablist");
      const choose = (name) => {
        panels.forEach((p, i) => {
          const on = p.dataset.tab === name;
          p.open = on;
          list.children[i].setAttribute("aria-selected", on);
          list.children[i].tabIndex = on ? 0 : -1;
        });
      };
      panels.forEach((p, i) => {
        const b = document.createElement("button");
        b.type = "button";
        b.className = "quiet";
        b.id = key + "-" + p.dataset.tab;
        b.textContent = p.dataset.tab;
        b.setAttribute("role", "tab");
        b.addEventListener("click", () => { choose(p.dataset.tab); remember(key, p.dataset.tab); });
        b.addEventListener("keydown", (e) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
          if (!step) return;
          const next = list.children[(i + step + panels.length) % panels.length];
          next.focus();
          next.click();
        });
        p.setAttribute("role", "tabpanel");
        p.setAttribute("aria-labelledby", b.id);
        list.append(b);
      });
      group.prepend(list);
      const names = panels.map((p) => p.dataset.tab), last = remembered(key);
      choose(names.includes(last) ? last : names[0]);
    }
  };
  const enrich = () => { localize(); tabs(); };
  enrich();
  new MutationObserver(enrich).observe(document.body, { childList: true, subtree: true });

  const bytes = (n) => {
    if (n == null) return "–";
    for (const [name, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
      if (Math.abs(n) >= size) return parseFloat((n / size).toFixed(2)) + " " + name;
    }
    return n + " B";
  };
  const usd = (n) => n == null ? "–" : "$" + n.toFixed(6).replace(/(\.\d\d\d*?)0+$/, "$1");

  const draw = (el) => {
    const c = JSON.parse(el.dataset.chart);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const show = { usd, count: (n) => n == null ? "–" : String(n) }[c.unit] || bytes;
    const names = c.labels, short = (s) => s && s.length > 14 ? s.slice(0, 13) + "…" : s || "";
    const step = names ? 1 : c.times.length > 1 ? c.times[1] - c.times[0] : 3600;
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const tick = (t) => {
      const d = new Date(t * 1e3), day = two(d.getUTCMonth() + 1) + "-" + two(d.getUTCDate());
      return step >= 86400 || d.getUTCHours() === 0 ? day : two(d.getUTCHours()) + ":" + two(d.getUTCMinutes());
    };
    const zone = (t) => uPlot.tzDate(new Date(t * 1e3), "Etc/UTC");
    const x = names ? { splits: () => c.times, values: (u, list) => list.map((i) => short(names[i])), ...(names.length > 4 && { rotate: -40, size: 90 }) } :
      { values: (u, list) => list.map(tick) };
    const width = Math.max(el.clientWidth, 200);
    el.replaceChildren();
    new uPlot({
      width, height: names && names.length > 4 ? 230 : 170, tzDate: zone, cursor: { y: false },
      scales: { x: { time: !names, range: (u, from, to) => [from - step / 2, to + step / 2] }, y: { range: (u, from, to) => [0, to > 0 ? to * 1.1 : { usd: 0.01, count: 1 }[c.unit] || 1e3] } },
      axes: [{ ...axis, size: 30, ...x }, { ...axis, size: 70, values: (u, list) => list.map(show) }],
      series: [names ? { label: "Key", value: (u, i) => names[i] || "–" } : { label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...c.names.map((label, i) => ({
        label, stroke: colour("--plot-" + (i + 1)), fill: colour("--plot-" + (i + 1)) + "66", width: 1,
        paths: uPlot.paths.bars({ size: [0.8, 60] }), points: { show: false }, value: (u, v) => show(v),
      }))],
    }, [c.times, ...c.values], el);
  };
  const drawAll = () => { for (const el of document.querySelectorAll("[data-chart]")) draw(el); };
  drawAll();
  let wait;
  window.addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(drawAll, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
