import type { Plan } from "../../../provider/engine/index.ts";
import type { Unread } from "../../../provider/model/namespaceObjects.ts";
import type { LiveObject, Objects } from "../../../provider/model/object.ts";
import { idWithin } from "../../../provider/model/values.ts";
import { byKey, NamespaceState } from "../../../provider/namespace/namespaceState.ts";
import { applyPlan } from "../../../provider/plan/planned/appliedPlan.ts";
import { apiKeysOf } from "../../../provider/resources/apiKey/index.ts";
import { devicesOf, listedDevice } from "../../../provider/resources/device.ts";
import { definitionsByName, type KindName, kindNamed, kindsWith } from "../../../provider/resources/index.ts";
import { membersOf } from "../../../provider/resources/member/index.ts";
import type { Member } from "../../../provider/resources/member/listing.ts";
import { settingsOf } from "../../../provider/resources/namespace/index.ts";
import type { NamespaceSettings } from "../../../provider/resources/namespace/resource.ts";
import { type Workload, workloadsOf } from "../../../provider/resources/trustedWorkload.ts";
import type { ApiKey, Device } from "../../../provider/service/listings.ts";
import type { Values } from "../../../provider/values.ts";
import type {
  AccessKey,
  AccessPolicy,
  EvaluatedLogins,
  NamespacePolicy,
  Principal,
  SshIdentity,
} from "../../../sdk/policy/index.ts";

/** The access policies and service accounts of a namespace, for a test. */
interface IdentityFixture {
  readonly decides: boolean;
  readonly policies: readonly AccessPolicy[];
  readonly serviceAccounts: readonly Principal[];
  readonly userKeys: ReadonlyMap<string, readonly SshIdentity[]> | undefined;
  readonly notEvaluated: readonly string[];
}

/** An install key, for a test. */
export interface InstallKeyFixture {
  readonly id: string;
  readonly name: string;
  readonly mode: string;
  readonly tags?: readonly string[];
  readonly webhookUrl?: string;
  readonly validDays?: number;
  readonly expiresAt?: string;
  readonly usageLimit?: number;
  readonly usedTimes?: number;
}

/**
 * Returns the access policies, service accounts and keys of a namespace whose access policies decide about logins.
 */
export const identityFixture = (more: Partial<IdentityFixture> = {}): IdentityFixture => ({
  decides: true,
  policies: [],
  serviceAccounts: [],
  userKeys: new Map(),
  notEvaluated: [],
  ...more,
});

/** The objects of a namespace in a short form, for tests. A list that is undefined could not be read. */
export interface NamespaceFixture {
  readonly tenant: string;
  readonly name: string;
  readonly devices: readonly Pick<Device, "uid" | "name" | "tags" | "status" | "identity">[];
  readonly policy: NamespacePolicy;
  readonly members: readonly Member[] | undefined;
  readonly apiKeys: readonly ApiKey[] | undefined;
  readonly trustedWorkloads: readonly Workload[] | undefined;
  readonly installKeys?: readonly InstallKeyFixture[];
  readonly settings: NamespaceSettings | undefined;
  readonly identity: IdentityFixture | undefined;
  readonly formerOwners: ReadonlyMap<string, string>;
  readonly enforcesExpiry: boolean;
  readonly seen: EvaluatedLogins & { readonly sessions: number };
  readonly accessUnknown: string | undefined;
  readonly notEvaluated: readonly string[];
  readonly unknown: readonly string[];
  /** Further kinds that could not be read. */
  readonly unreadKinds?: readonly KindName[];
  /** The reason why invitations could not be read. */
  readonly unreadInvitations?: string;
}

/** Returns a namespace without objects. */
export const emptyNamespace = (tenant: string, more: Partial<NamespaceFixture> = {}): NamespaceFixture => ({
  tenant,
  name: "fleet",
  devices: [],
  policy: { devices: [], keys: [], rules: [] },
  members: [],
  apiKeys: [],
  trustedWorkloads: [],
  settings: undefined,
  identity: undefined,
  formerOwners: new Map(),
  enforcesExpiry: false,
  seen: { sessions: 0, logins: [], addresses: [] },
  accessUnknown: undefined,
  notEvaluated: [],
  unknown: [],
  ...more,
});

/** Returns the devices in the form in which access is evaluated. */
export const accessDevices = (devices: NamespaceFixture["devices"]) =>
  devices.map(({ uid, name, tags }) => ({ uid, name, tags }));

/** The data of public keys whose fingerprint tests compute, by fingerprint. */
export const lines = new Map<string, string>();

const end = (expiresAt: string | undefined) => ({
  expiresAt: expiresAt === undefined ? "" : new Date(expiresAt).toISOString(),
  expiryStatus: expiresAt === undefined ? "none" : "enforced",
});

const DSS = "ssh-dss AAAAB3NzaC1kc3MAAAADAQABAAAAAwEAAQAAAAMBAAEAAAADAQAB";

function keyState({ fingerprint, name, username, filter, ...key }: AccessKey): Values {
  const data = key.refusedType === undefined ? (lines.get(fingerprint) ?? "") : DSS;
  return {
    fingerprint,
    name,
    username,
    filter,
    data,
    createdAt: "",
    owner: key.owner ?? "",
    ownerId: key.owner ?? "",
    ...end(key.expiresAt),
  };
}

const policyState = ({
  id,
  subject: { type, value },
  filter,
  reauthPeriod,
  ...policy
}: AccessPolicy): Values => ({
  // A policy without tags and pattern matches every device.
  filter: filter.tags?.length === 0 ? { hostname: ".*" } : filter,
  ...policy,
  policyId: id,
  createdAt: "",
  reauthPeriod: reauthPeriod ?? 0,
  subject: type === "all-members" ? { allMembers: true } : { [type]: value },
});

type Row = readonly [id: string, name: string, state: Values, facts?: Values];

/** Returns the objects of each kind: the id, the name and the state of each object. */
const rowsOf = ({
  devices,
  policy,
  identity,
  ...fixture
}: NamespaceFixture): Readonly<Partial<Record<KindName, readonly Row[] | undefined>>> => ({
  Namespace: [[fixture.tenant, fixture.name, { settings: fixture.settings }]],
  Member: fixture.members?.map(({ id, email, role, status, addedAt, expiresAt, accessExpiresAt }) => [
    id,
    email,
    {
      email,
      role,
      userId: id,
      accountEmail: email,
      addedAt,
      invitationExpiresAt: expiresAt ?? "",
      status: status === "pending" ? "invited" : "accepted",
      ...end(accessExpiresAt),
    },
  ]),
  PublicKey: policy.keys.map((key) => [key.fingerprint, key.name, keyState(key)]),
  FirewallRule: policy.rules.map(({ id, expiresAt, ...rule }) => [
    id,
    `${rule.action} at priority ${rule.priority}`,
    { ...rule, ruleId: id, ...end(expiresAt) },
  ]),
  AccessPolicy: (identity?.policies ?? []).map((one) => [one.id, one.name, policyState(one)]),
  ServiceAccount: (identity?.serviceAccounts ?? []).map(({ id, name, keys = [], role }) => [
    id,
    name,
    { name, accountId: id, fingerprint: keys[0]?.fingerprint ?? "", expiresAt: "", consumedAt: "" },
    { identities: keys, role },
  ]),
  InstallKey: (fixture.installKeys ?? []).map(({ id, ...key }) => [
    id,
    key.name,
    {
      installKeyId: id,
      allowedMacs: [],
      webhookUrl: "",
      webhookTimeout: 5,
      webhookCallbackTtl: 3600,
      validDays: -1,
      usageLimit: 0,
      ephemeral: false,
      ephemeralTimeout: 10,
      tags: [],
      disabled: false,
      ...key,
    },
  ]),
  ApiKey: fixture.apiKeys?.map(({ expiresIn, name, ...key }) => [
    name,
    name,
    { ...key, name, expiresAt: expiresIn === -1 ? "" : new Date(expiresIn * 1000).toISOString() },
  ]),
  TrustedWorkload: fixture.trustedWorkloads?.map(({ id, ...one }) => [
    id,
    one.name,
    { ...one, workloadId: id },
  ]),
  Device: devices.map(({ uid, name, tags, status, identity: { mac } }) => [
    uid,
    name,
    { uid, device: uid, name, tags, status, mac },
  ]),
});

/** Returns a namespace with the objects of a fixture. */
export function namespaceOf(fixture: NamespaceFixture): NamespaceState {
  const { tenant, name, identity, accessUnknown, notEvaluated, unknown, seen } = fixture;
  const { formerOwners, enforcesExpiry, unreadInvitations } = fixture;
  const objects = new Map<KindName, Objects>();
  const unread = new Map<KindName, Unread>();
  for (const [kind, rows] of Object.entries(rowsOf(fixture)) as [KindName, readonly Row[] | undefined][]) {
    const { reading } = kindNamed(kind);
    const isRead = !fixture.unreadKinds?.includes(kind);
    const all = (isRead ? rows : undefined)?.map(
      ([id, title, state, facts]): LiveObject => ({
        definition: definitionsByName[kind],
        id: kind === "Namespace" ? id : `${tenant}/${id}`,
        name: title,
        state: { tenant, ...state },
        ...(facts && { facts }),
      }),
    );
    if (all) objects.set(kind, byKey(all));
    else if (reading) unread.set(kind, { what: reading.what, missed: reading.missed, reason: "forbidden" });
  }
  if (unreadInvitations !== undefined)
    unread.set("Member", {
      what: "invitations",
      reason: unreadInvitations,
      missed: "unmanaged invitations cannot be detected",
    });
  return new NamespaceState({
    facts: {
      tenant,
      name,
      formerOwners,
      enforcesExpiry,
      seen,
      hasAccessModes: identity !== undefined,
      userKeys: identity?.userKeys,
      unreadIdentity: identity?.notEvaluated ?? [],
    },
    objects,
    unread,
    accessUnknown,
    notEvaluated,
    unknown,
    accessPoliciesDecide: identity?.decides ?? false,
  });
}

/** Returns the lists of a namespace, as tests compare them. */
export const listsOf = (state: NamespaceState) => ({
  policy: state.policy,
  members: membersOf(state),
  apiKeys: apiKeysOf(state),
  trustedWorkloads: workloadsOf(state),
  settings: settingsOf(state),
});

/** Returns a namespace in legacy mode in the short form, so that a test can record it. */
export function fixtureOf(state: NamespaceState): NamespaceFixture {
  const { tenant, name, seen, accessUnknown, notEvaluated, unknown, facts } = state;
  const { formerOwners, enforcesExpiry } = facts;
  return {
    tenant,
    name,
    seen,
    accessUnknown,
    notEvaluated,
    unknown,
    formerOwners,
    enforcesExpiry,
    ...listsOf(state),
    identity: undefined,
    devices: devicesOf(state).map(listedDevice),
  };
}

/** Returns a namespace after a plan, with its lists. */
export function namespaceAfter(
  fixture: NamespaceFixture | NamespaceState,
  plan: Plan,
  options: Parameters<typeof applyPlan>[2] = {},
) {
  const live = fixture instanceof NamespaceState ? fixture : namespaceOf(fixture);
  const { state, managed, ...applied } = applyPlan(live, plan, options);
  const { accessUnknown, notEvaluated, unknown } = state;
  const objects = [
    ...[...live.objects.values()].flatMap((own) => [...own.values()]),
    ...kindsWith("parts").flatMap(({ parts }) => parts.of(live.of)),
  ];
  return {
    ...applied,
    ...listsOf(state),
    accessUnknown,
    notEvaluated,
    unknown,
    state,
    /** The live objects that resources of the plan manage. */
    managed: objects.flatMap((object) => {
      const urn = managed.ownerOf(object);
      return urn === undefined ? [] : [{ kind: object.definition.name, id: idWithin(object), urn }];
    }),
  };
}
