// `npm run docs:pictures`: makes the pictures of the documents from a real run, with the service of the demo.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { startBrowser } from "../../test/support/browser.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Changes of the demo's program: the map shows their effects. */
const CHANGES = [
  ['username: "^bob$"', 'username: "^(bob|deploy)$"'],
  ['filter: { tags: ["edge"] }', 'filter: { hostname: "^edge-0[1-4]$" }'],
  ['hostname: "^(web|edge)-[0-9]+$"', 'hostname: "^web-[0-9]+$"'],
  ['filter: { tags: ["prod"] }', 'filter: { tags: ["prod", "edge"] }'],
] as const;

/** Runs a program, and returns its output. @throws Error with the output if the exit code differs from `expected` */
async function run(command: string, args: readonly string[], cwd: string, expected = 0): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== expected) throw new Error(`${[command, ...args].join(" ")}: exit code ${code}\n${output}`);
  return output;
}

function changeProgram(file: string): void {
  const changed = CHANGES.reduce(
    (program, [before, after]) => {
      if (!program.includes(before)) throw new Error(`${file} does not contain ${before}`);
      return program.replace(before, after);
    },
    readFileSync(file, "utf8"),
  );
  writeFileSync(file, changed);
}

/** Copies a file to a text file, which browsers show instead of downloading it. Returns the path of the copy. */
function asText(folder: string, name: string): string {
  const copy = join(folder, `${name}.txt`);
  copyFileSync(join(folder, name), copy);
  return copy;
}

interface Picture extends BrowserContextOptions {
  readonly url: string;
  /** Text in a line of the map that is selected. */
  readonly selected?: string;
}

async function take(browser: Browser, name: string, { url, selected, ...options }: Picture): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 760 }, ...options });
  const page: Page = await context.newPage();
  await page.goto(url, { waitUntil: "networkidle" });
  if (selected !== undefined) await page.locator(".line", { hasText: selected }).first().click();
  await page.mouse.move(0, 0);
  await page.screenshot({ scale: "css", path: join(ROOT, "docs/images", `${name}.png`) });
  await context.close();
  console.log(`docs/images/${name}.png`);
}

const started = await startBrowser();
if ("reason" in started) throw new Error(started.reason);
const { browser } = started;
const folder = mkdtempSync(join(tmpdir(), "gatehouse-pictures-"));
let service: number | undefined;
try {
  const demo = ["examples/demo.ts", "--engine", "embedded", "--keep", join(folder, "fleet")];
  const output = await run(process.execPath, demo, ROOT);
  // The demo writes the map of its drift to the working folder.
  await take(browser, "drift-map", { url: pathToFileURL(join(ROOT, "access-map.html")).href });
  const { url, pid } = /still running at (?<url>\S+)\..*kill (?<pid>\d+)/s.exec(output)?.groups ?? {};
  if (url === undefined) throw new Error(`the demo printed no address of its service\n${output}`);
  service = Number(pid);
  changeProgram(join(folder, "fleet/fleet-access/index.ts"));
  await run(
    "/bin/sh",
    ["-c", ". fleet/environment; gatehouse review fleet/fleet-access --stack demo --html map.html"],
    folder,
  );
  const map = pathToFileURL(join(folder, "map.html")).href;
  await take(browser, "access-map", { url: map });
  await take(browser, "access-map-dark", { url: map, colorScheme: "dark", selected: "Contractor" });
  const report = "gatehouse access --stack demo --folder fleet/fleet-access --report evidence.md";
  await run("/bin/sh", ["-c", `. fleet/environment; ${report}`], folder);
  await take(browser, "evidence", { url: pathToFileURL(asText(folder, "evidence.md")).href });
  await take(browser, "start-page", { url, viewport: { width: 900, height: 620 } });
} finally {
  await browser.close();
  if (service !== undefined) process.kill(service);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
