import {
  createReadStream,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, dirname, extname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { QUESTIONS } from "../../docs/site/questions.ts";
import { MINUTE } from "../../sdk/times.ts";
import { useBrowser } from "../server/pages/browsing.ts";
import { environmentWithout } from "../support/command.ts";
import { type Listening, listening } from "../support/listening.ts";
import { cloneTo, INSTALL_FLAGS, OFFLINE, reachesRegistry, run } from "./packages.ts";

/** The path of the site on its server. Links that ignore this path fail. */
const BASE = "/gatehouse/";
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
};
/** Variables that Vitest sets. Astro would build a development version with them, for another path. */
const VITEST = ["NODE_ENV", "BASE_URL", "DEV", "MODE", "PROD", "SSR", "TEST", "VITEST"];
const SECTIONS = [
  "Get started",
  "Concepts",
  "Tutorials",
  "Guides",
  "Operate",
  "Reference",
  "Terraform",
  "Pulumi plugin",
  "Architecture",
  "Project",
];

/** Serves the files of a folder below {@link BASE}. Like a simple static host, it redirects no request. */
const staticServer = (folder: string) =>
  createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const path = decodeURIComponent(pathname).replace(/\/$/, "/index.html");
    const file = path.startsWith(BASE) ? join(folder, path.slice(BASE.length)) : "";
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });

// Installs the site generator from the registry, and builds the site. The tests use a copy of the repository, since
// other tests read the folder docs at the same time.
describe("the site of the documentation", { tags: ["long"] }, () => {
  let copy: string;
  const inCopy = (path: string) => join(copy, path);

  beforeAll(() => {
    copy = realpathSync(mkdtempSync(join(tmpdir(), "gatehouse-site-")));
    cloneTo(copy);
  });
  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  describe.each([
    [
      "in no section",
      "docs/guides/new.md",
      "# New page\n\nText.\n",
      "docs/site/structure.ts does not list docs/guides/new.md",
    ],
    [
      "with a link to a missing file",
      "docs/reference/terraform/new.md",
      "# New page\n\nSee the [guide](../missing.md).\n",
      "docs/reference/terraform/new.md: the link ../missing.md leads to no file",
    ],
    [
      "without a heading",
      "docs/reference/terraform/new.md",
      "Text.\n",
      "docs/reference/terraform/new.md: the first heading is missing",
    ],
  ])("a page %s", (_, file, text, message) => {
    it("is an error", async () => {
      writeFileSync(inCopy(file), text);
      onTestFinished(() => rmSync(inCopy(file)));
      await expect(run(process.execPath, [inCopy("docs/site/content.ts")])).rejects.toMatchObject({
        stderr: expect.stringContaining(`Error: ${message}\n`),
      });
    });
  });

  describe("in a browser", () => {
    let reached: boolean;
    let server: Listening;
    let start: string;
    const open = useBrowser();

    beforeAll(async () => {
      reached = await reachesRegistry();
      if (!reached) return;
      const env = {
        ...environmentWithout("npm_", ...VITEST),
        PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      };
      const npm = (...args: readonly string[]) => run("npm", args, { cwd: inCopy("docs/site"), env });
      await npm("ci", ...INSTALL_FLAGS);
      await npm("run", "build", "--", "--base", BASE);
      server = await listening(staticServer(inCopy("docs/site/dist")));
      start = server.url + BASE;
    }, 5 * MINUTE);
    beforeEach(({ skip }) => skip(!reached, OFFLINE));
    afterAll(() => server?.stop());

    it("has a navigation to all pages, and only links to existing pages, headings and files", {
      timeout: 5 * MINUTE,
    }, async () => {
      const page = await open(start);
      const ids = new Map<string, ReadonlySet<string>>();
      const links = new Map<string, string>();
      const isPage = (address: string) => address.startsWith(start) && address.endsWith("/");
      const found = [start, `${start}404.html`];
      for (const address of found) {
        expect((await page.goto(address))?.status(), `${links.get(address)} links to ${address}`).toBe(200);
        const { anchors, targets } = await page.evaluate(() => ({
          anchors: [...document.querySelectorAll("[id]")].map(({ id }) => id),
          targets: [...document.querySelectorAll<HTMLElement>("a[href], link[href], [src]")].map(
            (element) =>
              new URL(element.getAttribute("href") ?? element.getAttribute("src") ?? "", location.href).href,
          ),
        }));
        ids.set(address, new Set(anchors));
        for (const target of targets) {
          if (!links.has(target)) links.set(target, address);
          const [path = ""] = target.split("#");
          if (isPage(path) && !found.includes(path)) found.push(path);
        }
      }
      const files = readdirSync(inCopy("docs/site/dist"), { recursive: true, encoding: "utf8" });
      const pages = files.filter((file) => file.endsWith(".html"));
      expect(pages.length).toBeGreaterThan(100);
      expect(found.toSorted()).toEqual(pages.map((file) => start + file.replace(/index\.html$/, "")).sort());

      const broken: string[] = [];
      const internal = [...links].filter(([target]) => target.startsWith(server.url));
      for (const [target, source] of internal) {
        const [path = "", anchor] = target.split("#");
        const isGood = ids.has(path)
          ? anchor === undefined || ids.get(path)?.has(decodeURIComponent(anchor))
          : (await fetch(path)).status === 200;
        if (!isGood) broken.push(`${source} links to ${target}`);
      }
      expect(broken).toEqual([]);
      console.log(`${found.length} pages, ${internal.length} targets of links`);
    });

    it("lists the sections in its navigation", async () => {
      const page = await open(`${start}guides/review/`);
      const labels = await page.locator("nav summary").allInnerTexts();
      expect(labels.filter((label) => SECTIONS.includes(label))).toEqual(SECTIONS);
    });

    it("finds a page by a word of its text", async () => {
      const page = await open(start);
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByRole("dialog").getByRole("textbox").fill("firewall");
      const result = page
        .getByRole("dialog")
        .getByRole("link", { name: "gatehouse_firewall_rule (Resource)" });
      await result.first().click();
      await page.waitForURL(`${start}reference/terraform/resources/firewall_rule/**`);
    });

    it("answers each of its questions with one of the first four results of the search", async () => {
      const page = await open(start);
      // A text, because Vitest replaces the dynamic imports of functions.
      const addressesOf = (
        question: string,
      ) => `import("${BASE}pagefind/pagefind.js").then(async ({ init, search }) => {
        await init();
        const { results } = await search(${JSON.stringify(question)});
        return Promise.all(results.slice(0, 4).map(async (result) => (await result.data()).url));
      })`;
      const wrong: string[] = [];
      for (const [question, answer] of QUESTIONS) {
        const addresses: string[] = await page.evaluate(addressesOf(question));
        if (!addresses.includes(BASE + answer)) wrong.push(`${question}: ${addresses.join(", ")}`);
      }
      expect(wrong).toEqual([]);
      expect(QUESTIONS.length).toBeGreaterThanOrEqual(30);
    });

    it("has a start page with the purpose, the users, the installation, the version and the repository", async () => {
      const page = await open(start);
      const { version } = JSON.parse(readFileSync(inCopy("package.json"), "utf8"));
      expect(await page.locator("h2").allInnerTexts()).toEqual([
        "What it is",
        "For whom",
        "Install",
        "Version",
      ]);
      const text = await page.locator("main").innerText();
      expect(text).toContain("npm install --global @gatehouse-access/provider");
      expect(text).toContain(`version ${version}`);
      expect(text).toContain("The repository has no public address yet.");
    });

    it("shows each cell of a table on a phone, with the heading of its column", async () => {
      const page = await open(`${start}compare/`, { viewport: { width: 390, height: 844 } });
      const cells = await page.locator("td").evaluateAll((found) =>
        found.map((cell) => ({
          right: cell.getBoundingClientRect().right,
          label: getComputedStyle(cell, "::before").content,
        })),
      );
      expect(cells.length).toBeGreaterThan(30);
      expect(cells.filter(({ right }) => right > 390)).toEqual([]);
      expect(cells[1]?.label).toContain("Gatehouse");
    });

    it.each([
      "",
      "guides/review/",
      "reference/server-settings/",
      "reference/operations/",
      "reference/supported-versions/",
      "operate/kubernetes/",
      "architecture/overview/",
    ])("fits on a phone: /%s", async (path) => {
      const page = await open(start + path, { viewport: { width: 390, height: 844 } });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    });
  });
});
