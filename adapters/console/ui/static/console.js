"use strict";
// What the pages gain from scripts: charts, buttons that copy, and forms that are sent once.
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

  const bytes = (n) => {
    if (n == null) return "–";
    for (const [name, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
      if (Math.abs(n) >= size) return parseFloat((n / size).toFixed(2)) + " " + name;
    }
    return n + " B";
  };
  const usd = (n) => n == null ? "–" : "$" + (n !== 0 && Math.abs(n) < 0.01 ? n.toPrecision(2) : n.toFixed(2));

  const draw = (el) => {
    const c = JSON.parse(el.dataset.chart);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const show = c.unit === "usd" ? usd : bytes;
    const step = c.times.length > 1 ? c.times[1] - c.times[0] : 3600;
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const two = (n) => String(n).padStart(2, "0");
    const tick = (t) => {
      const d = new Date(t * 1e3), day = two(d.getUTCMonth() + 1) + "-" + two(d.getUTCDate());
      return step >= 86400 || d.getUTCHours() === 0 ? day : two(d.getUTCHours()) + ":" + two(d.getUTCMinutes());
    };
    const zone = (t) => uPlot.tzDate(new Date(t * 1e3), "Etc/UTC");
    const width = Math.max(el.clientWidth, 200);
    el.replaceChildren();
    new uPlot({
      width, height: 170, tzDate: zone, cursor: { y: false },
      scales: { x: { range: (u, from, to) => [from - step / 2, to + step / 2] }, y: { range: (u, from, to) => [0, to > 0 ? to * 1.1 : c.unit === "usd" ? 1 : 1e3] } },
      axes: [{ ...axis, size: 30, values: (u, list) => list.map(tick) }, { ...axis, size: 70, values: (u, list) => list.map(show) }],
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...c.names.map((label, i) => ({
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
