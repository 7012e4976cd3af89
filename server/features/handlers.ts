import type { liveConnections, Operations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../http/handler.ts";
import * as announcements from "./announcements/handlers.ts";
import * as apiKeys from "./apiKeys/apiKeys.ts";
import * as audit from "./audit/audit.ts";
import * as customers from "./billing/customer.ts";
import * as billedDevices from "./billing/devices.ts";
import * as billing from "./billing/evaluate.ts";
import * as subscriptions from "./billing/subscription.ts";
import * as connectors from "./connectors/connectors.ts";
import * as declarations from "./declarations/handlers.ts";
import * as agents from "./devices/authDevice.ts";
import { containerHandlers } from "./devices/containers.ts";
import * as deviceProof from "./devices/deviceProof.ts";
import * as devices from "./devices/devices.ts";
import * as offlineDevices from "./devices/offline.ts";
import * as deviceStatus from "./devices/status.ts";
import * as deviceTags from "./devices/tags.ts";
import * as firewall from "./firewall/rules.ts";
import * as fleet from "./fleet/handlers.ts";
import * as install from "./install/handlers.ts";
import * as invitations from "./namespaces/invitationHandlers.ts";
import * as members from "./namespaces/members.ts";
import * as namespaces from "./namespaces/namespaces.ts";
import type { ObjectRows } from "./objects.ts";
import * as privateKeys from "./privateKeys/privateKeys.ts";
import * as publicKeys from "./publicKeys/publicKeys.ts";
import * as saml from "./saml/handlers.ts";
import * as playback from "./sessions/playback.ts";
import * as recordings from "./sessions/records.ts";
import * as sessions from "./sessions/sessions.ts";
import * as support from "./support/handlers.ts";
import * as tags from "./tags/handlers.ts";
import * as tokenExchange from "./trustedWorkloads/exchange.ts";
import * as workloadSessions from "./trustedWorkloads/session.ts";
import * as trustedWorkloads from "./trustedWorkloads/trustedWorkloads.ts";
import * as tunnels from "./tunnels/tunnels.ts";
import { confirmAddress } from "./users/account/addresses.ts";
import { accountHandlers, mfaHandlers, userHandlers } from "./users/handlers.ts";

/**
 * The handlers of all operations except live connections. A module exports a handler under the id of its operation.
 * Other exports of a module have no effect. A missing handler is a compile error.
 */
export const handlers: Handlers<Omit<Operations, keyof typeof liveConnections>, ObjectRows> = {
  ...announcements,
  ...apiKeys,
  ...audit,
  ...customers,
  ...billedDevices,
  ...billing,
  ...subscriptions,
  ...connectors,
  ...declarations,
  ...agents,
  ...deviceProof,
  ...devices,
  ...offlineDevices,
  ...deviceStatus,
  ...deviceTags,
  ...firewall,
  ...fleet,
  ...install,
  ...invitations,
  ...members,
  ...namespaces,
  ...privateKeys,
  ...publicKeys,
  ...saml,
  ...playback,
  ...recordings,
  ...sessions,
  ...support,
  ...tags,
  ...tokenExchange,
  ...workloadSessions,
  ...trustedWorkloads,
  ...tunnels,
  ...containerHandlers,
  ...accountHandlers,
  ...mfaHandlers,
  ...userHandlers,
  confirmAddress,
};
