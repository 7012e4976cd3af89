import { keyData } from "../../../support/policy.ts";
import type { Choices } from "../../../support/walk.ts";
import { RANDOM, TAGS } from "./programs.ts";
import { AUDIENCE, emailOf, macOf, type TruthService, USERS } from "./TruthService.ts";

const page = { query: { perPage: 100 } } as const;

/** Names of the keys that an administrator creates. Programs declare only the last two of them, and may adopt them. */
const EXTRA_KEYS = ["extra-a", "extra-b", "key-a", "key-b"];

/** The relative frequency of each kind of change. */
const WEIGHTS = {
  key: 5,
  rule: 4,
  member: 5,
  apiKey: 2,
  workload: 2,
  tags: 2,
  tag: 1,
  device: 1,
  settings: 2,
};

/** Changes of an administrator, outside of programs. */
export class ManualChanges {
  readonly #truth: TruthService;
  readonly #choices: Choices;
  /** Returns the name of the tag that the program renames. */
  readonly #zone: () => string;
  #managed: ReadonlySet<string> | undefined;
  /** The changes so far. */
  readonly log: string[] = [];

  constructor(truth: TruthService, choices: Choices, zone: () => string) {
    this.#truth = truth;
    this.#choices = choices;
    this.#zone = zone;
  }

  /**
   * Makes some random changes.
   * @param managed the objects that the state contains, as `<kind> <id>`. With it, no change removes or renames an
   * object that no resource declares, since no drift report can contain such a change.
   */
  async make(managed?: ReadonlySet<string>): Promise<void> {
    this.#managed = managed;
    const count = 1 + Math.floor(this.#choices.next() * 3);
    for (let index = 0; index < count; index += 1) {
      const done = await this.#changes[this.#choices.weighted(WEIGHTS)]();
      if (done !== undefined) this.log.push(done);
    }
  }

  /** Each function makes a random change. It returns undefined if the namespace allows no such change at present. */
  readonly #changes: Readonly<Record<keyof typeof WEIGHTS, () => Promise<string | undefined>>> = {
    key: () => this.#key(),
    rule: () => this.#rule(),
    member: () => this.#member(),
    apiKey: () => this.#apiKey(),
    workload: () => this.#workload(),
    tags: () => this.#tags(),
    tag: () => this.#renameTag(),
    device: () => this.#device(),
    settings: () => this.#settings(),
  };

  #random<T>(random: (choices: Choices) => T): T {
    const text = JSON.stringify(random(this.#choices));
    return text === undefined ? (undefined as T) : JSON.parse(text.replaceAll("ZONE", this.#zone()));
  }

  #isManaged(kind: string, id: string): boolean {
    return this.#managed?.has(`${kind} ${id}`) ?? true;
  }

  async #isTag(tag: string): Promise<boolean> {
    const { boss } = this.#truth;
    return (await boss.getDevices(page)).some(({ tags }) => tags.includes(tag));
  }

  /** Returns a filter whose tags exist. */
  async #filter() {
    const filter = this.#random(RANDOM.filter) as { hostname?: string; tags?: string[] };
    const tags = filter.tags ?? [];
    for (const tag of tags) if (!(await this.#isTag(tag))) return { hostname: ".*" };
    return filter as { hostname: string };
  }

  async #key(): Promise<string | undefined> {
    const { boss } = this.#truth;
    const choices = this.#choices;
    const keys = await boss.getPublicKeys(page);
    const members = (await this.#members()).map(({ id }) => id);
    const owner = choices.chance(0.5) && members.length > 0 ? choices.of(members) : undefined;
    const name = choices.of(EXTRA_KEYS);
    const isExtra = keys.some((key) => key.name === name);
    if (keys.length === 0 || (!isExtra && choices.chance(0.3))) {
      if (isExtra) return undefined;
      const body = {
        name,
        data: Buffer.from(keyData(name)).toString("base64"),
        username: this.#random(RANDOM.username),
        filter: await this.#filter(),
        expiresAt: this.#random(RANDOM.expiresAt),
        owner,
      };
      await boss.createPublicKey({ body });
      return `create key ${JSON.stringify({ ...body, data: undefined })}`;
    }
    const key = choices.of(keys.toSorted((left, right) => (left.name < right.name ? -1 : 1)));
    const params = { fingerprint: key.fingerprint };
    if (choices.chance(0.3)) {
      await boss.deletePublicKey({ params });
      return `delete key ${key.name}`;
    }
    const { username, filter } = key;
    const body = {
      name: key.name,
      username,
      filter,
      ...choices.of([
        { username: this.#random(RANDOM.username) },
        { filter: await this.#filter() },
        { expiresAt: this.#random(RANDOM.expiresAt) ?? null },
        { owner: owner ?? null },
      ]),
    };
    await boss.updatePublicKey({ params, body: body as never });
    return `change key ${key.name} to ${JSON.stringify(body)}`;
  }

  async #rule(): Promise<string> {
    const { boss } = this.#truth;
    const choices = this.#choices;
    const rules = await boss.getFirewallRules(page);
    const fresh = {
      action: this.#random(RANDOM.action) as "allow",
      priority: this.#random(RANDOM.priority),
      sourceIp: this.#random(RANDOM.sourceIp),
      username: this.#random(RANDOM.username),
      filter: await this.#filter(),
      active: true,
      expiresAt: this.#random(RANDOM.expiresAt),
    };
    if (rules.length === 0 || choices.chance(0.3)) {
      const { id } = await boss.createFirewallRule({ body: fresh });
      return `create rule ${id} ${JSON.stringify(fresh)}`;
    }
    const { id, ...rule } = choices.of(rules);
    if (choices.chance(0.3)) {
      await boss.deleteFirewallRule({ params: { id } });
      return `delete rule ${id} ${JSON.stringify(rule)}`;
    }
    const { action, priority, sourceIp, username, filter, active } = rule;
    const body = {
      action,
      priority,
      sourceIp,
      username,
      filter,
      active,
      ...choices.of<object>([
        { action: fresh.action },
        { priority: fresh.priority },
        { sourceIp: fresh.sourceIp },
        { filter: fresh.filter },
        { active: !active },
        { expiresAt: fresh.expiresAt ?? null },
      ]),
    };
    await boss.updateFirewallRule({ params: { id }, body: body as never });
    return `change rule ${id} to ${JSON.stringify(body)}`;
  }

  async #members() {
    const { boss, tenant } = this.#truth;
    const { members } = await boss.forTenant(tenant).getNamespace({ params: { tenant } });
    return members.filter(({ email }) => USERS.some((user) => email === emailOf(user)));
  }

  async #member(): Promise<string> {
    const { boss, tenant } = this.#truth;
    const choices = this.#choices;
    const user = choices.of(USERS);
    const member = (await this.#members()).find(({ email }) => email === emailOf(user));
    const role = this.#random(RANDOM.role) as "observer";
    const accessExpiresAt = this.#random(RANDOM.expiresAt);
    if (!member || (member.accessExpiresAt && Date.parse(member.accessExpiresAt) <= Date.now())) {
      await boss.inviteMember({ params: { tenant }, body: { email: emailOf(user), role, accessExpiresAt } });
      return `add member ${user} as ${role} until ${accessExpiresAt}`;
    }
    const params = { tenant, uid: member.id };
    if (choices.chance(0.5)) {
      await boss.removeMember({ params });
      return `remove member ${user}`;
    }
    const body = choices.chance(0.6) ? { role } : { accessExpiresAt: accessExpiresAt ?? null };
    await boss.updateMember({ params, body });
    return `change member ${user} to ${JSON.stringify(body)}`;
  }

  async #apiKey(): Promise<string | undefined> {
    const { boss, secrets } = this.#truth;
    const choices = this.#choices;
    const keys = await boss.listApiKeys(page);
    const role = this.#random(RANDOM.role) as "observer";
    const name = "extra-api";
    if (keys.length === 0 || (choices.chance(0.4) && !keys.some((key) => key.name === name))) {
      const created = await boss.createApiKey({ body: { name, expiresAt: choices.of([30, -1]), role } });
      const listed = (await boss.listApiKeys(page)).find((key) => key.name === name);
      secrets.set(String(listed?.createdAt), created.id);
      return `create API key ${name} as ${role}`;
    }
    const key = choices.of(keys.toSorted((left, right) => (left.name < right.name ? -1 : 1)));
    const params = { key: key.name };
    if (choices.chance(0.4)) {
      await boss.deleteApiKey({ params });
      return `delete API key ${key.name}`;
    }
    const body = choices.chance(0.7) ? { role } : { name: `${key.name.slice(0, 12)}-new` };
    if ("name" in body && keys.some((other) => other.name === body.name)) return undefined;
    await boss.updateApiKey({ params, body });
    return `change API key ${key.name} to ${JSON.stringify(body)}`;
  }

  async #workload(): Promise<string | undefined> {
    const { boss, issuer } = this.#truth;
    const choices = this.#choices;
    const workloads = await boss.listTrustedWorkloads(page);
    const fresh = {
      issuer: issuer.url,
      audience: AUDIENCE,
      role: this.#random(RANDOM.role) as "observer",
      claims: this.#random(RANDOM.claims) as Record<string, string>,
    };
    const name = "extra-job";
    if (workloads.length === 0 || (choices.chance(0.3) && !workloads.some((one) => one.name === name))) {
      await boss.createTrustedWorkload({ body: { name, ...fresh } });
      return `create workload ${JSON.stringify({ name, ...fresh })}`;
    }
    const { id, ...workload } = choices.of(workloads);
    if (choices.chance(0.3)) {
      await boss.deleteTrustedWorkload({ params: { id } });
      return `delete workload ${workload.name}`;
    }
    const { audience, claims, role, maxSessionMinutes, singleUse } = workload;
    const body = {
      name: workload.name,
      issuer: issuer.url,
      audience,
      claims,
      role,
      maxSessionMinutes,
      singleUse,
      ...choices.of<object>([{ role: fresh.role }, { claims: fresh.claims }]),
    };
    await boss.updateTrustedWorkload({ params: { id }, body: body as never });
    return `change workload ${workload.name} to ${JSON.stringify(body)}`;
  }

  async #tags(): Promise<string | undefined> {
    const { boss, uids } = this.#truth;
    const uid = this.#choices.of(uids);
    const tags = this.#random(RANDOM.tags) as string[];
    if (!this.#isManaged("DeviceTags", uid)) {
      const [tag = ""] = tags;
      const device = await boss.getDevice({ params: { uid } });
      if (device.tags.includes(tag) || device.tags.length > 2) return undefined;
      await boss.createDeviceTag({ params: { uid }, body: { tag } });
      return `add tag ${tag} to device ${uids.indexOf(uid)}`;
    }
    await boss.updateDeviceTags({ params: { uid }, body: { tags } });
    return `set tags of device ${uids.indexOf(uid)} to ${tags}`;
  }

  async #renameTag(): Promise<string | undefined> {
    const { boss } = this.#truth;
    const tag = this.#zone();
    const name = `${tag}m`;
    if (this.#managed || !(await this.#isTag(tag)) || (await this.#isTag(name))) return undefined;
    await boss.renameTag({ params: { tag }, body: { tag: name } });
    return `rename tag ${tag} to ${name}`;
  }

  async #device(): Promise<string | undefined> {
    const { boss, uids } = this.#truth;
    if (!this.#isManaged("Device", uids[1] ?? "")) return undefined;
    const name = this.#choices.of(["edge-02", "lab-02", "web-03"]);
    const [, uid = ""] = uids;
    await boss.updateDevice({ params: { uid }, body: { name } });
    return `rename device ${macOf(1)} to ${name}`;
  }

  async #settings(): Promise<string | undefined> {
    const { boss, tenant } = this.#truth;
    if (!this.#isManaged("Namespace", tenant)) return undefined;
    const settings = this.#random(RANDOM.settings);
    await boss.forTenant(tenant).editNamespace({ params: { tenant }, body: { settings } as never });
    return `change settings to ${JSON.stringify(settings)}`;
  }
}

/**
 * Restores the namespace, as all rounds find it.
 * @param zone the first name of the tag that the program renames
 */
export async function resetNamespace(truth: TruthService, zone: string): Promise<void> {
  const { client, tenant, uids } = truth;
  for (const { id } of await client.listTrustedWorkloads(page)) {
    await client.deleteTrustedWorkload({ params: { id } });
  }
  await truth.fleet.clear();
  const { members } = await client.getNamespace({ params: { tenant } });
  for (const { id, email } of members) {
    if (USERS.some((user) => email === emailOf(user))) {
      await client.removeMember({ params: { tenant, uid: id } });
    }
  }
  await client.editNamespace({
    params: { tenant },
    body: {
      settings: {
        sessionRecord: true,
        deviceProof: "optional",
        sessionMaxMinutes: 0,
        sessionIdleMinutes: 0,
        sshForwarding: [],
      },
    },
  });
  await truth.restoreDevices();
  const [edge = "", , database = "", lab = ""] = uids;
  for (const [uid, tags] of [
    [edge, ["prod"]],
    [database, ["prod"]],
    [lab, ["lab", zone]],
  ] as const) {
    await client.updateDeviceTags({ params: { uid }, body: { tags: [...tags] } });
  }
  await client.updateDeviceTags({ params: { uid: truth.pendingUid }, body: { tags: TAGS } });
  truth.secrets.clear();
}
