import { describe, expect, it } from "vitest";
import { accessMapData } from "../../provider/map/accessMapData.ts";
import { accessMapHtml } from "../../provider/map/accessMapHtml.ts";
import type { AccessMapData } from "../../provider/map/data.ts";
import type { AccessPolicy, NamespacePolicy, Principal } from "../../sdk/policy/index.ts";
import { axeFindings } from "../support/browser.ts";
import { accessesOf, example, meta } from "./support/example.ts";
import { accessDevice, accessPolicy, serviceAccount, user } from "./support/policyObjects.ts";
import { chooseLine, names, PATIENCE, useMaps } from "./support/useMaps.ts";

// Maps of a namespace in identity mode.

const { shown } = useMaps();

const ci = serviceAccount("ci");
const policy = (name: string, more: Partial<AccessPolicy> = {}): AccessPolicy =>
  accessPolicy(name, { id: `id-${name}`, ...more });
const devices = [accessDevice("web-1", "prod"), accessDevice("lab-1", "lab")];
const namespace = (principals: readonly Principal[], policies: readonly AccessPolicy[]): NamespacePolicy => ({
  devices,
  keys: [],
  rules: [],
  identity: { principals, policies },
});

const ops = policy("ops", { filter: { tags: ["prod"] } });
const [ana, mia] = [user("ana"), user("mia", { keys: [] })];
/** Production needs a re-authentication after the change. The service account is new, and eve is removed. */
const { before, after } = accessesOf(
  namespace([ana, mia, user("eve")], [ops]),
  namespace(
    [ana, mia, ci],
    [
      { ...ops, requireReauth: true },
      policy("ci", { subject: { type: "role", value: "service" }, filter: { tags: ["lab"] } }),
    ],
  ),
);
const data = accessMapData(before, after, meta);

/** Returns one line for each edge of a map. */
const linesOf = ({ keys, edges, texts }: AccessMapData) =>
  edges.map(({ key, change, condition, rule, cause = -1 }) =>
    [change, keys[key]?.name, condition ?? "-", texts[rule]?.text, texts[cause]?.text ?? "-"].join(" | "),
  );

describe("the data", () => {
  it("contains users and service accounts, and the condition of each access", () => {
    expect(data.subject).toBe("user");
    expect(data.keys.map(({ name, kind, state }) => [name, kind, state])).toEqual([
      ["ana@example.com", "user", undefined],
      ["ci", "service account", "new"],
      ["eve@example.com", "user", "removed"],
      ["mia@example.com", "user", undefined],
    ]);
    const allowed = (text: string) => expect.stringMatching(new RegExp(`^${text} \\(`));
    const lines = linesOf(data).map((line) => line.split(" | "));
    expect(lines.sort()).toEqual(
      [
        [
          "kept",
          ana.name,
          "reauthentication",
          allowed("allowed by access policy ops"),
          "before the change: without a condition",
        ],
        ["gained", "ci", "-", allowed("allowed by access policy ci"), "the service account is new"],
        ["lost", "eve@example.com", "-", allowed("allowed by access policy ops"), "the user is removed"],
        ["kept", mia.name, "approval", allowed("allowed by access policy ops"), "-"],
      ].sort(([left = ""], [right = ""]) => (left < right ? -1 : 1)),
    );
  });

  it("contains the cause of a change of the policies or of the keys of a user", () => {
    const causesOf = (old: NamespacePolicy, now: NamespacePolicy) => {
      const both = accessesOf(old, now);
      return linesOf(accessMapData(both.before, both.after, meta)).map((line) => line.split(" | ").at(-1));
    };
    const observer = user("ana", { role: "observer", keys: [] });
    const everywhere = namespace([ana], [ops]);
    expect(causesOf(everywhere, namespace([observer], [ops]))).toEqual([
      "the SSH keys or the role of the user change",
    ]);
    expect(causesOf(everywhere, namespace([ana], []))).toEqual(["no access policy allows it"]);
    const deny = policy("no root", { action: "deny" });
    expect(causesOf(everywhere, namespace([ana], [ops, deny]))).toEqual([
      expect.stringMatching(/^access policy no root \(.*\) denies it$/),
    ]);
  });

  it("has no kind and no condition for public keys", () => {
    const map = accessMapData(example.before, example.after, meta);
    expect(map.subject).toBe("key");
    expect(map.keys.some(({ kind }) => kind !== undefined)).toBe(false);
    expect(map.edges.some(({ condition }) => condition !== undefined)).toBe(false);
  });
});

it("the page of users has the filter of conditions, and the page of keys the filter of persons", () => {
  const hidden = (html: string) =>
    [...html.matchAll(/<label class="quiet" hidden>([^<]+)/g)].map(([, label]) => label);
  expect(hidden(accessMapHtml(data))).toEqual(["Person", "Time"]);
  expect(hidden(accessMapHtml(accessMapData(example.before, example.after, meta)))).toEqual([
    "Time",
    "Condition",
  ]);
});

describe("the page", { tags: ["long"] }, () => {
  it("counts users, and shows the kind of a service account", async () => {
    const page = await shown(data);
    const cards = await page.locator(".card").allInnerTexts();
    expect(cards.map((text) => text.split("\n").join(" "))).toEqual([
      "+ 1 user gains access on 1 device",
      "− 1 user loses access on 1 device",
      "= 2 users keep access on 1 device",
    ]);
    expect(await page.locator("#keys-head").textContent()).toBe("Users and service accounts");
    expect(
      await page.getByRole("treeitem", { name: /^ci service account new gains 1 device$/ }).count(),
    ).toBe(1);
    expect(
      await page.getByRole("treeitem", { name: /^web-1 prod lost by 1 user, kept by 2 users$/ }).count(),
    ).toBe(1);
    await chooseLine(page, "ci");
    const details = await page.locator("#details").innerText();
    for (const text of ["service account", "Id", "+ 1 device gained"]) expect(details).toContain(text);
    expect(await page.locator("main").innerText()).not.toMatch(/(?<!SSH )\bkeys?\b/i);
  });

  it("shows conditions as text, as a dotted line with a legend, and as a filter", async () => {
    const page = await shown(data);
    expect(await page.locator("#list-body th").allTextContents()).toEqual([
      "Change",
      "User",
      "Login",
      "Devices",
      "From",
      "Condition",
      "Rule and reason",
    ]);
    const rows = await page.locator("#list-body tbody").allInnerTexts();
    expect(rows.map((text) => text.split("\t").map((part) => part.trim()))).toContainEqual([
      "= kept",
      ana.name,
      "root",
      "web-1",
      "any address",
      "after a re-authentication",
      expect.stringMatching(/^before the change: without a condition; now allowed by access policy ops/),
    ]);
    const dash = (line: string) =>
      page.locator(`#paths .link.${line}`).evaluate((path) => getComputedStyle(path).strokeDasharray);
    expect([await dash("gained"), await dash("lost"), await dash("kept")]).toEqual([
      "none",
      "7px, 5px",
      "0.1px, 5px",
    ]);
    expect(await page.locator(".legend li:visible").allInnerTexts()).toContain("with a condition");
    await page.getByLabel("Condition").selectOption("after the approval of an SSH key");
    await expect.poll(() => names(page, "keys"), PATIENCE).toEqual([mia.name]);
    await page.getByLabel("Condition").selectOption("");
    await page.getByRole("combobox", { name: "Access" }).selectOption("Changed");
    await expect
      .poll(async () => (await names(page, "keys")).sort(), PATIENCE)
      .toEqual([ana.name, "ci", "eve@example.com"]);
  });

  it("has no violation of the accessibility checker axe", async () => {
    const page = await shown(data);
    for (const line of [undefined, "ci", "web-1"]) {
      if (line) await chooseLine(page, line);
      expect(await axeFindings(page)).toEqual([]);
    }
  });
});
