import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { listening } from "../support/listening.ts";
import { firewallRule, publicKey } from "../support/policy.ts";
import { forward } from "../support/proxy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness, type Program } from "./support/harness.ts";

// An intermediary, such as a gateway, a login page or a load balancer, answers some requests in place of the service.
// Whatever it answers, no object is lost (it lives, but a run deletes it from the state), forgotten (it lives, but no
// later run puts it into the state) or doubled.

/** An answer of an intermediary. */
interface Answer {
  readonly name: string;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const HTML = { "content-type": "text/html", server: "gateway/1.0" };
const JSON_BODY = {
  "content-type": "application/json",
  "x-request-id": "7",
  via: "1.1 gateway",
  etag: '"1"',
};
const PAGE = "<html>Log in</html>";

const ANSWERS: readonly Answer[] = [
  {
    name: "404 with a message",
    status: 404,
    headers: JSON_BODY,
    body: '{"message":"no Route matched with those values"}',
  },
  { name: "404 without a body", status: 404 },
  { name: "404 with a page", status: 404, headers: HTML, body: PAGE },
  { name: "404 with {}", status: 404, headers: JSON_BODY, body: "{}" },
  { name: "200 with a page", status: 200, headers: HTML, body: PAGE },
  { name: "200 with {}", status: 200, headers: JSON_BODY, body: "{}" },
  { name: "200 with []", status: 200, headers: JSON_BODY, body: "[]" },
  { name: "204", status: 204 },
  { name: "302 to a login page", status: 302, headers: { location: "https://login.example.com/" } },
  { name: "401 with a page", status: 401, headers: HTML, body: PAGE },
  { name: "403 with a page", status: 403, headers: HTML, body: PAGE },
  { name: "502 with a page", status: 502, headers: HTML, body: PAGE },
  { name: "503 with Retry-After", status: 503, headers: { "retry-after": "600" } },
];

/** The requests that the intermediary answers, and the run during which it does. */
interface Fault {
  readonly name: string;
  readonly run: "refresh" | "import" | "create" | "update" | "destroy";
  /** Matches the method and the path of a request. */
  readonly on: RegExp;
  /** True if the service performs the request, and only its answer is replaced. */
  readonly reaches?: boolean;
  /** True if short runs test the fault. */
  readonly isShort?: boolean;
}

const OBJECT =
  "(firewall/rules/[^/?]+|sshkeys/public-keys/.+|namespaces/api-key/.+|namespaces/[0-9a-f-]{36}(/members/.+)?|devices/.+)";

/** Matches each request. */
const EACH = /^/;

const FAULTS: readonly Fault[] = [
  { name: "each request of a refresh", run: "refresh", on: EACH, isShort: true },
  { name: "each request of a destroy", run: "destroy", on: EACH, isShort: true },
  { name: "the read of a rule at a refresh", run: "refresh", on: /^GET \/api\/firewall\/rules\/\w+$/ },
  { name: "the list of public keys at a refresh", run: "refresh", on: /^GET \/api\/sshkeys\/public-keys/ },
  { name: "the list of API keys at a refresh", run: "refresh", on: /^GET \/api\/namespaces\/api-key/ },
  {
    name: "the read of a namespace at a refresh",
    run: "refresh",
    on: /^GET \/api\/namespaces(\/[0-9a-f-]{36})?(\?|$)/,
  },
  { name: "the read of a device at a refresh", run: "refresh", on: /^GET \/api\/devices/ },
  {
    name: "each read of one object at a refresh",
    run: "refresh",
    on: new RegExp(`^GET /api/${OBJECT}$`),
    isShort: true,
  },
  { name: "the read of a rule at an import", run: "import", on: /^GET \/api\/firewall\/rules\/\w+$/ },
  { name: "the creation of a rule", run: "create", on: /^POST \/api\/firewall\/rules/ },
  { name: "the answer to the creation of a rule", run: "create", on: /^POST \/api\/firewall/, reaches: true },
  { name: "the answer to the creation of a key", run: "create", on: /^POST \/api\/sshkeys/, reaches: true },
  { name: "the update of a rule", run: "update", on: /^PUT \/api\/firewall\/rules\/\w+$/ },
  { name: "each deletion of a destroy", run: "destroy", on: /^DELETE /, isShort: true },
  { name: "the answer to each deletion of a destroy", run: "destroy", on: /^DELETE /, reaches: true },
  {
    name: "each request about one object of a destroy",
    run: "destroy",
    on: new RegExp(`^(GET|DELETE) /api/${OBJECT}$`),
    isShort: true,
  },
];

const fleet = sharedFleet(["ana"]);

/** The intermediary. Without a fault, it forwards each request. */
async function startIntermediary(target: string) {
  let fault: Fault | undefined;
  let answer: Answer | undefined;
  let count = 0;
  const replace = (outgoing: ServerResponse) => {
    count += 1;
    outgoing.writeHead(answer?.status ?? 500, answer?.headers).end(answer?.body);
  };
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = "GET", url: path = "/" } = incoming;
    const isReplaced = fault?.on.test(`${method} ${path}`) ?? false;
    if (isReplaced && !fault?.reaches) {
      incoming.resume().on("end", () => replace(outgoing));
      return;
    }
    forward(target, incoming, outgoing, isReplaced ? { instead: () => replace(outgoing) } : {});
  };
  return {
    ...(await listening(createServer(serve))),
    /** Runs work during which the intermediary answers. Returns the number of its answers. */
    async during(replaced: Fault, with_: Answer, work: () => Promise<void>): Promise<number> {
      [fault, answer, count] = [replaced, with_, 0];
      await work();
      [fault, answer] = [undefined, undefined];
      return count;
    },
  };
}

const program: Program = {
  rule: firewallRule("deny", 1),
  key: publicKey("ana", "^ana$", { hostname: "^web" }),
  ci: { type: "ApiKey", args: { name: "pipeline", validDays: 30, role: "observer" } },
  ana: { type: "Member", args: { email: "ana@example.com", role: "observer" } },
  stage: { type: "Namespace", args: { name: "stage" } },
  tags: { type: "DeviceTags", args: { device: "web1", tags: ["edge", "prod"] } },
  tag: { type: "DeviceTagAttachment", args: { device: "web2", tag: "lab" } },
  device: { type: "Device", args: { device: "web3", onDestroy: "remove" } },
};
const more: Program = {
  more: firewallRule("deny", 2),
  other: publicKey("ben", "^ben$", { hostname: "^web" }),
};
const changed: Program = { ...program, rule: firewallRule("deny", 1, { username: "x" }) };

/** Returns the objects of the namespace, as the service itself lists them: each with the type of its resource. */
async function liveObjects(): Promise<string[]> {
  const { client, tenant } = fleet;
  const query = { perPage: 100 };
  const [rules, keys, apiKeys, namespaces, devices] = await Promise.all([
    client.getFirewallRules({ query }),
    client.getPublicKeys({ query }),
    client.listApiKeys({ query }),
    client.getNamespaces({ query }),
    client.getDevices({ query }),
  ]);
  const members = namespaces.find(({ tenantId }) => tenantId === tenant)?.members ?? [];
  return [
    ...rules.map(({ id }) => `FirewallRule ${id}`),
    ...keys.map(({ fingerprint }) => `PublicKey ${fingerprint}`),
    ...apiKeys.map(({ createdAt }) => `ApiKey ${createdAt}`),
    ...namespaces
      .filter(({ tenantId }) => tenantId !== tenant)
      .map(({ tenantId }) => `Namespace ${tenantId}`),
    ...members.filter(({ role }) => role !== "owner").map(({ id }) => `Member ${id}`),
    ...devices.filter(({ name }) => name === "web3").map(({ uid }) => `Device ${uid}`),
    ...devices.flatMap(({ uid, tags }) => tags.map((tag) => `tag ${uid} ${tag}`)),
  ].sort();
}

type Values = Readonly<Record<string, unknown>>;

/** Returns the objects that a state contains. */
function objectsIn({ state }: Harness): string[] {
  const objects = [...state.values()].flatMap(({ type, outputs }) => {
    const { ruleId, fingerprint, createdAt, tenant, userId, uid, tags, tag } = outputs as Values;
    if (type === "FirewallRule") return [`FirewallRule ${ruleId}`];
    if (type === "PublicKey") return [`PublicKey ${fingerprint}`];
    if (type === "ApiKey") return [`ApiKey ${createdAt}`];
    if (type === "Namespace") return [`Namespace ${tenant}`];
    if (type === "Member") return [`Member ${userId}`];
    if (type === "Device") return [`Device ${uid}`];
    return [tags ?? tag].flat().map((name) => `tag ${uid} ${name}`);
  });
  return objects.sort();
}

/** Enrolls the devices of the program that do not exist. */
async function enrollMissing(): Promise<void> {
  const names = (await fleet.client.getDevices()).map(({ name }) => name);
  for (const name of ["web1", "web2", "web3"]) if (!names.includes(name)) await fleet.enroll(name);
}

/** Returns the error of a run; undefined if the run succeeds. */
const failureOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => undefined,
    (error: unknown) => error,
  );

const SERVERS = [
  { server: "this project's service", start: async () => undefined },
  { server: "a server of 0.19", start: () => startSparseService(fleet.service.url) },
];

/** The answers of short runs: a 404 does not prove that an object was deleted. */
const SHORT = ["404 with a message", "404 without a body"];

describe.each(SERVERS)("with $server", { timeout: 300_000 }, ({ start }) => {
  let sparse: Awaited<ReturnType<typeof startSparseService>> | undefined;
  let intermediary: Awaited<ReturnType<typeof startIntermediary>>;
  const harnesses: Harness[] = [];
  const open = () => {
    const env = () => ({ ...fleet.env, GATEHOUSE_URL: intermediary.url, GATEHOUSE_RETRY_TIMEOUT: "0" });
    const harness = new Harness(env, `stack${harnesses.length}`);
    harnesses.push(harness);
    return harness;
  };
  const newIntermediary = () => startIntermediary(sparse?.url ?? fleet.service.url);
  beforeAll(async () => {
    sparse = await start();
    intermediary = await newIntermediary();
  });
  afterEach(async () => {
    await Promise.all(harnesses.splice(0).map((harness) => harness.close()));
  });
  afterAll(async () => {
    await intermediary.stop();
    await sparse?.stop();
  });

  const title = "$name: no object is lost, forgotten or doubled by";
  it.each(FAULTS.filter(({ isShort }) => isShort))(`${title} a 404`, (fault) => {
    const short = ANSWERS.filter(({ name }) => SHORT.includes(name));
    expect(short).toHaveLength(SHORT.length);
    return expectNoLoss(fault, short);
  });
  // Each server has 200 cases, which take more than a minute.
  it.each(FAULTS)(`${title} any answer`, { tags: ["long"] }, (fault) => expectNoLoss(fault, ANSWERS));

  async function expectNoLoss(fault: Fault, answers: readonly Answer[]): Promise<void> {
    const { run } = fault;
    let replaced = 0;
    // Without idempotency keys, the next run cannot recognize an object whose creation an intermediary refused after the
    // service had performed it.
    const isUnlikely = ({ status }: Answer) =>
      sparse !== undefined && run === "create" && [401, 403].includes(status);
    const harness = open();
    const wanted = run === "create" ? { ...program, ...more } : run === "update" ? changed : program;
    for (const answer of answers.filter((one) => !fault.reaches || !isUnlikely(one))) {
      await enrollMissing();
      await harness.up(program);
      let failure: unknown;
      const count = await intermediary.during(fault, answer, async () => {
        if (run === "refresh") failure = await failureOf(harness.refresh());
        else if (run === "import")
          failure = await failureOf(
            open().import("rule", "FirewallRule", harness.state.get("rule")?.id ?? ""),
          );
        else failure = await failureOf(harness.up(run === "destroy" ? {} : wanted));
      });
      replaced += count;
      // A real run is a process. The runs of this process remember that an address has refused the password, so the next
      // run uses another address.
      await intermediary.stop();
      intermediary = await newIntermediary();
      const live = await liveObjects();
      const known = objectsIn(harness);
      const where = `${answer.name}: ${String(failure)}`;
      // A run that creates objects may fail before it writes an object to the state. The next run finds the object.
      const created = live.length - known.length;
      const mayMiss = run === "create" && failure !== undefined ? 2 : 0;
      expect(live.filter((object) => !known.includes(object)).length, where).toBeLessThanOrEqual(mayMiss);
      expect(created, where).toBeLessThanOrEqual(mayMiss);
      if (fault.on === EACH) {
        expect(failure, where).toBeDefined();
        if (run === "refresh" && answer.status === 404) expect(String(failure)).toMatch(/\b404\b/);
        if (run === "destroy")
          expect((failure as AggregateError).errors, where).toHaveLength(Object.keys(program).length);
      }
      if (run === "destroy" && failure === undefined) expect(live, where).toEqual([]);
      if (run === "import" && count > 0) expect(failure, where).toBeDefined();

      // Without the intermediary, the next run converges.
      if (run === "destroy") {
        await harness.up({});
        expect(await liveObjects(), where).toEqual([]);
        continue;
      }
      await harness.up(wanted);
      await harness.refresh();
      expect(await harness.preview(wanted), where).toEqual([]);
      expect(objectsIn(harness), where).toEqual(await liveObjects());
    }
    await harness.up({});
    expect(await liveObjects()).toEqual([]);
    if (!isTerraform) expect(replaced).toBeGreaterThan(0);
  }
});

it("an empty list without X-Total-Count proves no deletion: the run fails, and the state keeps the object", async () => {
  const sparse = await startSparseService(fleet.service.url, { withoutTotals: true });
  const direct = new Harness(fleet.env);
  const through = new Harness({ ...fleet.env, GATEHOUSE_URL: sparse.url });
  onTestFinished(async () => {
    await Promise.all([direct.end(), through.close()]);
    await sparse.stop();
  });
  await direct.up({ rule: firewallRule("deny", 1) });
  through.copyState(direct);
  const failure = String(await failureOf(through.up({})));
  expect(failure).toContain("has no header X-Total-Count: 0");
  expect(failure).toContain("doubtful_answer");
  expect([...through.state.keys()]).toEqual(["rule"]);
});
