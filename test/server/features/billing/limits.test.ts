import { expect, test } from "vitest";
import { forgetRemovedDevices } from "../../../../server/features/billing/upkeep.ts";
import { shared } from "../../../support/shared.ts";
import type { TestUser } from "../../http/testApp.ts";
import { accept, accepted, fleet, startCloud, subscribe } from "./support.ts";

const DAY = 24 * 3600;

const app = shared(startCloud);

const remove = async (user: TestUser, uid = "") =>
  (await user.call("deleteDevice", { params: { uid } })).status;
const removed = async (user: TestUser) =>
  (await user.call("getDevices", { query: { status: "removed" } })).body;

test("enforces the limit for concurrent acceptances", async () => {
  for (const round of [1, 2, 3]) {
    const user = await app.user(`crowd${round}`, `crowd${round}`);
    const uids = await fleet(app, user.tenant, 8);
    const statuses = await Promise.all(uids.map((uid) => accept(user, uid)));
    expect(statuses.sort()).toEqual([200, 200, 200, 402, 402, 402, 402, 402]);
    expect(await accepted(app, user)).toBe(3);
  }
});

test("counts removed devices in concurrent removals and acceptances", async () => {
  const user = await app.user("rush", "rush");
  const uids = await fleet(app, user.tenant, 9);
  for (const uid of uids.slice(0, 3)) expect(await accept(user, uid)).toBe(200);
  await Promise.all([
    ...uids.slice(0, 3).map((uid) => remove(user, uid)),
    ...uids.slice(3).map((uid) => accept(user, uid)),
  ]);
  expect((await accepted(app, user)) + (await removed(user)).length).toBe(3);
});

test("has no limit with a subscription, and deletes devices completely", async () => {
  const user = await app.user("payer", "payers");
  expect(await subscribe(user)).toEqual([200, 200, 200]);
  const uids = await fleet(app, user.tenant, 5);
  for (const uid of uids) expect(await accept(user, uid)).toBe(200);
  expect(await remove(user, uids[0])).toBe(200);
  expect(await removed(user)).toEqual([]);
  expect((await user.call("getDevice", { params: { uid: uids[0] ?? "" } })).status).toBe(404);
});

test("keeps the slot of a removed device for 30 days", async () => {
  const cloud = await startCloud();
  const user = await cloud.user("free", "free");
  const [first = "", ...others] = await fleet(cloud, user.tenant, 4);
  for (const uid of [first, ...others.slice(0, 2)]) expect(await accept(user, uid)).toBe(200);
  const token = () => cloud.tokenOf(user);
  const list = async (status: string) =>
    (await cloud.call("getDevices", { token: await token(), query: { status } })).body.map(
      ({ uid, acceptable }: { uid: string; acceptable: boolean }) => [uid, acceptable],
    );
  await cloud.call("deleteDevice", { token: await token(), params: { uid: first } });
  expect(await list("removed")).toEqual([[first, true]]);
  expect(await list("pending")).toEqual([[others[2], false]]);
  expect(await accept(user, others[2])).toBe(402);
  const again = { ...user, token: await token() };
  expect([await remove(again, first), await accept(again, first), await remove(again, first)]).toEqual([
    404, 200, 200,
  ]);
  await forgetRemovedDevices(cloud.services);
  expect(await list("removed")).toHaveLength(1);

  cloud.pass(30 * DAY + 1);
  expect(await list("pending")).toEqual([[others[2], true]]);
  await forgetRemovedDevices(cloud.services);
  expect(await list("removed")).toEqual([]);
  expect(await cloud.services.db.device.count()).toBe(3);
  await cloud.stop();
});
