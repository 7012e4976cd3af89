import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../http/routes.ts";
import { evaluateNamespaceBilling, reportNamespaceBilling } from "./billing/evaluate.ts";
import { lookupDevice } from "./devices/lookup.ts";
import { markDeviceOffline } from "./devices/offline.ts";
import { evaluateFirewall } from "./firewall/evaluate.ts";
import { authRequest } from "./internal/authRequest.ts";
import { createPrivateKey } from "./privateKeys/privateKeys.ts";
import { evaluatePublicKey, lookupPublicKey } from "./publicKeys/evaluate.ts";
import {
  addSessionEvent,
  createSession,
  finishSession,
  keepSessionAlive,
  storeSessionRecord,
  updateSession,
} from "./sessions/entry.ts";
import { streamSessionEvents } from "./sessions/eventStream.ts";
import { createUserToken } from "./users/tokens.ts";

/** The behaviour of every internal operation; an operation without one does not compile. */
export const internalHandlers: Handlers<InternalOperations> = {
  authRequest,
  createUserToken,
  lookupDevice,
  markDeviceOffline,
  lookupPublicKey,
  evaluatePublicKey,
  createPrivateKey,
  evaluateFirewall,
  createSession,
  updateSession,
  keepSessionAlive,
  finishSession,
  addSessionEvent,
  streamSessionEvents,
  storeSessionRecord,
  evaluateNamespaceBilling,
  reportNamespaceBilling,
};
