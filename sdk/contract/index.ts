import * as accounts from "./accounts.ts";
import * as addresses from "./addresses.ts";
import * as announcements from "./announcements.ts";
import * as apiKeys from "./apiKeys.ts";
import * as audit from "./audit.ts";
import * as billing from "./billing.ts";
import * as connectors from "./connectors.ts";
import * as containers from "./containers.ts";
import * as declarations from "./declarations.ts";
import * as devices from "./devices.ts";
import * as firewall from "./firewall.ts";
import * as fleet from "./fleet.ts";
import * as install from "./install.ts";
import * as internal from "./internal.ts";
import * as invitations from "./invitations.ts";
import * as liveConnections from "./liveConnections.ts";
import * as mfa from "./mfa.ts";
import * as namespaces from "./namespaces.ts";
import type { Operation } from "./operation.ts";
import * as peers from "./peers.ts";
import * as publicKeys from "./publicKeys.ts";
import * as saml from "./saml.ts";
import * as sessions from "./sessions.ts";
import * as support from "./support.ts";
import * as tags from "./tags.ts";
import * as trustedWorkloads from "./trustedWorkloads.ts";
import * as tunnels from "./tunnels.ts";
import * as users from "./users.ts";

export { CLAIMED_KINDS, type ClaimedKind } from "./declarations.ts";
export * from "./operation.ts";
export { FIREWALL_PATTERNS_MAX, FORWARDING_PATTERNS_MAX } from "./patternSize.ts";
export * from "./schemas.ts";
export * from "./sshKey.ts";
export {
  accounts,
  addresses,
  announcements,
  apiKeys,
  audit,
  billing,
  connectors,
  containers,
  declarations,
  devices,
  firewall,
  fleet,
  install,
  internal,
  invitations,
  liveConnections,
  mfa,
  namespaces,
  peers,
  publicKeys,
  saml,
  sessions,
  support,
  tags,
  trustedWorkloads,
  tunnels,
  users,
};

type OperationsOf<M> = { [K in keyof M as M[K] extends Operation ? K : never]: M[K] };

/** Extracts the operations from the exports of a contract module. */
function operationsOf<M extends object>(module: M): OperationsOf<M> {
  const entries = Object.entries(module).filter(([id, value]) => value?.id === id && "method" in value);
  return Object.fromEntries(entries) as OperationsOf<M>;
}

/** The operations of the specification, by id. */
export const publicOperations = {
  ...operationsOf(users),
  ...operationsOf(accounts),
  ...operationsOf(mfa),
  ...operationsOf(saml),
  ...operationsOf(namespaces),
  ...operationsOf(invitations),
  ...operationsOf(devices),
  ...operationsOf(containers),
  ...operationsOf(tags),
  ...operationsOf(publicKeys),
  ...operationsOf(firewall),
  ...operationsOf(apiKeys),
  ...operationsOf(sessions),
  ...operationsOf(liveConnections),
  ...operationsOf(billing),
  ...operationsOf(announcements),
  ...operationsOf(connectors),
  ...operationsOf(fleet),
  ...operationsOf(install),
  ...operationsOf(support),
  ...operationsOf(tunnels),
};

/** The type of {@link publicOperations}. */
export type PublicOperations = typeof publicOperations;

/** The operations that only this service provides, by id. */
export const additionalOperations = {
  ...operationsOf(audit),
  ...operationsOf(addresses),
  ...operationsOf(trustedWorkloads),
  ...operationsOf(declarations),
};

/** All operations of the public listener, by id. The client has a method for each of them. */
export const operations = { ...publicOperations, ...additionalOperations };

/** The type of {@link operations}. */
export type Operations = typeof operations;

/**
 * The operations for trusted services on the private network, such as an SSH gateway, by id. A separate listener serves
 * these operations, and the client has no methods for them (clients section 7).
 */
export const internalOperations = {
  ...operationsOf(internal),
  ...operationsOf(peers),
};

/** The type of {@link internalOperations}. */
export type InternalOperations = typeof internalOperations;
