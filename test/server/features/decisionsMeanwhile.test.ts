import { beforeEach, expect, test } from "vitest";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import { DENY_RULE, enroll, PUBLIC_KEY } from "../http/testApp.ts";

let uid: string;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
beforeEach(async () => {
  ({ uid } = await acceptedDevice(app, ana, "web-1"));
});

const ROUNDS = 60;

/**
 * Changes an object repeatedly between two states, and concurrently requests access decisions. Returns the different
 * decisions.
 */
async function decideWhile<T>(change: (round: number) => Promise<unknown>, decide: () => Promise<T>) {
  const decisions = new Set<T>();
  let changing = true;
  const collect = async () => {
    while (changing) decisions.add(await decide());
  };
  const collecting = [collect(), collect(), collect(), collect()];
  for (let round = 0; round < ROUNDS; round += 1) await change(round);
  changing = false;
  await Promise.all(collecting);
  return [...decisions];
}

const tagDevice = (tags: string[]) => ana.call("updateDeviceTags", { params: { uid }, body: { tags } });

test("admits no login that matches neither the old nor the new filter of a key", async () => {
  await tagDevice(["core"]);
  const { uid: other } = await enroll(app, ana.tenant, "00:00:00:00:00:02");
  await ana.call("updateDeviceTags", { params: { uid: other }, body: { tags: ["edge"] } });
  const filters = [{ tags: ["edge"] }, { hostname: "^db-" }];
  const key = { name: "key", username: "^root$" };
  const { body } = await ana.call("createPublicKey", { body: { ...PUBLIC_KEY, ...key, filter: filters[0] } });
  const params = { fingerprint: body.fingerprint };
  const decisions = await decideWhile(
    async (round) => {
      const filter = filters[(round + 1) % 2];
      const { status } = await ana.call("updatePublicKey", { params, body: { ...key, filter } });
      expect(status).toBe(200);
    },
    async () => {
      const answer = await internal.call("evaluatePublicKey", {
        params: { ...params, username: "root" },
        body: { tenant_id: ana.tenant, name: "web-1", tags: ["core"] },
      });
      return answer.body;
    },
  );
  expect(decisions).toEqual([false]);
});

test("enforces a rule while its tag is renamed", async () => {
  await tagDevice(["edge"]);
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, filter: { tags: ["edge"] } } });
  const names = ["edge", "core"];
  const decisions = await decideWhile(
    async (round) => {
      const [from = "", to] = round % 2 === 0 ? names : names.toReversed();
      const { status } = await ana.call("renameTag", { params: { tag: from }, body: { tag: to } });
      expect(status).toBe(200);
    },
    async () => {
      const query = { domain: "lab", name: "web-1", username: "root", ip_address: "10.0.0.7" };
      return (await internal.call("evaluateFirewall", { query })).status;
    },
  );
  expect(decisions).toEqual([403]);
});
