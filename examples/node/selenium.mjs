// A page in Chromium, driven by Selenium. Chromium takes no credential with a proxy, and WebDriver has no call that
// answers its 407, so a small extension does.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Builder, By } from "selenium-webdriver";
import chrome from "selenium-webdriver/chrome.js";
import { target, withSession } from "./session.mjs";

/** credentials makes an unpacked extension that answers the proxy's question for a password, and returns its folder. */
async function credentials(username, password) {
  const folder = await mkdtemp(join(tmpdir(), "proxy-credentials-")); // for this user alone
  await writeFile(join(folder, "manifest.json"), JSON.stringify({
    manifest_version: 3,
    name: "proxy credentials",
    version: "1",
    permissions: ["webRequest", "webRequestAuthProvider"],
    host_permissions: ["<all_urls>"],
    background: { service_worker: "worker.js" },
  }));
  await writeFile(join(folder, "worker.js"), `chrome.webRequest.onAuthRequired.addListener(
    ({ isProxy }) => isProxy ? { authCredentials: ${JSON.stringify({ username, password })} } : {},
    { urls: ["<all_urls>"] }, ["blocking"]);
    chrome.tabs.create({});`); // a second tab shows that the extension answers
  return folder;
}

await withSession("Selenium example", async ({ proxy: { host, port, username, password } }) => {
  const extension = await credentials(username, password);
  const options = new chrome.Options()
    .setChromeBinaryPath(process.env.CHROMIUM ?? "/usr/bin/chromium")
    .addArguments("--headless=new", `--load-extension=${extension}`, `--proxy-server=http://${host}:${port}`,
      "--proxy-bypass-list=<-loopback>"); // a target on this host goes through the proxy too
  if (process.getuid?.() === 0) options.addArguments("--no-sandbox"); // Chromium refuses its sandbox to root
  const driver = await new Builder().forBrowser("chrome").setChromeOptions(options)
    .setChromeService(new chrome.ServiceBuilder(process.env.CHROMEDRIVER ?? "/usr/bin/chromedriver")).build();
  try {
    await driver.wait(async () => (await driver.getAllWindowHandles()).length > 1, 10_000);
    await driver.get(target);
    console.log((await driver.findElement(By.css("body")).getText()).slice(0, 200));
  } finally {
    await driver.quit();
    await rm(extension, { recursive: true });
  }
});
