import { type Listed, listed } from "../../../contract/listed.ts";
import type { Caller, Identity } from "./callers.ts";
import type { Sent } from "./requests.ts";
import type { World } from "./world.ts";

/** What decides who may call an operation. */
export type Access = Pick<Listed, "auth" | "minRole" | "pathParams" | "edition" | "aliases">;

/** This service's additions, which the list of the service's operations does not have. */
const ADDITIONS: Readonly<Record<string, Access>> = {
  confirmAddress: { auth: ["none"], minRole: null, pathParams: [], edition: "community", aliases: [] },
  challengeDevice: { auth: ["none"], minRole: null, pathParams: [], edition: "community", aliases: [] },
  getAuditTrail: {
    auth: ["jwt", "apikey"],
    minRole: "administrator",
    pathParams: ["tenant"],
    edition: "community",
    aliases: [],
  },
};

/** Least roles that the list leaves open (rules Q3; reading for the first). */
const DECIDED_ROLES: Readonly<Record<string, string>> = {
  authSshPublicKey: "observer",
  offlineDevice: "operator",
};

/** Rules section 4, weakest first. */
const LEVELS = ["observer", "operator", "administrator", "owner"];
/** Rules section 19, each with what the ones before it have. */
const EDITIONS = ["community", "enterprise", "cloud"];
/** Rules section 19: routed on every edition; a lower one answers that it has none. */
const ALWAYS_ROUTED = ["getSamlAuthUrl"];
/** Asked of the membership in the path's namespace, whichever the token is for (rules 5.5 and 5.7). */
const ABOUT_MEMBERSHIP = ["getNamespace", "leaveNamespace"];
/** Rules 1.5: a token without a namespace finds none of these; everything else of a namespace is forbidden to it. */
const NOT_FOUND = ["getTags", "renameTag", "deleteTag", "getSessionRecordStatus"];
/** A device does these for itself alone: its tunnel, and sessions, of which the request names none of its own. */
const OF_ITSELF = ["deviceConnection", "setSessionAuthenticated", "recordSession"];

/**
 * Who may call the operation.
 * @throws Error for one that neither the list nor {@link ADDITIONS} has
 */
export function accessOf(id: string): Access {
  const access = listed.get(id) ?? ADDITIONS[id];
  if (access === undefined)
    throw new Error(`${id} is in no list: say in ADDITIONS who may call it, and add a request of it`);
  return { ...access, minRole: access.minRole ?? DECIDED_ROLES[id] ?? null };
}

/** Whether instances of the edition have the operation. */
export const isServed = (id: string, edition: string): boolean =>
  ALWAYS_ROUTED.includes(id) || EDITIONS.indexOf(accessOf(id).edition) <= EDITIONS.indexOf(edition);

const answerOf = ({ status }: Sent, identity: Identity | null): number =>
  typeof status === "number" ? status : status(identity?.labRole ?? null, identity?.owns ?? false);

/**
 * The status that rules section 1 (credentials), 4 (roles) and 19 (editions) ask for. It knows nothing of the server:
 * what it says and what the server does come from two readings of the rules.
 */
export function expectedStatus(
  { lab }: World,
  id: string,
  sent: Sent,
  { identity }: Caller,
  edition: string,
): number {
  const access = accessOf(id);
  if (!isServed(id, edition)) return 404;
  if (access.auth.includes("none")) return answerOf(sent, null);
  if (identity === null) return 401;
  if (!access.auth.includes(identity.kind)) return 403;
  // A device may act for itself when it is accepted (rules 1.8, Q3): these wait, and the request names another one.
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
