import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Origin } from "../../provider/model/definition.ts";
import { definition } from "../../provider/resources/apiKey/resource.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { AuthenticationError, apiKeyCredential, createClient } from "../../sdk/index.ts";
import { DAY } from "../../sdk/times.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { type Program, testHarness } from "./support/harness.ts";

const fleet = sharedFleet();
afterEach(async () => expect(await names()).toEqual([]));
const harness = testHarness(() => fleet.env);
afterEach(() => void vi.useRealTimers());

const names = async () =>
  (await fleet.client.listApiKeys({ query: { perPage: 100 } })).map((key) => key.name).sort();
const deleteKey = (name: unknown) => fleet.client.deleteApiKey({ params: { key: String(name) } });
const renameKey = (key: string, name: string) =>
  fleet.client.updateApiKey({ params: { key }, body: { name } });
const createKey = (name: string) =>
  fleet.client.createApiKey({ body: { name, expiresAt: 30, role: "observer" } });
const key = (args: Record<string, unknown>): Program => ({
  ci: { type: "ApiKey", args: { validDays: 30, role: "observer", ...args } },
});
/**
 * The expected output for the secret of the previous API key. Terraform states contain no secrets, so the output is
 * missing there.
 */
const previousKey = (secret: unknown) => (isTerraform ? {} : { previousKey: secret });
/**
 * The expected step when an expired API key is replaced. A Terraform plan does not contain the input that caused the
 * replacement.
 */
const EXPIRED = `replace ci ${isTerraform ? "id" : "rotateBefore"}`;
const outputs = () => harness.state.get("ci")?.outputs ?? {};

async function isValid(secret: unknown): Promise<boolean> {
  const credential = apiKeyCredential(String(secret));
  await using client = createClient({ url: fleet.service.url, credential });
  return await client.getTags().then(
    () => true,
    (error: unknown) => {
      if (error instanceof AuthenticationError) return false;
      throw error;
    },
  );
}

/** Advances only the clock of the provider, so the key does not expire on the service. */
function daysLater(days: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * DAY });
}

describe("rotation of an API key", () => {
  it("is planned by the first up in the days before it expires", async () => {
    await harness.up(key({ rotateBefore: 7 }));
    daysLater(22);
    expect(await harness.preview(key({ rotateBefore: 7 }))).toEqual([]);
    daysLater(2);
    expect(await harness.preview(key({ rotateBefore: 7 }))).toEqual([EXPIRED]);
  });

  it("also replaces an expired key without rotateBefore", async () => {
    await harness.up(key({}));
    daysLater(31);
    expect(await harness.preview(key({}))).toEqual([EXPIRED]);
  });

  it.each([{ name: undefined }, { name: "ci-bot" }])(
    "revokes the old key in the same up: %o",
    async ({ name }) => {
      await harness.up(key({ name, keepers: { year: "a" } }));
      const { key: before } = outputs();
      await harness.up(key({ name, keepers: { year: "b" } }));
      expect(outputs()).toMatchObject({ ...previousKey(""), previous: [] });
      expect(await Promise.all([isValid(before), isValid(outputs().key)])).toEqual([false, true]);
      expect(await names()).toHaveLength(1);
      if (name) expect(await names()).toEqual([name]);
    },
  );

  it.each([{ name: undefined }, { name: "ci-bot" }])(
    "keeps the old key valid for the overlap after --replace: %o",
    async ({ name }) => {
      const program = key({ name, overlap: 3 });
      await harness.up(program);
      const { key: before } = outputs();
      expect(await harness.up(program, { replace: ["ci"] })).toEqual(["replace ci id"]);
      expect(outputs().key).not.toBe(before);
      expect(outputs()).toMatchObject({ ...previousKey(before), previous: [{ tenant: fleet.tenant }] });
      expect(await isValid(before)).toBe(true);
      daysLater(4);
      await harness.up(program);
      expect(await isValid(before)).toBe(false);
    },
  );

  // Skipped with Terraform. If the user requests the replacement, Terraform destroys the object without a plan request
  // that the provider could reject.
  it.skipIf(isTerraform)(
    "rejects an engine's replacement that would ignore the overlap, and keeps the old key valid",
    async () => {
      const program = key({ overlap: 3 });
      await harness.up(program);
      const { key: before } = outputs();
      await expect(harness.up(program, { force: ["ci"] })).rejects.toThrow(
        /overlap: .*keepers.*gatehouse rotate/,
      );
      expect(await isValid(before)).toBe(true);
      expect(await harness.preview(program)).toEqual([]);
    },
  );

  it("keeps the old keys valid for the overlap, and revokes them afterwards", async () => {
    const program = (year: string) => key({ name: "ci-bot", keepers: { year }, overlap: 3 });
    await harness.up(program("a"));
    const first = outputs().key;
    await harness.up(program("b"));
    const second = outputs().key;
    expect(outputs()).toMatchObject(previousKey(first));
    await harness.up(program("c"));
    expect(outputs()).toMatchObject(previousKey(second));
    expect(await Promise.all([first, second, outputs().key].map(isValid))).toEqual([true, true, true]);
    expect(await harness.preview(program("c"))).toEqual([]);

    daysLater(4);
    expect(await harness.preview(program("c"))).toEqual(["update ci"]);
    await harness.up(program("c"));
    expect(outputs()).toMatchObject({ ...previousKey(""), previous: [] });
    expect(await names()).toEqual(["ci-bot"]);
    expect(await Promise.all([first, second, outputs().key].map(isValid))).toEqual([false, false, true]);
  });

  it("causes no rejected requests of a client that switches to each new key", async () => {
    const program = (year: string) => key({ keepers: { year }, overlap: 1 });
    await harness.up(program("a"));
    let stopped = false;
    let refusals = 0;
    let calls = 0;
    const client = (async () => {
      while (!stopped) {
        calls += 1;
        if (!(await isValid(outputs().key))) refusals += 1;
      }
    })();
    for (const year of ["b", "c", "d"]) {
      const before = calls;
      await harness.up(program(year));
      await vi.waitUntil(() => calls > before + 2, { timeout: 10_000 });
    }
    stopped = true;
    await client;
    expect(refusals).toBe(0);
    expect(calls).toBeGreaterThan(8);
  });

  describe("with an omitted overlap", () => {
    const program = (year: string, rotateBefore = 7) => key({ keepers: { year }, rotateBefore });

    it("keeps the old key valid for a day if rotateBefore is set", async () => {
      await harness.up(program("a"));
      const { key: before } = outputs();
      await harness.up(program("b"));
      expect(outputs()).toMatchObject({ ...previousKey(before), overlap: 1 });
      expect(await isValid(before)).toBe(true);
      daysLater(0.9);
      expect(await harness.preview(program("b"))).toEqual([]);
      daysLater(0.2);
      expect(await harness.up(program("b"))).toEqual(["update ci"]);
      expect(await isValid(before)).toBe(false);
    });

    it("revokes the old key in the same up without rotateBefore", async () => {
      await harness.up(program("a", 0));
      const { key: before } = outputs();
      await harness.up(program("b", 0));
      expect(outputs()).toMatchObject({ overlap: 0, previous: [] });
      expect(await isValid(before)).toBe(false);
    });

    it.each([0, 3])(
      "has no difference from the overlap %i in the state, and rotates with a day",
      async (overlap) => {
        await harness.up(key({ keepers: { year: "a" }, rotateBefore: 7, overlap }));
        expect(await harness.preview(program("a"))).toEqual([]);
        expect(await harness.up(program("a", 8))).toEqual(["update ci"]);
        expect(outputs()).toMatchObject({ rotateBefore: 8, overlap });
        const { key: before } = outputs();
        await harness.up(program("b", 8));
        expect(outputs()).toMatchObject({ overlap: 1, previous: [{}] });
        expect(await isValid(before)).toBe(true);
      },
    );
  });

  /** Changes the end of the key in the state. */
  function setEnd(expiresAt: string): void {
    const entry = harness.state.get("ci");
    if (entry) harness.state.set("ci", { ...entry, outputs: { ...entry.outputs, expiresAt } });
  }

  it("ends the overlap at the latest when the old key expires", async () => {
    const program = (year: string) => key({ keepers: { year }, overlap: 40 });
    await harness.up(program("a"));
    const { expiresAt } = outputs();
    await harness.up(program("b"));
    expect(outputs().previous).toMatchObject([{ until: expiresAt }]);
    setEnd(new Date(Date.now() - 1).toISOString());
    const previous = outputs().previous;
    await harness.up(program("b"));
    expect(outputs().previous).toEqual(previous);
    expect(await names()).toHaveLength(2);
  });

  describe("reports the reason", () => {
    let printed: string[];
    beforeEach(() => {
      printed = [];
      vi.spyOn(console, "log").mockImplementation((line: string) => void printed.push(line));
    });
    afterEach(() => void vi.restoreAllMocks());

    /** Returns the notices without the name of the resource, which Terraform adds itself. */
    const reasons = () => printed.splice(0).map((line) => line.replace(/^ApiKey "[^"]+": /, ""));
    const before = isTerraform ? "rotate_before" : "rotateBefore";

    it("of a replacement, and of the revocation after the overlap", async () => {
      const program = (year: string) => key({ name: "ci-bot", rotateBefore: 14, keepers: { year } });
      await harness.up(program("a"));
      await harness.up(program("b"));
      expect(reasons()).toEqual([]);
      daysLater(1.5);
      await harness.preview(program("b"));
      expect(reasons()).toEqual([
        'the overlap of the replaced key "ci-bot" ended 12 hours ago: the run revokes the replaced key',
      ]);
      await harness.up(program("b"));
      reasons();
      daysLater(15);
      await harness.preview(program("b"));
      expect(reasons()).toEqual([`expires in 13 days, ${before} 14: the run replaces the key`]);
      daysLater(17);
      await harness.preview(program("b"));
      expect(reasons()).toEqual(["expired 3 days ago: the run replaces the key"]);
    });

    it("of a key that no longer exists", async () => {
      await harness.up(key({ name: "ci-bot" }));
      await deleteKey("ci-bot");
      expect(await harness.refresh()).toEqual(["delete ci"]);
      expect(reasons()).toEqual([
        "was revoked or deleted outside the program; the next run creates a new key",
      ]);
      await harness.up(key({ name: "ci-bot" }));
      await deleteKey("ci-bot");
      daysLater(33);
      await harness.refresh();
      expect(reasons()).toEqual(["expired 3 days ago and no longer exists; the next run creates a new key"]);
    });

    it("of a key that was revoked while a replaced key works", async () => {
      const program = (year: string) => key({ keepers: { year }, overlap: 3 });
      await harness.up(program("a"));
      await harness.up(program("b"));
      await deleteKey(outputs().name);
      await harness.refresh();
      await harness.preview(program("b"));
      expect(reasons()).toEqual(["was revoked or deleted outside the program: the run replaces the key"]);
    });
  });

  it("finds a key that was renamed out of band, and restores the name of the key", async () => {
    await harness.up(key({ name: "ci-bot" }));
    await renameKey("ci-bot", "renamed");
    await createKey("decoy");
    expect(await harness.refresh()).toEqual(["update ci"]);
    await harness.up(key({ name: "ci-bot" }));
    expect(await names()).toEqual(["ci-bot", "decoy"]);
    // A user renames the key, and gives its old name to another key. The deletion must delete the renamed key.
    await renameKey("ci-bot", "renamed");
    await renameKey("decoy", "ci-bot");
    await harness.up({});
    expect(await names()).toEqual(["ci-bot"]);
    await deleteKey("ci-bot");
  });

  // Terraform creates the new key and deletes the old one in one update, so no deletion is left for a later run.
  it.skipIf(isTerraform)(
    "keeps the overlap if the run ends before the deletion of the old key, which a later run deletes",
    async () => {
      const program = (year: string) => key({ name: "ci-bot", keepers: { year }, overlap: 3 });
      await harness.up(program("a"));
      const replaced = harness.state.get("ci");
      await harness.up(program("b"));
      // An engine keeps the replaced resource in the state, and the next run deletes its object.
      if (replaced) harness.state.set("pending", replaced);
      await harness.up(program("b"));
      expect(await Promise.all([isValid(replaced?.outputs.key), isValid(outputs().key)])).toEqual([
        true,
        true,
      ]);
      expect(outputs().previous).toHaveLength(1);
      daysLater(4);
      await harness.up(program("b"));
      expect(await isValid(replaced?.outputs.key)).toBe(false);
    },
  );

  describe("after an out-of-band revocation of the new key during the overlap", () => {
    const program = (overlap = 3) => key({ validDays: -1, keepers: { year: "b" }, overlap });
    beforeEach(async () => {
      await harness.up(key({ validDays: -1, keepers: { year: "a" }, overlap: 3 }));
      await harness.up(program());
      await deleteKey(outputs().name);
      expect(await harness.refresh()).toEqual(["update ci"]);
      expect(await harness.refresh()).toEqual([]);
    });

    it("creates another key, and revokes the old one after the overlap", async () => {
      expect(await harness.up(program())).toEqual([EXPIRED]);
      expect(await names()).toHaveLength(2);
      daysLater(4);
      await harness.up(program());
      expect(await names()).toEqual([outputs().name]);
    });

    it("revokes the old key in the same up that creates another key, if there is no overlap", async () => {
      await harness.up(program(0));
      expect(await names()).toEqual([outputs().name]);
    });

    it("revokes the old key with the deletion of the resource", async () => {
      await harness.up({});
      expect(await names()).toEqual([]);
    });
  });

  it("does not rename another key to free the name", async () => {
    const program = (year: string) => key({ name: "deploy", keepers: { year } });
    await harness.up(program("a"));
    await renameKey("deploy", "deploy-old");
    await createKey("deploy");
    await expect(harness.up(program("b"))).rejects.toThrow(/The namespace already has an API key "deploy"/);
    expect(await names()).toEqual(["deploy", "deploy-old"]);
    await deleteKey("deploy");
  });

  it("supports resource and key names with a slash", async () => {
    const program: Program = {
      "team/ci": { type: "ApiKey", args: { validDays: 30, role: "observer" } },
      named: { type: "ApiKey", args: { validDays: 30, role: "observer", name: "team/one" } },
    };
    await harness.up(program);
    expect(await names()).toEqual([
      expect.stringMatching(isTerraform ? /^ApiKey-[0-9a-f]{8}$/ : /^team-ci-[0-9a-f]{8}$/),
      "team/one",
    ]);
    expect(await harness.refresh()).toEqual([]);
    await harness.up({
      ...program,
      named: { type: "ApiKey", args: { validDays: 30, role: "operator", name: "team/two" } },
    });
    expect(await names()).toContain("team/two");
  });

  it("rejects a name that another key has, and reports the remedy", async () => {
    await createKey("taken");
    await expect(harness.up(key({ name: "taken" }))).rejects.toThrow(
      /name: The namespace already has an API key "taken".*choose another name/,
    );
    await deleteKey("taken");
  });
});

it("rejects a chosen secret that another key has, before any request", async () => {
  const sent: unknown[] = [];
  const createApiKey = async ({ body }: { readonly body: { readonly key: string } }) => {
    sent.push(body.key);
    throw new Error("no response");
  };
  const connectionTo = (isTaken: boolean) =>
    ({
      tenant: async (tenant: string) => ({ tenant, client: { createApiKey } }),
      opens: async () => isTaken,
    }) as unknown as Connection;
  const origin = { name: "ci", chosen: { key: "secret" }, replaced: undefined } as unknown as Origin;
  const create = (isTaken: boolean) =>
    definition.create(connectionTo(isTaken), { tenant: fleet.tenant, validDays: 30 }, origin);
  await expect(create(true)).rejects.toThrow(/already has this secret/);
  expect(sent).toEqual([]);
  await expect(create(false)).rejects.toThrow();
  expect(sent).toEqual(["secret"]);
});
