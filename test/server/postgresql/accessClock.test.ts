import { expect, test } from "vitest";
import { HOUR } from "../../../sdk/times.ts";
import { AccessClock } from "../../../server/process/accessClock.ts";
import { turnableTime, withSharedApp } from "../http/appOfTest.ts";

const app = withSharedApp();
/** The maximum difference of two times that are read one after the other, in milliseconds. */
const READ = 5000;

test.each([HOUR, -HOUR])(
  "the time is the time of the database if the clock of the host differs by %i ms",
  async (ahead) => {
    const now = () => new Date(Date.now() + ahead);
    const clock = new AccessClock({ db: app.services.db, now });
    await clock.measure();
    expect(Math.abs(clock.time().getTime() - Date.now())).toBeLessThan(READ);
  },
);

test("the time advances between two measurements, and does not go back with a measurement", async () => {
  const pass = turnableTime();
  const clock = new AccessClock(app.services);
  await clock.measure();
  pass(HOUR);
  const late = clock.time();
  expect(late.getTime() - Date.now()).toBeGreaterThan(HOUR - READ);
  await clock.measure();
  expect(clock.time()).toEqual(late);
});

test("the time of the host that was returned before the first measurement does not go back", async () => {
  const clock = new AccessClock({ ...app.services, now: () => new Date(Date.now() + HOUR) });
  const before = clock.time();
  await clock.measure();
  expect(clock.time()).toEqual(before);
});
