import {
  type Client,
  deleteAccessPolicy,
  deleteServiceAccount,
  getAccessPolicy,
  listInstallKeys,
  listServiceAccounts,
  updateAccessPolicy,
  updateInstallKey,
} from "../../../sdk/index.ts";
import { isSparse } from "../../projects.ts";

/** The end of an access after an out-of-band change. */
const END = "2200-01-01T00:00:00.000Z";

type Values = Readonly<Record<string, unknown>>;
type Change = (client: Client, outputs: Values) => Promise<unknown>;

/** Functions that simulate a user: they change or remove a resource's object with API requests, outside the program. */
interface OutOfBandChanges {
  /**
   * Functions that change an input out of band, by the input's name. An input without a function can only be changed by
   * a replacement of the object.
   */
  readonly change: Readonly<Record<string, Change>>;
  /** Removes the object. Undefined if objects of this kind cannot be removed. */
  readonly remove?: Change;
  /**
   * Returns the object's current values for the inputs that `change` contains. Returns undefined if the object does not
   * exist.
   */
  readonly read: (client: Client, outputs: Values) => Promise<Values | undefined>;
}

const text = (value: unknown) => String(value);
const deviceOf = async (client: Client, { uid }: Values) => client.getDevice({ params: { uid: text(uid) } });

const keyOf = async (client: Client, { fingerprint }: Values) =>
  (await client.getPublicKeys({ query: { perPage: 100 } })).find((key) => key.fingerprint === fingerprint);

const changeKey =
  (change: Values, more: { expiresAt?: string } = {}): Change =>
  async (client, outputs) => {
    const key = await keyOf(client, outputs);
    if (!key) throw new Error("no such key");
    const { name, username, filter: wanted } = { ...key, ...change };
    // Newer servers send an empty list of tags together with a pattern, but do not accept it.
    const filter = wanted.hostname ? { hostname: wanted.hostname } : wanted;
    await client.updatePublicKey({
      params: { fingerprint: key.fingerprint },
      body: { name, username, filter, ...more },
    });
  };

const ruleOf = async (client: Client, { ruleId }: Values) =>
  (await client.getFirewallRules({ query: { perPage: 100 } })).find((rule) => rule.id === ruleId);

const changeRule =
  (change: Values): Change =>
  async (client, outputs) => {
    const rule = await ruleOf(client, outputs);
    if (!rule) throw new Error("no such rule");
    const { id, tenantId: _tenant, ...body } = { ...rule, ...change };
    await client.updateFirewallRule({ params: { id }, body });
  };

const apiKeyOf = async (client: Client, { createdAt }: Values) =>
  (await client.listApiKeys({ query: { perPage: 100 } })).find((key) => key.createdAt === createdAt);

const changeApiKey =
  (body: { name?: string; role?: "observer" | "administrator" }): Change =>
  async (client, outputs) => {
    const key = await apiKeyOf(client, outputs);
    await client.updateApiKey({ params: { key: key?.name ?? "" }, body });
  };

const workloadOf = async (client: Client, { workloadId }: Values) =>
  (await client.listTrustedWorkloads({ query: { perPage: 100 } })).find(({ id }) => id === workloadId);

const changeWorkload =
  (change: Partial<Awaited<ReturnType<typeof workloadOf>>>): Change =>
  async (client, outputs) => {
    const workload = await workloadOf(client, outputs);
    if (!workload) throw new Error("no such workload");
    const { id, tenantId, createdBy, createdAt, updatedAt, revision, declaredBy, ...settings } = workload;
    await client.updateTrustedWorkload({ params: { id }, body: { ...settings, ...change } });
  };

const membersOf = async (client: Client, { tenant }: Values) =>
  (await client.getNamespace({ params: { tenant: text(tenant) } })).members;

const policyOf = async (client: Client, { policyId }: Values) =>
  (await client.request(getAccessPolicy, { params: { id: text(policyId) } })).body;

const changePolicy =
  (change: Values): Change =>
  async (client, outputs) => {
    const { id, filter, ...policy } = await policyOf(client, outputs);
    const wanted = filter.hostname ? { hostname: filter.hostname } : { tags: filter.tags };
    const body = { ...policy, id: undefined, filter: wanted, ...change };
    await client.request(updateAccessPolicy, { params: { id }, body });
  };

const installKeyOf = async (client: Client, { installKeyId }: Values) =>
  (await client.request(listInstallKeys, { query: { perPage: 100 } })).body.find(
    ({ id, revoked }) => id === installKeyId && !revoked,
  );

const changeInstallKey =
  (body: Values): Change =>
  async (client, outputs) => {
    const key = await installKeyOf(client, outputs);
    await client.request(updateInstallKey, { params: { name: key?.name ?? "" }, body });
  };

export const outOfBandChanges: Readonly<Record<string, OutOfBandChanges>> = {
  Namespace: {
    change: {
      name: (client, { tenant }) =>
        client.editNamespace({ params: { tenant: text(tenant) }, body: { name: "renamed-manually" } }),
      settings: (client, { tenant }) =>
        client.editNamespace({
          params: { tenant: text(tenant) },
          body: { settings: { connectionAnnouncement: "out of band" } },
        }),
    },
    remove: (client, { tenant }) => client.deleteNamespace({ params: { tenant: text(tenant) } }),
    async read(client, { tenant }) {
      const all = await client.getNamespaces({ query: { perPage: 100 } });
      return all.find((namespace) => namespace.tenantId === tenant);
    },
  },
  Member: {
    change: {
      role: async (client, { tenant, userId, role }) =>
        client.updateMember({
          params: { tenant: text(tenant), uid: text(userId) },
          body: { role: role === "observer" ? "operator" : "observer" },
        }),
      ...(!isSparse && {
        expiresAt: async (client: Client, { tenant, userId }: Values) =>
          client.updateMember({
            params: { tenant: text(tenant), uid: text(userId) },
            body: { accessExpiresAt: END },
          }),
      }),
    },
    remove: (client, { tenant, userId }) =>
      client.removeMember({ params: { tenant: text(tenant), uid: text(userId) } }),
    async read(client, outputs) {
      const member = (await membersOf(client, outputs)).find(({ id }) => id === outputs.userId);
      return member && { ...member, expiresAt: member.accessExpiresAt ?? "" };
    },
  },
  PublicKey: {
    change: {
      name: changeKey({ name: "out of band" }),
      username: changeKey({ username: "^out-of-band$" }),
      filter: changeKey({ filter: { hostname: "^out-of-band$" } }),
      ...(!isSparse && { expiresAt: changeKey({}, { expiresAt: END }) }),
    },
    remove: (client, { fingerprint }) =>
      client.deletePublicKey({ params: { fingerprint: text(fingerprint) } }),
    read: keyOf,
  },
  FirewallRule: {
    change: {
      action: (client, outputs) =>
        changeRule({ action: outputs.action === "deny" ? "allow" : "deny" })(client, outputs),
      priority: changeRule({ priority: 1234 }),
      sourceIp: changeRule({ sourceIp: "^203\\.0\\.113\\." }),
      username: changeRule({ username: "^out-of-band$" }),
      filter: changeRule({ filter: { hostname: "^out-of-band$" } }),
      active: (client, outputs) => changeRule({ active: !outputs.active })(client, outputs),
      ...(!isSparse && { expiresAt: changeRule({ expiresAt: END }) }),
    },
    remove: (client, { ruleId }) => client.deleteFirewallRule({ params: { id: text(ruleId) } }),
    read: ruleOf,
  },
  ApiKey: {
    change: {
      name: changeApiKey({ name: "out-of-band" }),
      role: (client, outputs) =>
        changeApiKey({ role: outputs.role === "observer" ? "administrator" : "observer" })(client, outputs),
    },
    async remove(client, outputs) {
      const key = await apiKeyOf(client, outputs);
      await client.deleteApiKey({ params: { key: key?.name ?? "" } });
    },
    read: apiKeyOf,
  },
  TrustedWorkload: {
    change: {
      name: changeWorkload({ name: "out-of-band" }),
      issuer: changeWorkload({ issuer: "https://out-of-band.example.com" }),
      audience: changeWorkload({ audience: "out-of-band" }),
      claims: changeWorkload({ claims: { out_of_band: "yes" } }),
      role: (client, outputs) =>
        changeWorkload({ role: outputs.role === "observer" ? "operator" : "observer" })(client, outputs),
      maxSessionMinutes: (client, outputs) =>
        changeWorkload({ maxSessionMinutes: outputs.maxSessionMinutes === 7 ? 8 : 7 })(client, outputs),
      singleUse: (client, outputs) => changeWorkload({ singleUse: !outputs.singleUse })(client, outputs),
    },
    remove: (client, { workloadId }) => client.deleteTrustedWorkload({ params: { id: text(workloadId) } }),
    read: workloadOf,
  },
  // Not supported for a Tag: it has only a name, and other resources refer to this name.
  Tag: { change: {}, read: async (_client, { name }) => ({ name }) },
  DeviceTags: {
    change: {
      tags: (client, { uid }) =>
        client.updateDeviceTags({ params: { uid: text(uid) }, body: { tags: ["outofband"] } }),
    },
    async remove(client, outputs) {
      const { tags, uid } = await deviceOf(client, outputs);
      for (const tag of tags) await client.deleteDeviceTag({ params: { uid, tag } });
    },
    async read(client, outputs) {
      const { tags } = await deviceOf(client, outputs);
      return tags.length > 0 ? { tags: tags.sort() } : undefined;
    },
  },
  DeviceTagAttachment: {
    change: {},
    remove: (client, { uid, tag }) => client.deleteDeviceTag({ params: { uid: text(uid), tag: text(tag) } }),
    async read(client, outputs) {
      const { tags } = await deviceOf(client, outputs);
      return tags.includes(text(outputs.tag)) ? { tag: outputs.tag } : undefined;
    },
  },
  Device: {
    change: {
      name: (client, { uid }) =>
        client.updateDevice({ params: { uid: text(uid) }, body: { name: "out-of-band" } }),
    },
    remove: (client, { uid }) => client.deleteDevice({ params: { uid: text(uid) } }),
    read: deviceOf,
  },
  AccessPolicy: {
    change: {
      name: changePolicy({ name: "out of band" }),
      logins: changePolicy({ logins: ["outofband"] }),
      filter: changePolicy({ filter: { tags: [] } }),
    },
    remove: (client, { policyId }) => client.request(deleteAccessPolicy, { params: { id: text(policyId) } }),
    read: policyOf,
  },
  ServiceAccount: {
    change: {},
    remove: (client, { accountId }) =>
      client.request(deleteServiceAccount, { params: { id: text(accountId) } }),
    read: async (client, { accountId }) =>
      (await client.request(listServiceAccounts, {})).body.find(({ id }) => id === accountId),
  },
  InstallKey: {
    change: {
      name: changeInstallKey({ name: "out-of-band" }),
      disabled: changeInstallKey({ disabled: true }),
    },
    remove: changeInstallKey({ revoked: true }),
    read: installKeyOf,
  },
};
