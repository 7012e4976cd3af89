import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { withSharedApp } from "../http/appOfTest.ts";
import { WORKLOAD, workloadToken } from "../http/fixtures.ts";
import type { CallOptions, Credentials, TestUser } from "../http/testApp.ts";

const app = withSharedApp();
const DAY = 24 * 60 * 60;
/** More days than any step waits or sets. */
const ALWAYS = 1000;
const NEVER_ENDS = Number.POSITIVE_INFINITY;

const ROLES = ["observer", "operator", "administrator"] as const;
const USERS = ["bob", "cy", "dan"] as const;
const WORKLOADS = ["deploy", "nightly"] as const;
type Role = (typeof ROLES)[number];
type User = (typeof USERS)[number];
type Workload = (typeof WORKLOADS)[number];
type Sender = User | Workload | "ana" | "key";

/** Steps of a test. `days` is the number of days until the end of a membership. */
type Step =
  | {
      readonly kind: "invite";
      readonly by: Sender;
      readonly user: User;
      readonly role: Role;
      readonly days: number;
    }
  | {
      readonly kind: "change";
      readonly by: Sender;
      readonly user: User;
      readonly role: Role | null;
      readonly days: number | null;
    }
  | { readonly kind: "remove"; readonly by: Sender; readonly user: User }
  | {
      readonly kind: "trust" | "put";
      readonly by: Sender;
      readonly workload: Workload;
      readonly role: Role;
      readonly branch: string;
    }
  | { readonly kind: "distrust"; readonly by: Sender; readonly workload: Workload }
  | { readonly kind: "createKey" | "changeKey" | "deleteKey"; readonly by: Sender }
  | { readonly kind: "wait"; readonly days: number };
type Write = Exclude<Step, { readonly kind: "wait" }>;

const by = fc.constantFrom<Sender[]>(...USERS, ...USERS, ...WORKLOADS, ...WORKLOADS, "ana", "key");
const user = fc.constantFrom(...USERS);
const workload = fc.constantFrom(...WORKLOADS);
const role = fc.constantFrom<Role[]>(...ROLES, "administrator");
const days = fc.constantFrom(-1, 2, 5, 9, NEVER_ENDS);
const branch = fc.constantFrom("main", "release");
const kind = <K extends string>(...kinds: K[]) => fc.constantFrom(...kinds);

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: kind("invite"), by, user, role, days }),
  {
    weight: 3,
    arbitrary: fc.record({ kind: kind("change"), by, user, role: fc.option(role), days: fc.option(days) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind("remove"), by, user }) },
  fc.record({ kind: kind("trust"), by, workload, role, branch }),
  { weight: 2, arbitrary: fc.record({ kind: kind("put"), by, workload, role, branch }) },
  fc.record({ kind: kind("distrust"), by, workload }),
  fc.record({ kind: kind("createKey", "changeKey", "deleteKey"), by }),
  fc.record({ kind: kind("wait"), days: fc.constantFrom(1, 4) }),
);

/** The access to the namespace as this test expects it. Times and ends are days since the start of the test. */
interface Model {
  readonly today: number;
  readonly members: Readonly<Partial<Record<User, { readonly role: Role; readonly end: number }>>>;
  readonly workloads: Readonly<Partial<Record<Workload, { readonly role: Role; readonly branch: string }>>>;
}

/** Returns the access after an accepted write. */
function after(model: Model, write: Write): Model {
  const { today, members, workloads } = model;
  switch (write.kind) {
    case "invite":
      return {
        ...model,
        members: { ...members, [write.user]: { role: write.role, end: today + write.days } },
      };
    case "change": {
      const before = members[write.user];
      if (before === undefined) return model;
      const end = write.days === null ? before.end : today + write.days;
      return { ...model, members: { ...members, [write.user]: { role: write.role ?? before.role, end } } };
    }
    case "remove":
      return { ...model, members: { ...members, [write.user]: undefined } };
    case "trust":
    case "put":
      return {
        ...model,
        workloads: { ...workloads, [write.workload]: { role: write.role, branch: write.branch } },
      };
    case "distrust":
      return { ...model, workloads: { ...workloads, [write.workload]: undefined } };
    default:
      return model;
  }
}

const isUser = (sender: Sender): sender is User => USERS.some((name) => name === sender);
const isWorkload = (sender: Sender): sender is Workload => WORKLOADS.some((name) => name === sender);

/** Returns the day on which the last administrator except the owner ends; 0 without such an administrator. */
const lastDay = ({ today, members }: Model) =>
  USERS.reduce((latest, name) => {
    const { role, end = 0 } = members[name] ?? {};
    return role === "administrator" && end > today ? Math.max(latest, end) : latest;
  }, 0);

/** True if a write has locked out its sender, or the administrators except the owner. */
function isLockout(before: Model, now: Model, sender: Sender): boolean {
  if (sender === "ana") return false;
  if (lastDay(now) < lastDay(before)) return true;
  if (isWorkload(sender)) {
    const [was, is] = [before.workloads[sender], now.workloads[sender]];
    return was?.branch !== is?.branch || was?.role !== is?.role;
  }
  if (!isUser(sender)) return false;
  const [was, is] = [before.members[sender], now.members[sender]];
  return is === undefined || was === undefined || is.role !== was.role || is.end < was.end;
}

const users = new Map<string, TestUser>();
beforeAll(async () => {
  app.stopClock();
  // The clock of ends never goes back, but this test advances the time and returns.
  Object.assign(app.services, { accessTime: app.services.now });
  for (const name of ["ana", ...USERS]) users.set(name, await app.user(name));
});
const idOf = (name: string) => users.get(name)?.id ?? "";

const settings = (name: string, role: Role, branch: string) => ({
  ...WORKLOAD,
  name,
  role,
  claims: { ...WORKLOAD.claims, branch },
});

/** A namespace of ana with two administrators, a workload and an API key. */
class Lab {
  readonly #tenant: string;
  readonly #key: string;
  /** The ids of the workloads that exist, by name. */
  readonly #workloads = new Map<string, string>();

  private constructor(tenant: string, key: string) {
    this.#tenant = tenant;
    this.#key = key;
  }

  static async open(name: string): Promise<Lab> {
    const token = await app.tokenOf({ id: idOf("ana"), username: "ana", tenant: "" });
    const { tenant_id: tenant } = (await app.call("createNamespace", { token, body: { name } })).body;
    const owner = await app.tokenOf({ id: idOf("ana"), username: "ana", tenant });
    const body = { name: "actor", expires_at: -1, role: "administrator" };
    const { id: key } = (await app.call("createApiKey", { token: owner, body })).body;
    return new Lab(tenant, key);
  }

  /** Returns a credential of the sender that is valid if the service accepts the sender. Undefined for no workload. */
  async #credential(sender: Sender): Promise<Credentials | undefined> {
    if (sender === "key") return { apiKey: this.#key };
    if (!isWorkload(sender)) {
      return { token: await app.tokenOf({ id: idOf(sender), username: sender, tenant: this.#tenant }) };
    }
    const id = this.#workloads.get(sender);
    if (id === undefined) return undefined;
    return { token: await workloadToken(app, this.#tenant, id) };
  }

  #request(write: Write): [Parameters<typeof app.call>[0], CallOptions] {
    const tenant = this.#tenant;
    const end = (days: number) =>
      days === NEVER_ENDS ? null : new Date(app.services.now().getTime() + days * DAY * 1000).toISOString();
    switch (write.kind) {
      case "invite": {
        const { user, role, days } = write;
        const body = { email: `${user}@example.org`, role, access_expires_at: end(days) };
        return ["inviteMember", { params: { tenant }, body }];
      }
      case "change": {
        const { user, role, days } = write;
        const body = { ...(role && { role }), ...(days !== null && { access_expires_at: end(days) }) };
        return ["updateMember", { params: { tenant, uid: idOf(user) }, body }];
      }
      case "remove":
        return ["removeMember", { params: { tenant, uid: idOf(write.user) } }];
      case "trust":
        return ["createTrustedWorkload", { body: settings(write.workload, write.role, write.branch) }];
      case "put": {
        const body = settings(write.workload, write.role, write.branch);
        return ["updateTrustedWorkload", { params: this.#workload(write.workload), body }];
      }
      case "distrust":
        return ["deleteTrustedWorkload", { params: this.#workload(write.workload) }];
      case "createKey":
        return ["createApiKey", { body: { name: "spare", expires_at: 30 } }];
      case "changeKey":
        return ["updateApiKey", { params: { key: "spare" }, body: { role: "observer" } }];
      case "deleteKey":
        return ["deleteApiKey", { params: { key: "spare" } }];
    }
  }

  #workload = (name: Workload) => ({ id: this.#workloads.get(name) ?? "0".repeat(24) });

  /** Sends a guarded write. Undefined if the sender is a workload that does not exist. */
  async send(write: Write) {
    const credential = await this.#credential(write.by);
    if (credential === undefined) return undefined;
    const [id, options] = this.#request(write);
    const headers = { "gatehouse-lockout-guard": "on" };
    const answer = await app.call(id, { ...credential, ...options, headers });
    expect(answer.status, answer.text).toBeLessThan(500);
    const isDone = answer.status === 200;
    if (isDone && write.kind === "trust") this.#workloads.set(write.workload, answer.body.id);
    if (isDone && write.kind === "distrust") this.#workloads.delete(write.workload);
    return { isDone, isRefused: answer.headers.has("gatehouse-lockout-guard") };
  }

  /** Returns the members, workloads and API keys, and the number of audit entries. */
  async everything() {
    const owner = await this.#credential("ana");
    const params = { tenant: this.#tenant };
    const { body, headers } = await app.call("getAuditTrail", { ...owner, params, query: { per_page: 1 } });
    return [
      (await app.call("getNamespace", { ...owner, params })).body.members,
      (await app.call("listTrustedWorkloads", { ...owner })).body,
      (await app.call("listApiKeys", { ...owner })).body,
      [body, headers.get("x-total-count")],
    ];
  }

  /** Returns true if the sender can do the work of an administrator until just before a day. */
  async canAdminister(sender: Sender, today: number, day: number): Promise<boolean> {
    const ahead = (Math.min(day, ALWAYS) - today) * DAY - 1;
    app.pass(ahead);
    try {
      const credential = await this.#credential(sender);
      const body = { name: "probe", expires_at: 30 };
      const { status } = await app.call("createApiKey", { ...credential, body });
      if (status !== 200) return false;
      return (await app.call("deleteApiKey", { ...credential, params: { key: "probe" } })).status === 200;
    } finally {
      app.pass(-ahead);
    }
  }
}

const START: readonly Write[] = [
  { kind: "invite", by: "ana", user: "bob", role: "administrator", days: NEVER_ENDS },
  { kind: "invite", by: "ana", user: "cy", role: "administrator", days: 9 },
  { kind: "trust", by: "ana", workload: "deploy", role: "administrator", branch: "main" },
];

let namespaces = 0;

/**
 * Sends sequences of writes, each in a namespace of its own. Returns the numbers of accepted writes after the start and
 * of writes that the guard refused.
 */
async function expectGuarded(sequences: number): Promise<{ accepted: number; refused: number }> {
  const counts = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), async (steps) => {
      namespaces += 1;
      const lab = await Lab.open(`lab-${namespaces}`);
      let model: Model = { today: 0, members: {}, workloads: {} };
      for (const [at, step] of [...START, ...steps].entries()) {
        if (step.kind === "wait") {
          app.pass(step.days * DAY);
          model = { ...model, today: model.today + step.days };
          continue;
        }
        const { by } = step;
        const before = await lab.everything();
        const answer = await lab.send(step);
        if (answer === undefined) continue;
        const next = after(model, step);
        if (!answer.isDone) {
          expect(await lab.everything()).toEqual(before);
          if (answer.isRefused) {
            counts.refused += 1;
            expect(isLockout(model, next, by)).toBe(true);
          }
          continue;
        }
        if (at >= START.length) counts.accepted += 1;
        const { today } = model;
        if (by !== "ana") {
          expect(isLockout(model, next, by)).toBe(false);
          const end = (isUser(by) && model.members[by]?.end) || NEVER_ENDS;
          expect(await lab.canAdminister(by, today, end)).toBe(true);
          const last = lastDay(model);
          let remains = last === 0;
          for (const name of USERS) remains ||= await lab.canAdminister(name, today, last);
          expect(remains).toBe(true);
        }
        model = next;
      }
    }),
    { numRuns: sequences },
  );
  return counts;
}

const GUARDED =
  "after any guarded writes, the sender of each accepted write can still repair the policy, an administrator remains, and a refused write has changed nothing";

test(GUARDED, async () => {
  const { accepted } = await expectGuarded(6);
  expect(accepted).toBeGreaterThan(0);
});
// Each sequence sends hundreds of requests.
test(`${GUARDED}: many sequences`, { tags: ["long"], timeout: 300_000 }, async () => {
  const { accepted, refused } = await expectGuarded(40);
  expect(accepted).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(0);
});
