// A page in Chromium, driven by Playwright. The credential is given apart: inside `server` it is dropped.
import { chromium } from "playwright-core";
import { target, withSession } from "./session.mjs";

await withSession("Playwright example", async ({ proxy: { host, port, username, password } }) => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [], // Chromium refuses its sandbox to root
    proxy: { server: `http://${host}:${port}`, username, password },
  });
  try {
    const page = await browser.newPage();
    const response = await page.goto(target);
    console.log(response.status(), (await page.innerText("body")).slice(0, 200));
  } finally {
    await browser.close();
  }
});
