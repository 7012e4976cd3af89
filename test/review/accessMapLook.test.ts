import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { accessMapData } from "../../provider/map/accessMapData.ts";
import type { AccessMapData } from "../../provider/map/data.ts";
import { axeFindings } from "../support/browser.ts";
import { accessesOf, example, largeEstate, meta } from "./support/example.ts";
import { accessKey, accessRule } from "./support/policyObjects.ts";
import { chooseLine, names, PATIENCE, useMaps } from "./support/useMaps.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const data = accessMapData(example.before, example.after, meta);
const { shown } = useMaps();

describe.each(["light", "dark"] as const)("in the %s theme", { tags: ["long"] }, (colorScheme) => {
  it("uses the colors of the theme, and the accessibility checker axe finds no violation", async () => {
    const page = await shown(data, { colorScheme });
    const background = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    expect(background).toBe(colorScheme === "dark" ? "rgb(13, 17, 23)" : "rgb(245, 247, 250)");
    for (const line of [undefined, "Ana Silva", "oncall-phone", "edge + pilot"]) {
      if (line) await chooseLine(page, line);
      expect(await axeFindings(page)).toEqual([]);
    }
  });

  it("switches to the other theme and back", async () => {
    const page = await shown(data, { colorScheme });
    const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    const other = colorScheme === "dark" ? "light" : "dark";
    await page.locator("#theme").click();
    expect(await scheme()).toBe(other);
    await page.locator("#theme").click();
    expect(await scheme()).toBe(colorScheme);
  });
});

/** A text of 120 characters without a space. */
const long = (text: string): string => text.padEnd(120, text);

/** A map in which every name and pattern is long and cannot be broken between words. */
function longNames(): AccessMapData {
  const devices = ["a", "b", "c"].map((name) => ({
    uid: long(`${name}1`),
    name: long(name),
    tags: [long("tag")],
  }));
  const member = { id: "owner", email: long("owner"), isAccepted: true };
  const keys = ["old", "new", "kept"].map((name, index) =>
    accessKey(long(name), {
      ...(index > 0 && { owner: member.id }),
      fingerprint: `SHA256:${long(name)}`,
      username: `^(${long("login")}|${long("user")})$`,
    }),
  );
  const rule = accessRule(long("rule"), {
    action: "allow",
    sourceIp: `^10\\.|${long("[0-9]")}`,
    username: `^${long("login")}`,
    filter: { hostname: `^${long("a")}|${long("[a-z]")}` },
  });
  const { before, after } = accessesOf(
    { devices, members: [member], keys: keys.slice(1), rules: [] },
    { devices, members: [member], keys: keys.slice(0, 2), rules: [rule] },
  );
  return accessMapData(before, after, {
    title: long("title"),
    project: long("project"),
    stack: long("stack"),
    service: `https://${long("host.")}`,
    when: meta.when,
    notes: [long("note")],
  });
}

describe.each([390, 320])("at a width of %i pixels", { tags: ["long"] }, (width) => {
  it.each([
    ["short", data, "oncall-phone"],
    ["long", longNames(), "owner"],
  ])("%s names fit the screen, are readable, and have large touch targets", async (_, map, line) => {
    const page = await shown(map, { viewport: { width, height: 844 }, isMobile: true, hasTouch: true });
    const wide = () => page.evaluate(() => document.scrollingElement?.scrollWidth);
    expect(await wide()).toBe(width);
    await page.locator("#keys .line", { hasText: line }).first().tap();
    const summary = page.locator("#details summary").first();
    await summary.tap();
    await page.locator("#details code").first().waitFor();
    expect(await wide()).toBe(width);
    const { beyond, fonts, targets } = await page.evaluate(() => {
      const shown = [...document.querySelectorAll<HTMLElement>("body *")].filter((one) =>
        one.checkVisibility(),
      );
      const sizes = shown.map((one) => ({ one, box: one.getBoundingClientRect() }));
      const touched = sizes.filter(({ one }) => one.matches("button, input, select, summary, .line"));
      return {
        beyond: sizes
          .filter(({ one, box }) => !one.closest("svg") && box.right > innerWidth)
          .map(({ one }) => one.id),
        fonts: shown.map((one) => Number.parseFloat(getComputedStyle(one).fontSize)),
        targets: touched.map(({ box }) => Math.min(box.width, box.height)),
      };
    });
    expect(beyond).toEqual([]);
    expect(Math.min(...fonts)).toBeGreaterThanOrEqual(11);
    expect(Math.min(...targets)).toBeGreaterThanOrEqual(44);
  });
});

it("a map with 2,000 devices and 300 keys opens and reacts within the time limits", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const { before, after } = largeEstate(2000, 300);
  const large = accessMapData(before, after, meta);
  const times: Record<string, number> = {};
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const begin = performance.now();
    const result = await work();
    times[name] = Math.round(performance.now() - begin);
    return result;
  };
  const page = await timed("open", () => shown(large));
  const frames = await page.evaluate(async () => {
    const list = document.querySelector("#devices");
    const times: number[] = [];
    for (let step = 0; step < 60; step += 1) {
      const begin = performance.now();
      list?.scrollBy(0, 24);
      await new Promise((go) => requestAnimationFrame(go));
      times.push(performance.now() - begin);
    }
    return times.sort((left, right) => left - right);
  });
  times["scrolling, median frame"] = Math.round(frames[30] ?? 0);
  times["scrolling, longest frame"] = Math.round(frames[59] ?? 0);
  await timed("filter", async () => {
    await page.getByLabel("Tag", { exact: true }).fill("oslo");
    await page.waitForFunction(() =>
      document.querySelector("#status")?.textContent?.includes(" 250 of 2,000"),
    );
  });
  await timed("choose", async () => {
    await page.locator("#keys .line").nth(5).click();
    await page.locator("#details table").waitFor();
  });
  console.log(`2,000 devices, 300 keys: ${JSON.stringify(times)} ms`);
});

it("shows the number of hidden devices of a large group, and a filter finds the hidden devices", {
  tags: ["long"],
}, async () => {
  const devices = Array.from({ length: 450 }, (_, index) => ({
    uid: `${index}`,
    name: `unit-${index}`,
    tags: ["t"],
  }));
  const keys = [accessKey("all")];
  const policy = { devices, keys, rules: [] };
  const { before, after } = accessesOf(policy, policy);
  const page = await shown(accessMapData(before, after, meta));
  await page.locator("#devices .line").first().click();
  expect(await page.locator("#devices .line").count()).toBe(202);
  expect(await page.locator("#devices .line").last().textContent()).toContain("250 more devices");
  await page.getByLabel("Device", { exact: true }).fill("unit-449");
  await expect.poll(() => names(page, "devices"), PATIENCE).toEqual(["unit-449"]);
});

it("the npm package contains every file that the map reads at run time", {
  timeout: 120_000,
  tags: ["long"],
}, () => {
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: `${ROOT}provider`,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  for (const sheet of ["head", "map", "details"]) expect(paths).toContain(`map/page/${sheet}.css`);
  expect(paths).toContain("dist/map/page/main.js");
  expect(paths.filter((path) => path.includes("tsbuildinfo"))).toEqual([]);
});
