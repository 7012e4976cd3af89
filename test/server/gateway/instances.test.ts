import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { providerOf } from "../../../server/db/sql/sql.ts";
import { Instances } from "../../../server/gateway/agentTunnels/Instances.ts";
import { turnableTime, withSharedApp } from "../http/lab.ts";

const app = withSharedApp();
const isSqlite = () => providerOf(app.services.db) === "sqlite";
beforeEach(() => app.services.db.instance.deleteMany());

/** Creates an instance whose clock is ahead by the given number of milliseconds. */
const instance = (ahead = 0): Instances => {
  const now = () => new Date(Date.now() + ahead);
  return new Instances({ ...app.services, now }, undefined, () => pino({ level: "silent" }));
};
const known = async (): Promise<string[]> =>
  (await app.services.db.instance.findMany()).map(({ id }) => id).sort();

/** Changes the last sign of life of an instance to an old time, as if the instance had ended. */
const outdate = ({ id }: Instances) =>
  app.services.db.instance.update({ where: { id }, data: { lastSeen: new Date(Date.now() - 300_000) } });

test("an instance whose clock is ahead clears no other instance", async (context) => {
  context.skip(isSqlite(), "one process at a time uses an SQLite file");
  const pass = turnableTime();
  const [right, ahead] = [instance(), instance(75_000)];
  await right.sign();
  for (let signs = 0; signs < 8; signs += 1) {
    await ahead.sign();
    pass(10_000);
  }
  expect(await known()).toEqual([right.id, ahead.id].sort());
  await outdate(right);
  await ahead.sign();
  expect(await known()).toEqual([ahead.id]);
});

test("an instance clears other instances only after its own signs of life have succeeded for a minute", async (context) => {
  context.skip(isSqlite(), "one process at a time uses an SQLite file");
  const pass = turnableTime();
  const [one, other] = [instance(), instance()];
  await other.sign();
  await outdate(other);
  const signs = async (count: number) => {
    for (let sign = 0; sign < count; sign += 1) {
      await one.sign();
      pass(10_000);
    }
  };
  await signs(6);
  // After an outage of 75 seconds, no instance has a recent sign of life, so `one` cannot know whether `other` still
  // runs.
  pass(75_000);
  await signs(6);
  expect(await known()).toEqual([one.id, other.id].sort());
  await signs(1);
  expect(await known()).toEqual([one.id]);
});

test("a process on SQLite clears all earlier instances, which have ended", async (context) => {
  context.skip(!isSqlite(), "several processes use a PostgreSQL database");
  const [one, other] = [instance(), instance()];
  await one.sign();
  await other.sign();
  expect(await known()).toEqual([other.id]);
});
