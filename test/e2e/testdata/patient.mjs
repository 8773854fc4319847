// Gives the browsers of Playwright and Puppeteer, and their pages, the time that a machine with much else to do
// needs. For NODE_OPTIONS=--import of programs that keep to the 30 s which are the default; NODE_MODULES is where
// the packages are.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const patience = 300_000; // milliseconds

for (const [name, drive] of [["playwright-core", (m) => m.chromium], ["puppeteer-core", (m) => m.default]]) {
  const folder = `${process.env.NODE_MODULES}/${name}`;
  const entry = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")).exports["."].import;
  const browsers = drive(await import(pathToFileURL(`${folder}/${entry}`)));
  const launch = browsers.launch.bind(browsers);
  browsers.launch = async (options = {}) => {
    const browser = await launch({ timeout: patience, protocolTimeout: patience, ...options });
    const newPage = browser.newPage.bind(browser);
    browser.newPage = async (...args) => {
      const page = await newPage(...args);
      page.setDefaultNavigationTimeout(patience);
      page.setDefaultTimeout(patience);
      return page;
    };
    return browser;
  };
}
