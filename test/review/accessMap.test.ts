import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { accessMapData } from "../../provider/map/accessMapData.ts";
import { accessMapHtml } from "../../provider/map/accessMapHtml.ts";
import { accessesOf, example, meta } from "./support/example.ts";
import { accessDevice, accessKey, accessRule } from "./support/policyObjects.ts";
import { chooseLine, names, PATIENCE, useMaps } from "./support/useMaps.ts";

// All tests here run in a browser.

const data = accessMapData(example.before, example.after, meta);
const { show, shown } = useMaps();
const status = (page: Page) => page.locator("#status");
const details = (page: Page) => page.locator("#details").innerText();

/** Waits until the page shows these numbers of keys and devices. */
async function expectShown(page: Page, keys: number, devices: string): Promise<void> {
  const text = `Shown: ${keys} of 8 keys, with access to ${devices} of 29 devices`;
  await expect.poll(() => status(page).textContent(), PATIENCE).toBe(text);
}

describe("the page", { tags: ["long"] }, () => {
  it("shows title, facts, evaluated logins, totals and notes", async () => {
    const page = await shown(data);
    expect(await page.title()).toBe(meta.title);
    expect(await page.locator("h1").textContent()).toBe(meta.title);
    const head = await page.locator("header").innerText();
    for (const text of [
      "fleet-access",
      "prod",
      "https://access.example.org",
      "3 logins (root, any login that the policy does not mention, deploy)",
    ])
      expect(head).toContain(text);
    const cards = await page.locator(".card").allInnerTexts();
    expect(cards.map((text) => text.split("\n").join(" "))).toEqual([
      "+ 2 keys gain access on 5 devices",
      "− 1 key loses access on 9 devices",
      "= 7 keys keep access on 29 devices",
    ]);
    expect(await page.locator("#notes").innerText()).toContain("Members with the role owner");
  });

  it("marks gained and lost access with a sign, a line style and words, in addition to the color", async () => {
    const page = await shown(data);
    const line = page.locator(".line", { hasText: "Northwind" });
    expect(await line.locator(".summary").textContent()).toBe("loses 9 devices, keeps 5 devices");
    expect(await line.locator(".badge.lost").textContent()).toBe("−9");
    for (const name of [
      /^oncall-phone .* new gains 5 devices$/,
      /^db \+ prod 3 devices lost by 1 key, kept by/,
    ])
      expect(await page.getByRole("treeitem", { name }).count()).toBe(1);
    const dash = (change: string) =>
      page.locator(`#paths .link.${change}`).evaluate((path) => getComputedStyle(path).strokeDasharray);
    expect([await dash("gained"), await dash("lost")]).toEqual(["none", "7px, 5px"]);
    expect(await page.locator("#marks .mark.gained").count()).toBe(4);
    expect(await page.locator("#marks .mark.lost").count()).toBe(4);
    const signs = await page.locator("#list-body .change").allTextContents();
    expect(new Set(signs)).toEqual(new Set(["+ gained", "− lost", "= kept"]));
  });

  it("shows gained access of a drift as a danger, with the last change of the key", async () => {
    const oncall = example.after.policy.keys.find(({ name }) => name === "oncall-phone")?.fingerprint;
    const drift = accessMapData(example.before, example.after, {
      ...meta,
      lastChangeOf: (id) => (id === oncall ? "last changed by user carla" : undefined),
    });
    const colorOf = (page: Page, change: string) =>
      page.locator(`.card .change.${change}`).evaluate((sign) => getComputedStyle(sign).color);
    const [review, drifted] = [await shown(data), await shown(drift)];
    expect(await colorOf(drifted, "gained")).toBe(await colorOf(review, "lost"));
    expect(await drifted.locator(".legend").innerText()).toContain("gained, not declared");
    await chooseLine(drifted, "oncall-phone");
    expect(await details(drifted)).toContain("last changed by user carla");
    const lines = await drifted.locator("#list-body tbody", { hasText: "oncall-phone" }).allInnerTexts();
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => !line.includes("last changed by user carla"))).toEqual([]);
  });

  it("summarizes access to all devices, and shows the whole name of a key", async () => {
    const everywhere = accessKey("contractor, edge only, until June", {
      username: "^root$",
      filter: { hostname: ".*" },
    });
    const policy = { ...example.after.policy, keys: [everywhere], rules: [] };
    const { before, after } = accessesOf({ ...policy, keys: [] }, policy);
    const page = await shown(accessMapData(before, after, meta), { viewport: { width: 1360, height: 800 } });
    expect(await page.locator("#list-body tbody").first().innerText()).toContain("all 29 devices");
    const name = page.locator("#keys .line .name").first();
    expect(await name.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);
  });

  it("contains a table with the same content as the picture", async () => {
    const page = await shown(data);
    const rows = await page.locator("#list-body tbody").allInnerTexts();
    expect(rows).toHaveLength(data.edges.length);
    expect(rows.map((text) => text.split("\t").map((part) => part.trim()))).toContainEqual([
      "− lost",
      "Northwind (contractor)",
      "northwind-2024",
      "root",
      "all 5 of edge + pilot",
      "any address",
      "rule no-root-on-pilots (deny; priority 30; login root; any address; devices tagged pilot) denies it; before allowed, since no rule matches",
    ]);
  });

  it("shows a change that has no effect on access", async () => {
    const page = await shown(accessMapData(example.after, example.after, meta));
    expect(await page.locator("#card-gained").textContent()).toBe("No key gains access");
    expect(await details(page)).toContain("No key gains or loses access");
  });

  it("shows a namespace without devices and keys", async () => {
    const nothing = accessesOf({ devices: [], keys: [], rules: [] }, { devices: [], keys: [], rules: [] });
    const page = await shown(accessMapData(nothing.before, nothing.after, meta));
    expect(await status(page).textContent()).toBe("Shown: 0 of 0 keys, with access to 0 of 0 devices");
  });
});

describe("filters", { tags: ["long"] }, () => {
  it.each([
    ["Person", "ana", 2, "10", ["Ana Silva"], ["bastion-01", "db + prod", "prod + web"]],
    ["Key", "oncall", 1, "5", ["oncall-phone"], ["bastion-01", "lab"]],
    ["Key", "SHA256:c4Nz", 1, "8", ["ci-runner"], ["ci", "prod + web"]],
    [
      "Tag",
      "pilot",
      4,
      "5",
      ["Northwind (contractor)", "Bo Chen", "Carla Romano", "Dev Patel"],
      ["edge + pilot"],
    ],
    ["Device", "lab-03", 3, "1", ["Dev Patel", "oncall-phone", "Carla Romano"], ["lab-03"]],
    ["Search", "romano", 1, "17", ["Carla Romano"], ["edge", "edge + pilot", "lab"]],
    ["Search", "db-02", 3, "1", ["Northwind (contractor)", "Ana Silva"], ["db-02"]],
    ["Search", "nothing of this", 0, "0", [], []],
  ])("select by %s %j", async (label, text, keys, devices, keyNames, deviceNames) => {
    const page = await shown(data);
    await page.getByLabel(label, { exact: true }).fill(text);
    await expectShown(page, keys, devices);
    expect((await names(page, "keys")).sort()).toEqual([...keyNames].sort());
    expect((await names(page, "devices")).sort()).toEqual([...deviceNames].sort());
    await page.getByRole("button", { name: "Clear" }).click();
    await expectShown(page, 8, "29");
  });

  it.each([
    ["+ Gained", 2, "5"],
    ["− Lost", 1, "9"],
    ["Changed", 3, "13"],
    ["= Kept", 7, "29"],
  ])("select by access %s", async (label, keys, devices) => {
    const page = await shown(data);
    await page.getByRole("combobox", { name: "Access" }).selectOption(label);
    await expectShown(page, keys, devices);
  });

  it("select keys and devices by login, and can be combined", async () => {
    const page = await shown(data);
    await page.getByLabel("Login").selectOption("root");
    await expectShown(page, 4, "19");
    await page.getByRole("combobox", { name: "Access" }).selectOption("− Lost");
    await expectShown(page, 1, "9");
    await page.getByLabel("Tag", { exact: true }).fill("core");
    await expectShown(page, 1, "1");
    expect(await page.locator("#list-body tbody").count()).toBe(1);
  });
});

describe("the time", { tags: ["long"] }, () => {
  it("selects the access at a later time, and the list has the end of each access", async () => {
    const policy = {
      devices: [accessDevice("web-1")],
      keys: [accessKey("temp", { expiresAt: "2126-12-01T18:00:00.000Z" }), accessKey("ana")],
      rules: [],
    };
    const ending = accessesOf(policy, policy);
    const page = await shown(accessMapData(ending.before, ending.after, meta));
    await expect.poll(() => status(page).textContent(), PATIENCE).toContain("Shown: 2 of 2 keys");
    const list = page.locator("#list-body");
    expect(await list.innerText()).toContain("2126-12-01 18:00 UTC");
    await page.getByLabel("Time").selectOption("from 2126-12-01 18:00 UTC");
    await expect.poll(() => status(page).textContent(), PATIENCE).toContain("Shown: 1 of 2 keys");
    await page.getByRole("button", { name: "Clear" }).click();
    await expect.poll(() => status(page).textContent(), PATIENCE).toContain("Shown: 2 of 2 keys");
  });

  it("is hidden in a map without ends of access", async () => {
    const page = await shown(data);
    expect(await page.getByLabel("Time").isVisible()).toBe(false);
    expect(await page.locator("#list-body").innerText()).not.toContain("no end");
  });
});

describe("the details", { tags: ["long"] }, () => {
  it("show the logins, devices, addresses and rules of a chosen key, and hide the links of other keys", async () => {
    const page = await shown(data);
    await chooseLine(page, "oncall-phone");
    const text = await details(page);
    for (const part of [
      "SHA256:w2RjC9bUf8QkZi",
      "+ 5 devices gained",
      "198.51.100.1",
      "rule oncall-office (allow",
    ])
      expect(text).toContain(part);
    expect(await page.locator("#details table th").allTextContents()).toEqual([
      "Change",
      "Login",
      "Devices",
      "From",
    ]);
    expect(await page.locator("#devices .line:not(.dim) .name").allTextContents()).toEqual([
      "bastion-01",
      "lab",
    ]);
    await page.getByRole("button", { name: "Close" }).click();
    expect(await details(page)).toContain("Changes");
  });

  it("show and hide the regular expressions of a rule by click and by Enter, and show them in print", async () => {
    const page = await shown(data);
    await chooseLine(page, "oncall-phone");
    const summary = page.locator("#details summary");
    expect(await summary.innerText()).toContain("login root; addresses that begin with 198.51.100.;");
    const patterns = page.locator("#details code");
    expect(await patterns.first().isVisible()).toBe(false);
    await summary.click();
    await patterns.first().waitFor();
    expect(await patterns.allInnerTexts()).toEqual(["login ^root$", "address ^198\\.51\\.100\\."]);
    await summary.press("Enter");
    await patterns.first().waitFor({ state: "hidden" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await patterns.first().waitFor();
  });

  it("show the keys that reach the devices of a chosen group, and the list of these devices", async () => {
    const page = await shown(data);
    await chooseLine(page, "db + prod");
    expect(await names(page, "devices")).toEqual(expect.arrayContaining(["db-01", "db-02", "db-03"]));
    expect(await details(page)).toContain("− 1 key lost");
    await chooseLine(page, "db-02");
    expect(await details(page)).toContain("uid-db-02");
    expect(await page.locator("#keys .line:not(.dim) .name").allTextContents()).toEqual([
      "Northwind (contractor)",
      "Ana Silva",
    ]);
  });

  it("show a device that a user chooses with the keyboard, until Escape clears the choice", async () => {
    const page = await shown(data);
    const focused = () =>
      page.evaluate(() => document.activeElement?.querySelector(":scope > .text > .name")?.textContent);
    for (let step = 0; step < 30 && (await focused()) !== "Dev Patel"; step += 1)
      await page.keyboard.press("Tab");
    expect(await focused()).toBe("Dev Patel");
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toBe("Northwind (contractor)");
    const outline = () =>
      page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineStyle);
    expect(await outline()).toBe("solid");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("bastion-01");
    await page.keyboard.press("End");
    expect(await focused()).toBe("prod + web");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    expect(await focused()).toBe("web-01");
    await page.keyboard.press("Enter");
    expect(await details(page)).toContain("uid-web-01");
    expect(await page.locator("#devices [aria-selected=true] .name").textContent()).toBe("web-01");
    await page.keyboard.press("Escape");
    expect(await page.locator("[aria-selected=true]").count()).toBe(0);
    await page.keyboard.press("ArrowLeft");
    expect(await focused()).toBe("prod + web");
    await page.keyboard.press("ArrowLeft");
    expect(await page.locator("#devices [aria-expanded=true]").count()).toBe(0);
    await page.keyboard.press("ArrowLeft");
    expect(await focused()).toBe("Ana Silva");
  });
});

const HOSTILE = [
  "</script><img src=x onerror=alert(1)>",
  "<!--<script>alert(1)</script>",
  "\"' onmouseover='alert(1)\" &lt;b&gt;",
  "admin\u202Egnp.exe\u2066\u0000",
];

it("shows malicious names as text, and shows the codes of invisible characters", {
  tags: ["long"],
}, async () => {
  const devices = HOSTILE.map((name, index) => ({ uid: `${name}${index}`, name, tags: [name] }));
  const keys = HOSTILE.map((name, index) => accessKey(name, { fingerprint: `${name}${index}` }));
  const rules = HOSTILE.map((id) => accessRule(id, { action: "allow" }));
  const { before, after } = accessesOf({ devices, keys: [], rules }, { devices, keys, rules });
  const owners = new Map(keys.map(({ fingerprint, name }) => [fingerprint, name]));
  const [title = ""] = HOSTILE;
  const hostile = {
    title,
    project: title,
    stack: title,
    service: title,
    when: title,
    owners,
    notes: HOSTILE,
  };
  const page = await shown(accessMapData(before, after, hostile));
  const spelled = [...HOSTILE.slice(0, 3), "admin⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+0000⟩"];
  expect((await names(page, "keys")).sort()).toEqual(spelled.toSorted());
  expect((await names(page, "devices")).sort()).toEqual(spelled.toSorted());
  expect(await page.locator("h1").textContent()).toBe(title);
  for (const name of spelled) {
    await page
      .locator("#devices .line", { has: page.getByText(name, { exact: true }) })
      .first()
      .click();
    expect(await page.locator("#details-title").textContent()).toBe(name);
  }
  expect(await page.locator("img, iframe, script:not([type]):nth-of-type(n + 3)").count()).toBe(0);
  expect(await page.locator("script").count()).toBe(2);
});

it("the content security policy of the map allows only the map's own script and style", {
  tags: ["long"],
}, async () => {
  const html = accessMapHtml(data);
  const [, policy = ""] = /Content-Security-Policy" content="([^"]+)"/.exec(html) ?? [];
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; base-uri 'none'/,
  );
  expect(policy).not.toContain("unsafe");
  const open = await show(data);
  const ran = await open.page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'ran'";
    document.body.append(script);
    return document.title;
  });
  expect(ran).toBe(meta.title);
  await expect.poll(() => open.complaints.join(), PATIENCE).toContain("Content Security Policy");
  open.complaints.length = 0;
  for (const text of ["d3-selection", "d3-shape", "d3-path"])
    expect(html).toContain(`/*! ${text}\nCopyright`);
});
