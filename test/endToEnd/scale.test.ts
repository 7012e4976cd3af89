import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { Stack } from "../support/gatehouse.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("./fixtures/manyKeys", import.meta.url));
const KEYS = 120;

const fleet = sharedFleet();
let stack: Stack;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-scale-"));
  const file = join(folder, "keys");
  writeFileSync(file, Array.from({ length: KEYS }, (_, index) => sshKeyLine(`key-${index}`)).join("\n"));
  stack = new Stack({ program: PROGRAM, folder, engine: "embedded", env: { ...fleet.env, KEYS: file } });
});

afterAll(() => {
  stack?.dispose();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const isWrite = (request: string) => !request.startsWith("GET ") && request !== "POST /api/login";

it("an up of 120 keys sends one request for each key, no write without changes, and few requests to read all keys", {
  timeout: 120_000,
  tags: ["long"],
}, async () => {
  const created = await requestsDuring(fleet.service, () => stack.result(["up", "--yes"]));
  expect(created.filter(isWrite)).toEqual(Array(KEYS).fill("POST /api/sshkeys/public-keys"));
  expect(created.length - KEYS).toBeLessThanOrEqual(20);

  const unchanged = await requestsDuring(fleet.service, async () => {
    const result = await stack.result(["up", "--yes"]);
    expect(result.summary).toMatchObject({ same: KEYS + 1, create: 0, update: 0 });
  });
  expect(unchanged.filter(isWrite)).toEqual([]);
  expect(unchanged.length).toBeLessThanOrEqual(20);

  const read = await requestsDuring(fleet.service, async () => {
    const result = await stack.result(["drift"]);
    expect(result.summary).toMatchObject({ same: KEYS + 1, update: 0, delete: 0 });
  });
  expect(read.filter(isWrite)).toEqual([]);
  // `drift` lists the keys twice: to compare them with the state, and to find unmanaged keys in the namespace.
  expect(read.length).toBeLessThanOrEqual(2 * Math.ceil(KEYS / 100) + 20);

  const state = stack.stateText("many-keys");
  const perResource = Buffer.byteLength(state) / KEYS;
  expect(perResource).toBeLessThan(4_000);
});
