import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { apiKey } from "../../provider/resources/apiKey.ts";
import type { Origin } from "../../provider/resources/definition.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { AuthenticationError, apiKeyCredential, createClient } from "../../sdk/index.ts";
import { sharedFleet } from "../support/shared.ts";
import { isTerraform } from "./support/frontDoor.ts";
import { Harness, type Program } from "./support/harness.ts";

const DAY = 86_400_000;
const fleet = sharedFleet();
let harness: Harness;

beforeEach(() => {
  harness = new Harness(fleet.env);
});
afterEach(async () => {
  vi.useRealTimers();
  await harness.up({});
  await harness.close();
  expect(await names()).toEqual([]);
});

const names = async () =>
  (await fleet.client.listApiKeys({ query: { perPage: 100 } })).map((key) => key.name).sort();
const key = (args: Record<string, unknown>): Program => ({
  ci: { type: "ApiKey", args: { validDays: 30, role: "observer", ...args } },
});
/** What the outputs say of the secret that a key had before: no state of Terraform has one. */
const previousKey = (secret: unknown) => (isTerraform ? {} : { previousKey: secret });
/** What is replaced because its time is over; a plan of Terraform does not say why. */
const OUTLIVED = `replace ci ${isTerraform ? "id" : "rotateBefore"}`;
const outputs = () => harness.state.get("ci")?.outputs ?? {};

async function works(secret: unknown): Promise<boolean> {
  const client = createClient({ url: fleet.service.url, credential: apiKeyCredential(String(secret)) });
  try {
    await client.getTags();
    return true;
  } catch (error) {
    if (error instanceof AuthenticationError) return false;
    throw error;
  } finally {
    await client.close();
  }
}

/** The provider's clock only: the service's own key goes on being valid. */
function daysLater(days: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * DAY });
}

describe("rotation of an API key", () => {
  it("is planned by the first up in the days before it expires", async () => {
    await harness.up(key({ rotateBefore: 7 }));
    daysLater(22);
    expect(await harness.preview(key({ rotateBefore: 7 }))).toEqual([]);
    daysLater(2);
    expect(await harness.preview(key({ rotateBefore: 7 }))).toEqual([OUTLIVED]);
  });

  it("replaces an expired key also where nothing says so", async () => {
    await harness.up(key({}));
    daysLater(31);
    expect(await harness.preview(key({}))).toEqual([OUTLIVED]);
  });

  it.each([{ name: undefined }, { name: "ci-bot" }])(
    "ends the old key with the same up: %o",
    async ({ name }) => {
      await harness.up(key({ name, keepers: { year: "a" } }));
      const { key: before } = outputs();
      await harness.up(key({ name, keepers: { year: "b" } }));
      expect(outputs()).toMatchObject({ ...previousKey(""), previous: [] });
      expect(await Promise.all([works(before), works(outputs().key)])).toEqual([false, true]);
      expect(await names()).toHaveLength(1);
      if (name) expect(await names()).toEqual([name]);
    },
  );

  it.each([{ name: undefined }, { name: "ci-bot" }])(
    "lets the old key go on for the overlap when it is replaced by --replace: %o",
    async ({ name }) => {
      const program = key({ name, overlap: 3 });
      await harness.up(program);
      const { key: before } = outputs();
      expect(await harness.up(program, { replace: ["ci"] })).toEqual(["replace ci id"]);
      expect(outputs().key).not.toBe(before);
      expect(outputs()).toMatchObject({ ...previousKey(before), previous: [{ tenant: fleet.tenant }] });
      expect(await works(before)).toBe(true);
      daysLater(4);
      await harness.up(program);
      expect(await works(before)).toBe(false);
    },
  );

  // Terraform asks no provider how: it destroys what it is told to replace.
  it.skipIf(isTerraform)(
    "cuts nobody off when an engine replaces it without showing it, and says what does",
    async () => {
      const program = key({ overlap: 3 });
      await harness.up(program);
      const { key: before } = outputs();
      await expect(harness.up(program, { force: ["ci"] })).rejects.toThrow(
        /ApiKey\.overlap: .*keepers.*gatehouse up/,
      );
      expect(await works(before)).toBe(true);
      expect(await harness.preview(program)).toEqual([]);
    },
  );

  it("lets the old keys go on for the overlap, and revokes them after it", async () => {
    const program = (year: string) => key({ name: "ci-bot", keepers: { year }, overlap: 3 });
    await harness.up(program("a"));
    const first = outputs().key;
    await harness.up(program("b"));
    const second = outputs().key;
    expect(outputs()).toMatchObject(previousKey(first));
    await harness.up(program("c"));
    expect(outputs()).toMatchObject(previousKey(second));
    expect(await Promise.all([first, second, outputs().key].map(works))).toEqual([true, true, true]);
    expect(await harness.preview(program("c"))).toEqual([]);

    daysLater(4);
    expect(await harness.preview(program("c"))).toEqual(["update ci"]);
    await harness.up(program("c"));
    expect(outputs()).toMatchObject({ ...previousKey(""), previous: [] });
    expect(await names()).toEqual(["ci-bot"]);
    expect(await Promise.all([first, second, outputs().key].map(works))).toEqual([false, false, true]);
  });

  it("shows a client that takes each new key not one refusal", async () => {
    const program = (year: string) => key({ keepers: { year }, overlap: 1 });
    await harness.up(program("a"));
    let stopped = false;
    let refusals = 0;
    let calls = 0;
    const client = (async () => {
      while (!stopped) {
        calls += 1;
        if (!(await works(outputs().key))) refusals += 1;
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

  it("is followed by what does not change when somebody renames the key, and its name is set back", async () => {
    await harness.up(key({ name: "ci-bot" }));
    await fleet.client.updateApiKey({ params: { key: "ci-bot" }, body: { name: "renamed" } });
    await fleet.client.createApiKey({ body: { name: "decoy", expiresAt: 30, role: "observer" } });
    expect(await harness.refresh()).toEqual(["update ci"]);
    await harness.up(key({ name: "ci-bot" }));
    expect(await names()).toEqual(["ci-bot", "decoy"]);
    // The deletion, too, means the key and not the name.
    await fleet.client.updateApiKey({ params: { key: "ci-bot" }, body: { name: "renamed" } });
    await fleet.client.updateApiKey({ params: { key: "decoy" }, body: { name: "ci-bot" } });
    await harness.up({});
    expect(await names()).toEqual(["ci-bot"]);
    await fleet.client.deleteApiKey({ params: { key: "ci-bot" } });
  });

  // The update of Terraform that makes a key deletes the one before, too: nothing is left for another run.
  it.skipIf(isTerraform)(
    "keeps the overlap when the run dies before it deletes what it replaced: a later one does that",
    async () => {
      const program = (year: string) => key({ name: "ci-bot", keepers: { year }, overlap: 3 });
      await harness.up(program("a"));
      const replaced = harness.state.get("ci");
      await harness.up(program("b"));
      // As an engine keeps it, to be deleted by the next run.
      if (replaced) harness.state.set("pending", replaced);
      await harness.up(program("b"));
      expect(await Promise.all([works(replaced?.outputs.key), works(outputs().key)])).toEqual([true, true]);
      expect(outputs().previous).toHaveLength(1);
      daysLater(4);
      await harness.up(program("b"));
      expect(await works(replaced?.outputs.key)).toBe(false);
    },
  );

  describe("whose new key somebody revoked while the old one goes on", () => {
    const program = (overlap = 3) => key({ validDays: -1, keepers: { year: "b" }, overlap });
    beforeEach(async () => {
      await harness.up(key({ validDays: -1, keepers: { year: "a" }, overlap: 3 }));
      await harness.up(program());
      await fleet.client.deleteApiKey({ params: { key: String(outputs().name) } });
      expect(await harness.refresh()).toEqual(["update ci"]);
      expect(await harness.refresh()).toEqual([]);
    });

    it("makes another one, and ends the old one after the overlap", async () => {
      expect(await harness.up(program())).toEqual([OUTLIVED]);
      expect(await names()).toHaveLength(2);
      daysLater(4);
      await harness.up(program());
      expect(await names()).toEqual([outputs().name]);
    });

    it("ends the old one with the up that makes another one without an overlap", async () => {
      await harness.up(program(0));
      expect(await names()).toEqual([outputs().name]);
    });

    it("ends the old one with the resource", async () => {
      await harness.up({});
      expect(await names()).toEqual([]);
    });
  });

  it("gives way in the name to its own key only", async () => {
    const program = (year: string) => key({ name: "deploy", keepers: { year } });
    await harness.up(program("a"));
    await fleet.client.updateApiKey({ params: { key: "deploy" }, body: { name: "deploy-old" } });
    await fleet.client.createApiKey({ body: { name: "deploy", expiresAt: 30, role: "observer" } });
    await expect(harness.up(program("b"))).rejects.toThrow(/the namespace already has an API key "deploy"/);
    expect(await names()).toEqual(["deploy", "deploy-old"]);
    await fleet.client.deleteApiKey({ params: { key: "deploy" } });
  });

  it("is that of its resource whatever its name: with a slash, and generated from one", async () => {
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

  it("of a name that another key has is refused, and says what to do", async () => {
    await fleet.client.createApiKey({ body: { name: "taken", expiresAt: 30, role: "observer" } });
    await expect(harness.up(key({ name: "taken" }))).rejects.toThrow(
      /ApiKey\.name: the namespace already has an API key "taken".*choose another name/,
    );
    await fleet.client.deleteApiKey({ params: { key: "taken" } });
  });
});

it("refuses a secret from the program that another key has, before any request", async () => {
  const sent: unknown[] = [];
  const createApiKey = async ({ body }: { readonly body: { readonly key: string } }) => {
    sent.push(body.key);
    throw new Error("no answer");
  };
  const connectionTo = (isTaken: boolean) =>
    ({
      tenant: async (tenant: string) => ({ tenant, client: { createApiKey } }),
      opens: async () => isTaken,
    }) as unknown as Connection;
  const origin = { name: "ci", chosen: { key: "secret" }, replaced: undefined } as unknown as Origin;
  const create = (isTaken: boolean) =>
    apiKey.create(connectionTo(isTaken), { tenant: fleet.tenant, validDays: 30 }, origin);
  await expect(create(true)).rejects.toThrow(/already has this secret/);
  expect(sent).toEqual([]);
  await expect(create(false)).rejects.toThrow();
  expect(sent).toEqual(["secret"]);
});
