import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  newKey,
  openFolder,
  publicHalf,
  type SshService,
  someAtATime,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";
import { type SshProxy, startSshProxy } from "../support/sshProxy.ts";
import {
  choosePolicy,
  chooseQuestions,
  DEVICES,
  decide,
  KEYS,
  type Outcome,
  type Policy,
  PROXIED,
  PROXY,
  policy,
  type Question,
  question,
  SLIPS,
  type Told,
} from "./policies.ts";

/** Logins of a client at a time: they share the machine's cores. */
const AT_A_TIME = 6;

/** What the operator reads of logins, as what became of them. */
const TOLD: Readonly<Record<string, Outcome>> = {
  key: "refused by key",
  filter: "refused by key",
  firewall: "refused by rule",
};

describe.skipIf(withoutSsh)(`logins by OpenSSH${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  const paths = new Map<string, string>();
  let fleet: SshService;
  let agents: TestAgent[] = [];
  const proxies = new Map<string, SshProxy>();

  beforeAll(async () => {
    for (const name of KEYS) paths.set(name, newKey(folder.path, name, name === "two" ? "rsa" : "ed25519"));
    fleet = await startSshService({ flags: ["--trusted-proxies", PROXY] });
    const { service, tenant, client, port } = fleet;
    for (const [address, headerOf] of Object.entries(PROXIED)) {
      proxies.set(address, await startSshProxy({ port, from: PROXY, header: headerOf(address) }));
    }
    agents = await Promise.all(
      Object.keys(DEVICES).map((hostname) =>
        startAgent({ url: service.url, tenant, hostname, folder: folder.path }),
      ),
    );
    for (const { uid, hostname } of agents) {
      await client.acceptDevice({ params: { uid } });
      const tags = [...DEVICES[hostname as keyof typeof DEVICES]];
      await client.updateDeviceTags({ params: { uid }, body: { tags } });
    }
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const proxy of proxies.values()) proxy.stop();
    await fleet?.stop();
    folder.remove();
  });

  /** Makes the namespace's keys and rules those of a policy. */
  async function declare({ keys, rules }: Policy): Promise<void> {
    const { client } = fleet;
    for (const { fingerprint } of await client.getPublicKeys({})) {
      await client.deletePublicKey({ params: { fingerprint } });
    }
    for (const { id } of await client.getFirewallRules({}))
      await client.deleteFirewallRule({ params: { id } });
    for (const [index, declared] of keys.entries()) {
      if (declared === null) continue;
      const name = KEYS[index] as string;
      const { username, filter } = declared;
      const data = publicHalf(paths.get(name) as string);
      await client.createPublicKey({
        body: { name, data, username, filter: filter as { hostname: string } },
      });
    }
    for (const { filter, ...body } of rules) {
      await client.createFirewallRule({ body: { ...body, filter: filter as { hostname: string } } });
    }
  }

  const targetOf = ({ login, device }: Question) => `${login}@${fleet.namespace}.${device}`;

  /** Logs in, and sees whether that is what the policy says. */
  async function compare(declared: Policy, asked: Question): Promise<Outcome> {
    const expected = decide(declared, asked);
    const proxy = proxies.get(asked.address);
    const { code, stdout, stderr } = await ssh({
      to: targetOf(asked),
      key: paths.get(asked.key) as string,
      command: "echo $GATEHOUSE_HOST",
      ...(proxy ? { port: proxy.port } : { port: fleet.port, from: asked.address }),
    });
    const outcome = code === 0 && stdout === `${asked.device}\n` ? "in" : stderr.trim();
    const refused = `${targetOf(asked)}@127.0.0.1: Permission denied (publickey,password).`;
    const wanted = expected === "in" ? "in" : refused;
    expect(outcome, JSON.stringify({ declared, asked, expected })).toBe(wanted);
    return expected;
  }

  /** What the operator has read of logins since a line of the log. */
  const toldSince = (line: number) =>
    fleet.service
      .logs()
      .slice(line)
      .filter(({ msg }) => msg === "login to a device" || msg === "login to a device refused")
      .map(({ username, address, refused }) =>
        [username, address, refused === undefined ? "in" : (TOLD[String(refused)] ?? refused)].join(" "),
      );

  async function compareMany(rounds: number, each: number): Promise<void> {
    const outcomes = new Map<string, number>();
    const told: Told = new Map();
    const possible = fc.array(question, { minLength: 5 * each, maxLength: 5 * each });
    const some = fc.array(fc.tuple(policy, possible), { minLength: 4, maxLength: 4 });
    for (const policies of fc.sample(fc.noBias(some), { numRuns: rounds, seed: 20 })) {
      const { declared, possible } = choosePolicy(policies, told);
      await declare(declared);
      const questions = chooseQuestions(declared, possible, each, told);
      const line = fleet.service.logs().length;
      const expected: string[] = [];
      await someAtATime(questions, AT_A_TIME, async (asked) => {
        const outcome = await compare(declared, asked);
        expected.push([targetOf(asked), asked.address, outcome].join(" "));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      });
      // Clients see only that they are refused; the operator, that it was for the right reason.
      await expect.poll(() => toldSince(line).sort()).toEqual(expected.sort());
    }
    // All of them occur, so that none is right by always being the same; and no way to decide wrongly has gone unseen.
    expect([...outcomes.keys()].sort()).toEqual(["in", "refused by key", "refused by rule"]);
    expect([...told.keys()].sort()).toEqual(Object.keys(SLIPS).sort());
    expect([...outcomes.values()].reduce((sum, count) => sum + count, 0)).toBe(rounds * each);
    console.log(`${rounds * each} logins compared:`, Object.fromEntries([...outcomes, ...told]));
  }

  it("get in exactly when the policy says so", () => compareMany(10, 5));

  it("get in exactly when the policy says so, 400 times", { tags: ["long"], timeout: 600_000 }, () =>
    compareMany(40, 10),
  );
});
