// A page in Chromium, driven by Puppeteer. The flag names the proxy, page.authenticate answers its 407.
import puppeteer from "puppeteer-core";
import { target, withSession } from "./session.mjs";

await withSession("Puppeteer example", async ({ proxy: { host, port, username, password } }) => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      `--proxy-server=http://${host}:${port}`,
      "--proxy-bypass-list=<-loopback>", // a target on this host goes through the proxy too
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), // Chromium refuses its sandbox to root
    ],
  });
  try {
    const page = await browser.newPage();
    await page.authenticate({ username, password });
    const response = await page.goto(target);
    console.log(response.status(), (await response.text()).slice(0, 200));
  } finally {
    await browser.close();
  }
});
