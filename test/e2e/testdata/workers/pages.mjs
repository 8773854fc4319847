// One Chromium with a context, and a proxy user name, for each worker: node pages.mjs FOLDER, where
// playwright-core is. The work is JSON on standard input: {target, proxy, workers: {name: {username, password}}, pages}.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const { chromium } = createRequire(process.argv[2] + "/package.json")("playwright-core");
const { target, proxy, workers, pages } = JSON.parse(await text(process.stdin));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [], // Chromium refuses its sandbox to root
});
const visit = async ([name, credential]) => {
  const context = await browser.newContext({ proxy: { server: proxy, ...credential } });
  const page = await context.newPage();
  for (let n = 0; n < pages; n++) {
    const answer = await page.goto(`${target}/${name}/page?n=${n}`, { timeout: 120_000 });
    if (answer.status() !== 200) throw new Error(`${name}: ${answer.status()} ${await answer.text()}`);
    await page.waitForFunction(() => window.done, null, { timeout: 120_000 });
  }
  await context.close();
};
try {
  // A few at a time: what is tested is that they do not mix, not how many a machine holds.
  const waiting = Object.entries(workers);
  await Promise.all(Array.from({ length: 10 }, async () => {
    for (let next; (next = waiting.shift()); ) await visit(next);
  }));
} finally {
  await browser.close();
}
