import type { liveConnections, Operations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../http/handler.ts";
import { announcementHandlers } from "./announcements/handlers.ts";
import { apiKeyHandlers } from "./apiKeys/handlers.ts";
import { auditHandlers } from "./audit/handlers.ts";
import { billingHandlers } from "./billing/handlers.ts";
import { connectorHandlers } from "./connectors/handlers.ts";
import { declarationHandlers } from "./declarations/handlers.ts";
import { containerHandlers } from "./devices/containers.ts";
import { deviceHandlers } from "./devices/handlers.ts";
import { firewallHandlers } from "./firewall/handlers.ts";
import { fleetHandlers } from "./fleet/handlers.ts";
import { installHandlers } from "./install/handlers.ts";
import { namespaceHandlers } from "./namespaces/handlers.ts";
import { invitationHandlers } from "./namespaces/invitationHandlers.ts";
import { publicKeyHandlers } from "./publicKeys/handlers.ts";
import { samlHandlers } from "./saml/handlers.ts";
import { sessionHandlers } from "./sessions/handlers.ts";
import { supportHandlers } from "./support/handlers.ts";
import { tagHandlers } from "./tags/handlers.ts";
import { trustedWorkloadHandlers } from "./trustedWorkloads/handlers.ts";
import { tunnelHandlers } from "./tunnels/handlers.ts";
import { confirmAddress } from "./users/account/addresses.ts";
import { accountHandlers, mfaHandlers, userHandlers } from "./users/handlers.ts";

/** The handlers of all operations except live connections. A missing handler is a compile error. */
export const handlers: Handlers<Omit<Operations, keyof typeof liveConnections>> = {
  ...userHandlers,
  ...accountHandlers,
  ...mfaHandlers,
  ...samlHandlers,
  ...namespaceHandlers,
  ...invitationHandlers,
  ...deviceHandlers,
  ...containerHandlers,
  ...tagHandlers,
  ...publicKeyHandlers,
  ...firewallHandlers,
  ...apiKeyHandlers,
  ...sessionHandlers,
  ...billingHandlers,
  ...announcementHandlers,
  ...connectorHandlers,
  ...fleetHandlers,
  ...installHandlers,
  ...supportHandlers,
  ...tunnelHandlers,
  ...auditHandlers,
  ...trustedWorkloadHandlers,
  ...declarationHandlers,
  confirmAddress,
};
