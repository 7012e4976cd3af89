import type { operations, Role } from "@gatehouse-access/sdk/contract";
import type { CallOptions } from "../testApp.ts";
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

/** A token that the service has never sent by mail. */
const token = "00000000-0000-4000-8000-000000000000";
const missingUser = { uid: "0".repeat(24) };
const tags = ["nowhere"];
const tag = "nowhere";
const filter = { tags };
const data = Buffer.from(
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n",
).toString("base64");
const publicKey = { name: "key", username: "root", filter };
const rule = { action: "deny", active: true, priority: 1, source_ip: ".*", username: ".*", filter };
const paymentMethod = { id: "pm_visa_4242_203010_1" };
/** A well-formed MFA secret, and codes that do not match any secret. */
const mfa = { code: "000000", secret: "A".repeat(32), recovery_codes: ["AAAABBBBCCCCDDDD"] };

/**
 * Returns one request for each operation. The request passes as many checks as possible, but changes nothing: it refers
 * to a missing object or a missing tag, or uses a name that is taken. All its other values are valid.
 */
export function requestsOf({ lab }: MatrixFixture): Record<Id, Sent> {
  const tenant = { tenant: lab.tenant };
  const uid = { uid: "0".repeat(64) };
  const member = { ...tenant, ...missingUser };
  const fingerprint = { fingerprint: Array(16).fill("00").join(":") };
  const id = { id: "471100" };
  const key = { key: "nokey" };
  const missingWorkload = { id: missingUser.uid };
  const workload = {
    name: "observer",
    issuer: "https://issuer.example.org",
    audience: "gate",
    role: "observer",
    claims: { sub: "observer" },
  };
  const chunk = { ...uid, seat: 0, message: "$ ", width: 80, height: 24 };
  const seat = { ...uid, seat: "0" };
  const connector = { uid: "00000000-0000-4000-8000-000000000000" };
  const missing = { status: 404 };
  // These operations require a WebSocket, but the requests are plain HTTP.
  const noWebSocket = { status: 400 };
  const listing = { status: 200 };
  const forMembers = (labRole: Role | null) => (labRole === null ? 404 : 200);
  return {
    login: { body: {}, status: 400 },
    authUser: { body: {}, status: 400 },
    authMfa: { body: {}, status: 400 },
    recoverMfa: { body: {}, status: 400 },
    requestResetMfa: { body: {}, status: 400 },
    resetMfa: { params: { "user-id": "0".repeat(24) }, body: {}, status: 400 },
    setup: { body: {}, status: 400 },
    confirmAddress: { body: {}, status: 400 },
    challengeDevice: listing,
    authDevice: { body: {}, status: 400 },
    authSshPublicKey: { body: { ...fingerprint, data: "text" }, ...missing },
    offlineDevice: { params: uid, ...missing },
    registerUser: { body: {}, status: 400 },
    validateAccount: { query: { email: "missing@example.org", token }, ...missing },
    resendEmail: { body: {}, status: 400 },
    recoverPassword: { body: {}, status: 400 },
    updateRecoverPassword: { params: missingUser, body: {}, status: 400 },
    lookupUserStatus: { params: { ...tenant, id: missingUser.uid }, query: { sig: "nonsense" }, ...missing },
    // The service has no SAML settings.
    getSamlAuthUrl: { status: 501 },
    getInfo: listing,
    healthcheck: listing,
    getInstallScript: listing,

    getUserInfo: listing,
    generateMfa: listing,
    enableMfa: { body: mfa, status: 400 },
    disableMfa: { body: { code: mfa.code }, status: 400 },
    updateUser: { body: { password: "another-horse" }, status: 400 },
    updateUserData: { params: { id: missingUser.uid }, body: {}, status: 403 },
    updateUserPassword: {
      params: { id: missingUser.uid },
      body: { current_password: "wrong-horse", new_password: "another-horse" },
      status: 403,
    },
    deleteUser: { status: (_, owns) => (owns ? 403 : 204), ends: "caller" },
    acceptInvite: { params: tenant, body: { sig: "nonsense" }, ...missing },
    getToken: { params: tenant, status: forMembers },
    getNamespaceToken: { params: tenant, status: forMembers },

    createNamespace: { body: { name: lab.owner.username.replace("-owner", "") }, status: 409 },
    getNamespaces: listing,
    getNamespace: { params: tenant, status: 200 },
    editNamespace: { params: tenant, body: {}, status: 200 },
    deleteNamespace: { params: tenant, status: 200, ends: "something" },
    setSessionRecord: { params: tenant, body: { session_record: true }, status: 200 },
    leaveNamespace: {
      params: tenant,
      status: (labRole) => (labRole === "owner" ? 403 : 200),
      ends: "something",
    },
    inviteMember: { params: tenant, body: { email: lab.owner.email, role: "observer" }, status: 409 },
    generateInvitationLink: {
      params: tenant,
      body: { email: lab.owner.email, role: "observer" },
      status: 409,
    },
    updateMember: { params: member, body: { role: "observer" }, ...missing },
    removeMember: { params: member, ...missing },
    getNamespaceSupport: { params: tenant, status: 200 },
    getAuditTrail: { params: tenant, status: 200 },
    claimObject: {
      params: { ...tenant, kind: "device", id: "missing" },
      body: { project: "lab", stack: "test", resource: "key" },
      ...missing,
    },

    createApiKey: { body: { name: "observer", expires_at: 30, role: "observer" }, status: 409 },
    // Every namespace has a workload with the name `observer`.
    createTrustedWorkload: { body: workload, status: 409 },
    listTrustedWorkloads: listing,
    getTrustedWorkload: { params: missingWorkload, ...missing },
    updateTrustedWorkload: { params: missingWorkload, body: workload, ...missing },
    deleteTrustedWorkload: { params: missingWorkload, ...missing },
    exchangeWorkloadToken: { body: {}, status: 400 },
    renewWorkloadSession: listing,

    listApiKeys: listing,
    updateApiKey: { params: key, body: { role: "observer" }, ...missing },
    deleteApiKey: { params: key, ...missing },

    getDevices: listing,
    getDevice: { params: uid, ...missing },
    deleteDevice: { params: uid, ...missing },
    updateDevice: { params: uid, body: { name: "gate" }, ...missing },
    renameDevice: { params: uid, body: { name: "gate" }, ...missing },
    updateDeviceStatus: { params: { ...uid, status: "reject" }, ...missing },
    acceptDevice: { params: uid, ...missing },
    createDeviceTag: { params: uid, body: { tag }, ...missing },
    updateDeviceTags: { params: uid, body: { tags }, ...missing },
    deleteDeviceTag: { params: { ...uid, tag }, ...missing },

    getContainers: listing,
    getContainer: { params: uid, ...missing },
    deleteContainer: { params: uid, ...missing },
    updateContainer: { params: uid, body: { name: "gate" }, ...missing },
    updateContainerStatus: { params: { ...uid, status: "reject" }, ...missing },
    createContainerTag: { params: uid, body: { tag }, ...missing },
    updateContainerTags: { params: uid, body: { tags }, ...missing },
    deleteContainerTag: { params: { ...uid, tag }, ...missing },

    getSessions: listing,
    getSession: { params: uid, ...missing },
    setSessionAuthenticated: { params: uid, body: { authenticated: true }, ...missing },
    closeSession: { params: uid, body: { device: uid.uid }, ...missing },
    recordSession: { params: seat, body: chunk, ...missing },
    getSessionRecord: { params: seat, ...missing },
    deleteSessionRecord: { params: seat, ...missing },
    getSessionRecordStatus: listing,

    deviceConnection: noWebSocket,
    agentConnection: noWebSocket,
    deviceRevdial: noWebSocket,
    openWebTerminal: { body: { device: uid.uid, username: "root", password: "secret" }, ...listing },
    streamWebTerminal: noWebSocket,
    listAnnouncements: listing,
    getAnnouncement: { params: { uuid: "00000000-0000-4000-8000-000000000000" }, ...missing },

    connectorCreate: { body: { address: "engine.example.org", port: 2376, secure: true }, status: 400 },
    connectorList: listing,
    connectorGet: { params: connector, ...missing },
    connectorUpdate: { params: connector, body: { enable: false }, ...missing },
    connectorDelete: { params: connector, ...missing },
    connectorInfo: { params: connector, ...missing },

    resolveDevice: { query: uid, ...missing },
    getStats: listing,
    listTunnels: { params: uid, ...missing },
    createTunnel: { params: uid, body: { host: "127.0.0.1", port: 80, ttl: -1 }, ...missing },
    deleteTunnel: { params: { ...uid, address: "0".repeat(32) }, ...missing },

    getTags: listing,
    renameTag: { params: { tag }, body: { tag: "elsewhere" }, ...missing },
    deleteTag: { params: { tag }, ...missing },

    getPublicKeys: listing,
    createPublicKey: { body: { ...publicKey, data }, ...missing },
    updatePublicKey: { params: fingerprint, body: publicKey, ...missing },
    deletePublicKey: { params: fingerprint, ...missing },
    addPublicKeyTag: { params: fingerprint, body: { tag }, ...missing },
    updatePublicKeyTags: { params: fingerprint, body: { tags }, ...missing },
    removePublicKeyTag: { params: { ...fingerprint, tag }, ...missing },

    getFirewallRules: listing,
    createFirewallRule: { body: rule, ...missing },
    getFirewallRule: { params: id, ...missing },
    updateFirewallRule: { params: id, body: rule, ...missing },
    deleteFirewallRule: { params: id, ...missing },
    addFirewallRuleTag: { params: id, body: { tag }, ...missing },
    updateFirewallRuleTags: { params: id, body: { tags }, ...missing },
    removeFirewallRuleTag: { params: id, body: { tag }, ...missing },

    // The namespaces have no billing customers.
    attachPaymentMethod: { body: paymentMethod, ...missing },
    detachPaymentMethod: { body: paymentMethod, ...missing },
    setDefaultPaymentMethod: { body: paymentMethod, ...missing },
    choiceDevices: { body: { choices: [] }, status: 200 },
    getCustomer: missing,
    getSubscription: missing,
    getDevicesMostUsed: listing,
    createCustomer: { status: 200, ends: "something" },
    createSubscription: missing,
    createBillingPortal: missing,
    evaluateBilling: { status: 200 },
    reportBilling: { query: { action: "device_accept" }, status: 200 },
  };
}
