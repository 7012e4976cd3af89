import { type Operation, operations, type Role } from "@gatehouse-access/sdk/contract";
import { type CallOptions, DENY_RULE, PUBLIC_KEY } from "../testApp.ts";
import type { MatrixFixture } from "./fixture.ts";

export type Id = keyof typeof operations;

/** A request that passes the access checks of an operation. It changes nothing, unless {@link Sent.ends} is set. */
export interface Sent extends CallOptions {
  /** The status of the response to a caller with access to the operation. */
  readonly status: number | ((labRole: Role | null, owns: boolean) => number);
  /**
   * Set if the request changes something when its caller has access. `something`: the change affects other callers, so
   * each caller needs a new fixture. `caller`: the request ends only the caller's own access, so all callers share one
   * fixture.
   */
  readonly ends?: "something" | "caller";
}

const MISSING = "0".repeat(64);

/** Values of path parameters that refer to no object. Each parameter has the first value that its schema accepts. */
const MISSING_VALUES = [
  MISSING,
  "0".repeat(32),
  "0".repeat(24),
  "00000000-0000-4000-8000-000000000000",
  Array(16).fill("00").join(":"),
  "471100",
  "0",
  "reject",
  "device",
];

/** Returns the path parameters of an operation, except the namespace. They refer to no object. */
function missingParams({ id, params }: Operation): Record<string, string> {
  const names = Object.keys(params.shape).filter((name) => name !== "tenant");
  return Object.fromEntries(
    names.map((name) => {
      const value = MISSING_VALUES.find((one) => params.shape[name]?.safeParse(one).success);
      if (value === undefined)
        throw new Error(`${id}: add a value of the parameter {${name}} to MISSING_VALUES`);
      return [name, value];
    }),
  );
}

/**
 * Returns the request for an operation whose contract determines it; undefined for other operations. A public write has
 * an empty body, a path refers to no object, and another read lists objects.
 */
function derivedRequest(operation: Operation): Sent | undefined {
  const params = missingParams(operation);
  if (operation.scope === "public" && operation.method !== "GET") return { params, body: {}, status: 400 };
  if (Object.keys(params).length > 0) return { params, status: 404 };
  return operation.method === "GET" ? { status: 200 } : undefined;
}

const DERIVED = new Map(Object.values<Operation>(operations).map((one) => [one.id, derivedRequest(one)]));

/** A token that the service has never sent by mail. */
const token = "00000000-0000-4000-8000-000000000000";
const tag = "nowhere";
const tags = [tag];
const filter = { tags };
const { data, ...publicKey } = { ...PUBLIC_KEY, filter };
const rule = { ...DENY_RULE, filter };
const paymentMethod = { id: "pm_visa_4242_203010_1" };
/** A well-formed MFA secret, and codes that do not match any secret. */
const mfa = { code: "000000", secret: "A".repeat(32), recovery_codes: ["AAAABBBBCCCCDDDD"] };
const workload = {
  name: "observer",
  issuer: "https://issuer.example.org",
  audience: "gate",
  role: "observer",
  claims: { sub: "observer" },
};
const missing = { status: 404 };
// These operations require a WebSocket, but the requests are plain HTTP.
const noWebSocket = { status: 400 };
const forMembers = (labRole: Role | null) => (labRole === null ? 404 : 200);

/**
 * Returns the parts of requests that the contract does not determine. Each request passes as many checks as possible,
 * but changes nothing: it refers to a missing object or a missing tag, or uses a name that is taken. All its other
 * values are valid.
 */
function partsOf({ lab }: MatrixFixture): Partial<Record<Id, Partial<Sent>>> {
  const invitation = { email: lab.owner.email, role: "observer" };
  return {
    challengeDevice: { body: undefined, status: 200 },
    authSshPublicKey: { body: { fingerprint: Array(16).fill("00").join(":"), data: "text" }, ...missing },
    validateAccount: { query: { email: "missing@example.org", token }, ...missing },
    lookupUserStatus: { query: { sig: "nonsense" } },
    // The service has no SAML settings.
    getSamlAuthUrl: { status: 501 },
    enableMfa: { body: mfa, status: 400 },
    disableMfa: { body: { code: mfa.code }, status: 400 },
    updateUser: { body: { password: "another-horse" }, status: 400 },
    updateUserData: { body: {}, status: 403 },
    updateUserPassword: {
      body: { current_password: "wrong-horse", new_password: "another-horse" },
      status: 403,
    },
    deleteUser: { status: (_, owns) => (owns ? 403 : 204), ends: "caller" },
    acceptInvite: { body: { sig: "nonsense" }, ...missing },
    getToken: { status: forMembers },
    getNamespaceToken: { status: forMembers },
    createNamespace: { body: { name: lab.owner.username.replace("-owner", "") }, status: 409 },
    editNamespace: { body: {}, status: 200 },
    deleteNamespace: { status: 200, ends: "something" },
    setSessionRecord: { body: { session_record: true }, status: 200 },
    leaveNamespace: { status: (labRole) => (labRole === "owner" ? 403 : 200), ends: "something" },
    inviteMember: { body: invitation, status: 409 },
    generateInvitationLink: { body: invitation, status: 409 },
    updateMember: { body: { role: "observer" } },
    claimObject: { body: { project: "lab", stack: "test", resource: "key" } },
    createApiKey: { body: { name: "observer", expires_at: 30, role: "observer" }, status: 409 },
    // Every namespace has a workload with the name `observer`.
    createTrustedWorkload: { body: workload, status: 409 },
    updateTrustedWorkload: { body: workload },
    renewWorkloadSession: { status: 200 },
    updateApiKey: { body: { role: "observer" } },
    updateDevice: { body: { name: "gate" } },
    renameDevice: { body: { name: "gate" } },
    createDeviceTag: { body: { tag } },
    updateDeviceTags: { body: { tags } },
    updateContainer: { body: { name: "gate" } },
    createContainerTag: { body: { tag } },
    updateContainerTags: { body: { tags } },
    setSessionAuthenticated: { body: { authenticated: true } },
    closeSession: { body: { device: MISSING } },
    recordSession: { body: { uid: MISSING, seat: 0, message: "$ ", width: 80, height: 24 } },
    deviceConnection: noWebSocket,
    agentConnection: noWebSocket,
    deviceRevdial: noWebSocket,
    openWebTerminal: { body: { device: MISSING, username: "root", password: "secret" }, status: 200 },
    streamWebTerminal: noWebSocket,
    connectorCreate: { body: { address: "engine.example.org", port: 2376, secure: true }, status: 400 },
    connectorUpdate: { body: { enable: false } },
    resolveDevice: { query: { uid: MISSING }, ...missing },
    createTunnel: { body: { host: "127.0.0.1", port: 80, ttl: -1 } },
    renameTag: { body: { tag: "elsewhere" } },
    createPublicKey: { body: { ...publicKey, data }, ...missing },
    updatePublicKey: { body: publicKey },
    addPublicKeyTag: { body: { tag } },
    updatePublicKeyTags: { body: { tags } },
    createFirewallRule: { body: rule, ...missing },
    updateFirewallRule: { body: rule },
    addFirewallRuleTag: { body: { tag } },
    updateFirewallRuleTags: { body: { tags } },
    removeFirewallRuleTag: { body: { tag } },
    // The namespaces have no billing customers.
    attachPaymentMethod: { body: paymentMethod, ...missing },
    detachPaymentMethod: { body: paymentMethod, ...missing },
    setDefaultPaymentMethod: { body: paymentMethod, ...missing },
    choiceDevices: { body: { choices: [] }, status: 200 },
    getCustomer: missing,
    getSubscription: missing,
    createCustomer: { status: 200, ends: "something" },
    createSubscription: missing,
    createBillingPortal: missing,
    evaluateBilling: { status: 200 },
    reportBilling: { query: { action: "device_accept" }, status: 200 },
  };
}

/** Returns the request for an operation on the lab. */
export function requestOf(fixture: MatrixFixture, id: Id): Sent {
  const request = { ...DERIVED.get(id), ...partsOf(fixture)[id] };
  const { status } = request;
  if (status === undefined) throw new Error(`${id}: add a request to partsOf`);
  return { ...request, status, params: { tenant: fixture.lab.tenant, ...request.params } };
}
