import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { startService, type TestService } from "../support.ts";

const json = { "content-type": "application/json" };

async function login(service: TestService, credentials: object): Promise<Record<string, string>> {
  const response = await fetch(`${service.url}/api/login`, {
    method: "POST",
    headers: json,
    body: JSON.stringify(credentials),
  });
  const { token } = (await response.json()) as { token: string };
  return { ...json, authorization: `Bearer ${token}` };
}

async function namespaceNames(service: TestService, headers: Record<string, string>): Promise<Set<string>> {
  const names = new Set<string>();
  for (let page = 1; ; page += 1) {
    const response = await fetch(`${service.url}/api/namespaces?page=${page}&per_page=100`, { headers });
    const namespaces = (await response.json()) as { name: string }[];
    for (const { name } of namespaces) names.add(name);
    if (namespaces.length < 100) return names;
  }
}

test("every write that was acknowledged before the process was killed is there afterwards", {
  timeout: 180_000,
  // Hundreds of writes, and a kill in the midst of them; what one write survives is in sqlite/restore.test.ts.
  tags: ["long"],
}, async () => {
  const dataDir = testFolder();
  const first = await startService({ dataDir });
  const user = await first.setup();
  const headers = await login(first, user);
  const acknowledged: string[] = [];
  let killed = false;
  const writer = async (prefix: string) => {
    for (let index = 0; !killed; index += 1) {
      const name = `${prefix}-${index}`;
      try {
        const body = JSON.stringify({ name });
        const response = await fetch(`${first.url}/api/namespaces`, { method: "POST", headers, body });
        if (response.status === 200) acknowledged.push(name);
      } catch (error) {
        if (!killed) throw error;
      }
    }
  };
  const writers = ["a", "b", "c", "d"].map(writer);
  await expect.poll(() => acknowledged.length, { timeout: 120_000, interval: 5 }).toBeGreaterThan(150);
  killed = true;
  await first.kill();
  await Promise.all(writers);

  const second = await startService({ dataDir });
  const names = await namespaceNames(second, await login(second, user));
  expect(acknowledged.filter((name) => !names.has(name))).toEqual([]);
  await second.stop();
});
