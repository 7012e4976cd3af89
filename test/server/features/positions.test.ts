import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Positions } from "../../../server/process/positions.ts";
import { testFolder } from "../../support/folder.ts";
import { at, mmdbOf } from "../../support/mmdb.ts";
import { testApp } from "../http/appOfTest.ts";
import { enroll, reportOf } from "../http/testApp.ts";

const RIO = { latitude: -22.9, longitude: -43.2 };
const OSLO = { latitude: 59.9, longitude: 10.7 };
const UNKNOWN = { latitude: 0, longitude: 0 };

function positionsIn(records: Parameters<typeof mmdbOf>[0]) {
  const file = join(testFolder(), "city.mmdb");
  const write = (next: typeof records) => writeFileSync(file, mmdbOf(next));
  write(records);
  const errors: unknown[] = [];
  return { file, write, errors, positions: new Positions(file, (error) => errors.push(error)) };
}

const CITY = { "8.8.8.8": at(RIO.latitude, RIO.longitude), "9.9.9.9": at(OSLO.latitude, OSLO.longitude) };

test("returns the file's position of an address, and no position for others", () => {
  const { positions, errors } = positionsIn({
    ...CITY,
    "8.8.4.4": { country: "none" },
    "8.8.4.5": at(91, 0),
    "8.8.4.6": { location: { latitude: "1", longitude: 2 } },
    "10.0.0.1": at(1, 2),
    "192.168.1.1": at(1, 2),
    "127.0.0.1": at(1, 2),
  });
  expect(positions.of("8.8.8.8")).toEqual(RIO);
  expect(positions.of("::ffff:8.8.8.8")).toEqual(RIO);
  expect(positions.of("9.9.9.9")).toEqual(OSLO);
  for (const address of ["8.8.4.4", "8.8.4.5", "8.8.4.6", "8.8.8.9", "2001:4860::1", "", "text"]) {
    expect(positions.of(address), address).toEqual(UNKNOWN);
  }
  for (const address of ["10.0.0.1", "192.168.1.1", "127.0.0.1", "fd00::1", "fe80::1", "::1"]) {
    expect(positions.of(address), address).toEqual(UNKNOWN);
  }
  expect(errors).toEqual([]);
});

test("reads the file again on request, and keeps the old positions if the new file is invalid", () => {
  const { positions, file, write } = positionsIn(CITY);
  expect(positions.of("8.8.8.8")).toEqual(RIO);
  write({ "8.8.8.8": at(OSLO.latitude, OSLO.longitude) });
  expect(positions.of("8.8.8.8")).toEqual(RIO);
  positions.reload();
  expect(positions.of("8.8.8.8")).toEqual(OSLO);
  writeFileSync(file, "nonsense");
  expect(() => positions.reload()).toThrow(/GEOIP_FILE\) is not a database in the MaxMind format\. Use an/);
  expect(positions.of("8.8.8.8")).toEqual(OSLO);
});

test("reports a missing file with its setting", () => {
  expect(() => new Positions("/nonexistent.mmdb", () => {})).toThrow(
    /^Cannot read the position file \/nonexistent\.mmdb \(GATEHOUSE_GEOIP_FILE\): it does not exist/,
  );
});

test("stores a device's position from the current file at each report", async () => {
  const { positions, write } = positionsIn(CITY);
  const app = await testApp({ trustedProxies: ["127.0.0.1"] }, undefined, {
    positionOf: (address) => positions.of(address),
  });
  const ana = await app.user("ana", "lab");
  const reportFrom = async (address: string) => {
    const headers = { "x-real-ip": address };
    const answer = await app.call("authDevice", { body: reportOf(ana.tenant, "h"), headers });
    expect(answer.status).toBe(200);
    return (await ana.call("getDevice", { params: { uid: answer.body.uid } })).body.position;
  };
  expect(await reportFrom("8.8.8.8")).toEqual(RIO);
  expect(await reportFrom("9.9.9.9")).toEqual(OSLO);
  expect(await reportFrom("10.0.0.1")).toEqual(UNKNOWN);
  expect(await reportFrom("8.8.8.8")).toEqual(RIO);
  write({ "8.8.8.8": at(OSLO.latitude, OSLO.longitude) });
  positions.reload();
  expect(await reportFrom("8.8.8.8")).toEqual(OSLO);
});

test("returns 0,0 without a file", async () => {
  const app = await testApp();
  const ana = await app.user("ana", "lab");
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  const { body } = await ana.call("getDevice", { params: { uid } });
  expect(body.position).toEqual(UNKNOWN);
});
