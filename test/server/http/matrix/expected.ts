import { type Listed, listed } from "../../../contract/listed.ts";
import type { Caller, Identity } from "./callers.ts";
import type { MatrixFixture } from "./fixture.ts";
import type { Sent } from "./requests.ts";

/** The properties of an operation that determine the accepted callers. */
type Access = Pick<Listed, "auth" | "minRole" | "pathParams" | "edition" | "aliases">;

/** Operations of this service that are not in the list of operations. */
const ADDITION = { pathParams: [], edition: "community", aliases: [] };
const READ = { ...ADDITION, auth: ["jwt", "apikey"], minRole: "observer" };
const WRITE = { ...ADDITION, auth: ["jwt"], minRole: "administrator" };
const OPEN = { ...ADDITION, auth: ["none"], minRole: null };
const ADDITIONS: Readonly<Record<string, Access>> = {
  createTrustedWorkload: WRITE,
  listTrustedWorkloads: READ,
  getTrustedWorkload: { ...READ, pathParams: ["id"] },
  updateTrustedWorkload: { ...WRITE, pathParams: ["id"] },
  deleteTrustedWorkload: { ...WRITE, pathParams: ["id"] },
  exchangeWorkloadToken: OPEN,
  renewWorkloadSession: { ...ADDITION, auth: ["workload"], minRole: "observer" },
  confirmAddress: OPEN,
  challengeDevice: OPEN,
  agentConnection: { ...ADDITION, auth: ["device"], minRole: null },
  getAuditTrail: { ...READ, minRole: "administrator", pathParams: ["tenant"] },
  claimObject: { ...READ, minRole: "operator", pathParams: ["tenant", "kind", "id"] },
};

/**
 * Minimum roles of operations for which the list of operations has none. The role of `authSshPublicKey` is an
 * interpretation of the rules; rules Q3 define the role of `offlineDevice`.
 */
const DECIDED_ROLES: Readonly<Record<string, string>> = {
  authSshPublicKey: "observer",
  offlineDevice: "operator",
};

/** Roles, weakest first (rules, section 4). */
const LEVELS = ["observer", "operator", "administrator", "owner"];
/** Editions. Each edition includes the operations of the earlier editions in this list (rules, section 19). */
const EDITIONS = ["community", "enterprise", "cloud"];
/**
 * Operations with a route in every edition (rules, section 19). If the edition does not serve such an operation, the
 * route returns an error that explains this.
 */
const ALWAYS_ROUTED = ["getSamlAuthUrl"];
/**
 * Operations that check the membership in the path's namespace. The token may be for any namespace (rules 5.5, 5.7).
 */
const ABOUT_MEMBERSHIP = ["getNamespace", "leaveNamespace"];
/**
 * Operations that return 404 for a token without a namespace (rules 1.5). All other operations of a namespace return
 * 403.
 */
const NOT_FOUND = ["getTags", "renameTag", "deleteTag", "getSessionRecordStatus"];
/**
 * Operations that a device may call only for its own tunnel and sessions. The requests refer to sessions of other
 * devices.
 */
const OF_ITSELF = ["deviceConnection", "agentConnection", "setSessionAuthenticated", "recordSession"];

/**
 * Returns the access rule of an operation.
 * @throws Error if neither the list nor {@link ADDITIONS} has the operation
 */
export function accessOf(id: string): Access {
  const access = listed.get(id) ?? ADDITIONS[id];
  if (access === undefined)
    throw new Error(`${id} is in no list: add its access to ADDITIONS, and add a request`);
  return { ...access, minRole: access.minRole ?? DECIDED_ROLES[id] ?? null };
}

/** Returns true if instances of the edition serve the operation. */
export const isServed = (id: string, edition: string): boolean =>
  ALWAYS_ROUTED.includes(id) || EDITIONS.indexOf(accessOf(id).edition) <= EDITIONS.indexOf(edition);

/**
 * Returns true if an operation accepts the session of a workload. A workload can call the operations on its namespace
 * that accept a user's token, except the operation with which a member leaves the namespace. It can also list its
 * namespace. It cannot call operations on a user's account, and operations of agents.
 */
const acceptsWorkloads = (id: string, { auth, minRole }: Access): boolean =>
  auth.includes("workload") ||
  id === "getNamespaces" ||
  (auth.includes("jwt") && !auth.includes("device") && minRole !== null && id !== "leaveNamespace");

const answerOf = ({ status }: Sent, identity: Identity | null): number =>
  typeof status === "number" ? status : status(identity?.labRole ?? null, identity?.owns ?? false);

/**
 * Returns the status that the rules require: sections 1 (credentials), 4 (roles) and 19 (editions). This function
 * implements the rules without code of the server.
 */
export function expectedStatus(
  { lab }: MatrixFixture,
  id: string,
  sent: Sent,
  { identity }: Caller,
  edition: string,
): number {
  const access = accessOf(id);
  if (!isServed(id, edition)) return 404;
  if (access.auth.includes("none")) return answerOf(sent, null);
  if (identity === null) return 401;
  const isAccepted =
    identity.kind === "workload" ? acceptsWorkloads(id, access) : access.auth.includes(identity.kind);
  if (!isAccepted) return 403;
  // Only an accepted device can act for itself (rules 1.8, Q3). The devices of the matrix are pending, and the request
  // refers to another device.
  if (identity.kind === "device") return OF_ITSELF.includes(id) ? answerOf(sent, null) : 403;
  if (access.minRole === null) return answerOf(sent, identity);
  const inPath = access.pathParams.includes("tenant");
  const byMembership = ABOUT_MEMBERSHIP.includes(id);
  if (inPath && !byMembership && identity.tenant !== lab.tenant) return 403;
  const role = byMembership ? identity.labRole : identity.role;
  if (role === null) return NOT_FOUND.includes(id) ? 404 : 403;
  if (LEVELS.indexOf(role) < LEVELS.indexOf(access.minRole)) return 403;
  return answerOf(sent, identity);
}
