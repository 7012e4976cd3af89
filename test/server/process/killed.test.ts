import { expect, test } from "vitest";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { startService, type TestService, testService } from "../../support/service.ts";

const json = { "content-type": "application/json" };

async function login(service: TestService, body: object): Promise<Record<string, string>> {
  const { token } = (await call(service, "POST /api/login", { body })).body;
  return { ...json, authorization: `Bearer ${token}` };
}

/** Returns the names of all objects of a list. For a connector, the name is its address. */
async function namesIn(url: string, headers: Record<string, string>): Promise<Set<string>> {
  const names = new Set<string>();
  for (let page = 1; ; page += 1) {
    const response = await fetch(`${url}?page=${page}&per_page=100`, { headers });
    const objects = (await response.json()) as { name?: string; address: string }[];
    for (const { name, address } of objects) names.add(name ?? address);
    if (objects.length < 100) return names;
  }
}

// Only the cloud edition has connectors.
const env = {
  GATEHOUSE_EDITION: "cloud",
  GATEHOUSE_PUBLIC_URL: "https://access.example.com",
  GATEHOUSE_MAXIMUM_CONNECTORS: "0",
};

/**
 * Kinds of objects. The service writes some kinds with Prisma's client. It writes the other kinds with SQL statements,
 * of which several share one COMMIT.
 */
const kinds = {
  connector: { path: "/api/connector", writers: 4, body: (name: string) => ({ address: name, port: 2375 }) },
  namespace: { path: "/api/namespaces", writers: 4, body: (name: string) => ({ name }) },
  publicKey: {
    path: "/api/sshkeys/public-keys",
    writers: 12,
    body: (name: string) => ({
      name,
      data: Buffer.from(sshKeyLine()).toString("base64"),
      username: ".*",
      filter: { hostname: ".*" },
    }),
  },
};

test.each(Object.entries(kinds))(
  "every %s that was acknowledged before the process was killed exists afterwards",
  {
    timeout: 180_000,
    // The test needs hundreds of writes, and kills the process during them. sqlite/restore.test.ts tests a single
    // write.
    tags: ["long"],
  },
  async (_, { path, writers, body: bodyOf }) => {
    const dataDir = testFolder();
    const first = await startService({ dataDir, env });
    const user = await first.setup();
    const headers = await login(first, user);
    const acknowledged: string[] = [];
    let killed = false;
    const write = async (writer: number) => {
      for (let index = 0; !killed; index += 1) {
        const name = `${writer}-${index}`;
        try {
          const response = await fetch(first.url + path, {
            method: "POST",
            headers: { ...headers, "Idempotency-Key": name },
            body: JSON.stringify(bodyOf(name)),
          });
          if (response.status === 200) acknowledged.push(name);
        } catch (error) {
          if (!killed) throw error;
        }
      }
    };
    const writing = Array.from({ length: writers }, (__, writer) => write(writer));
    await expect.poll(() => acknowledged.length, { timeout: 120_000, interval: 5 }).toBeGreaterThan(150);
    killed = true;
    await first.kill();
    await Promise.all(writing);

    const second = await testService({ dataDir, env });
    const names = await namesIn(second.url + path, await login(second, user));
    expect(acknowledged.filter((name) => !names.has(name))).toEqual([]);
  },
);
