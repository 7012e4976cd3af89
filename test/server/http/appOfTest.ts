import { TOTP } from "otpauth";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, vi } from "vitest";
import { startInternalApp, type TestInternalApp } from "./internalTestApp.ts";
import { startApp, type TestApp, type TestUser } from "./testApp.ts";

type Start = Parameters<typeof startApp>;

/**
 * Returns a proxy that test files can declare before a test starts. Each access uses the object that the current test
 * has started.
 */
function currentProxy<T extends object>(what: string, current: () => T | undefined): T {
  const ofNow = () => {
    const value = current();
    if (value === undefined) throw new Error(`${what} exists only while a test runs`);
    return value;
  };
  return new Proxy({} as T, {
    get: (_, key) => Reflect.get(ofNow(), key),
    ownKeys: () => Reflect.ownKeys(ofNow()),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(ofNow(), key);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}

/** Starts an object before each test of the file or `describe`, and stops the object after the test. */
function eachTest<T extends { stop(): Promise<void> }>(what: string, start: () => Promise<T>): T {
  let current: T | undefined;
  beforeEach(async () => {
    current = await start();
  });
  afterEach(async () => {
    await current?.stop();
    current = undefined;
  });
  return currentProxy(what, () => current);
}

/** Starts a service that stops when the calling test ends. */
export async function testApp(...how: Start): Promise<TestApp> {
  const app = await startApp(...how);
  onTestFinished(() => app.stop());
  return app;
}

/** Starts a separate service for each test, with the parameters of {@link startApp}. */
export const withApp = (...how: Start): TestApp => eachTest("a service", () => startApp(...how));

/** Starts a separate service for each test. The user `ana` owns the namespace `lab` of this service. */
export function withAppAndUser(...how: Start): { readonly app: TestApp; readonly ana: TestUser } {
  const app = withApp(...how);
  let ana: TestUser | undefined;
  beforeEach(async () => {
    ana = await app.user("ana", "lab");
  });
  return { app, ana: currentProxy("ana", () => ana) };
}

/** The internal listener of each test's service. */
export const withInternalApp = (app: TestApp): TestInternalApp =>
  eachTest("an internal listener", () => startInternalApp(app));

/** One service for all tests of the file or `describe`. A test must not affect the other tests. */
export function withSharedApp(...how: Start): TestApp {
  let app: TestApp | undefined;
  beforeAll(async () => {
    app = await startApp(...how);
  });
  afterAll(() => app?.stop());
  return currentProxy("a service", () => app);
}

/** Enables MFA for a user. `code` returns the code of the current time step, or of another time step. */
export async function enableMfa(app: TestApp, user: TestUser) {
  await user.call("updateUser", { body: { recovery_email: `${user.username}@recovery.org` } });
  const { secret, recovery_codes } = (await user.call("generateMfa")).body;
  const totp = new TOTP({ secret });
  const code = (steps = 0) => totp.generate({ timestamp: app.services.now().getTime() + steps * 30_000 });
  const enabled = await user.call("enableMfa", { body: { code: code(), secret, recovery_codes } });
  expect(enabled.status).toBe(200);
  return { secret, recoveryCodes: recovery_codes as string[], code };
}

/**
 * Returns a function that advances `performance.now()` by milliseconds, until the test ends. The readiness check and
 * the instances' signs of life use this clock.
 */
export function turnableTime(): (milliseconds: number) => void {
  const { now } = performance;
  let ahead = 0;
  const turned = vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + ahead);
  onTestFinished(() => turned.mockRestore());
  return (milliseconds) => {
    ahead += milliseconds;
  };
}
