import { dirname } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { makeMetrics } from "../../../server/metrics.ts";
import { DiskSpace } from "../../../server/process/DiskSpace.ts";
import type { Services } from "../../../server/services.ts";
import { newDatabase } from "../db/database.ts";

const GIB = 1024 ** 3;
async function start() {
  const { location, remove } = await newDatabase();
  onTestFinished(remove);
  if (!("file" in location)) throw new Error("this test needs SQLite");
  const database = await openDatabase(location);
  onTestFinished(() => database.close());
  const metrics = makeMetrics();
  const logged: string[] = [];
  const write = (level: string) => () => void logged.push(level);
  const services = { db: database.client, metrics } as unknown as Services;
  const folder = dirname(location.file);
  const log = { warn: write("warn"), info: write("info") } as never;
  let space = { free: 0, all: 0 };
  const disk = new DiskSpace(services, folder, log, async (measuredFolder) => {
    expect(measuredFolder).toBe(folder);
    return space;
  });
  /** Measures a file system, and returns the free bytes in the metric. */
  const measured = async (free: number, all: number) => {
    space = { free, all };
    await disk.measure();
    const [gauge] = (await metrics.freeSpace.get()).values;
    return gauge?.value ?? 0;
  };
  return { db: database.client, services, folder, logged, measured };
}

test("low free space is logged once per change", async () => {
  const { logged, measured } = await start();
  const MIB = 1024 ** 2;
  expect(await measured(600 * MIB, 10 * GIB)).toBeGreaterThanOrEqual(600 * MIB);
  expect(logged).toEqual([]);
  await measured(400 * MIB, GIB);
  await measured(400 * MIB, GIB);
  expect(logged).toEqual(["warn"]);
  await measured(40 * GIB, 1000 * GIB);
  expect(logged).toEqual(["warn"]);
  await measured(60 * GIB, 1000 * GIB);
  expect(logged).toEqual(["warn", "info"]);
});

test("the pages of deleted rows count as free space", async () => {
  const { db, measured } = await start();
  const before = await measured(GIB, 10 * GIB);
  const content = "x".repeat(2 * 1024 ** 2);
  await db.announcement.create({ data: { uuid: "a", title: "News", content, date: new Date() } });
  await db.announcement.deleteMany();
  expect((await measured(GIB, 10 * GIB)) - before).toBeGreaterThan(1024 ** 2);
});

test("the real file system of the database has free space", async () => {
  const { folder, services } = await start();
  await new DiskSpace(services, folder, { warn() {}, info() {} } as never).measure();
  const [gauge] = (await services.metrics.freeSpace.get()).values;
  expect(gauge?.value).toBeGreaterThan(0);
});
