import type { InternalOperations, peers } from "@gatehouse-access/sdk/contract";
import type { Handler, Handlers } from "../http/handler.ts";
import { evaluateNamespaceBilling, reportNamespaceBilling } from "./billing/evaluate.ts";
import { lookupDevice } from "./devices/lookup.ts";
import { markDeviceOffline } from "./devices/offline.ts";
import { evaluateFirewall } from "./firewall/evaluate.ts";
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
import { createUserToken } from "./users/session.ts";

/**
 * Returns the user, device, workload or API key that a credential identifies. Trusted services call this operation
 * (rules section 3). The response does not contain the secret of an API key.
 */
const authRequest: Handler<InternalOperations["authRequest"]> = async ({ identity, header }) => {
  if (identity.tenant !== "") header("X-Tenant-ID", identity.tenant);
  switch (identity.kind) {
    case "user":
      header("X-ID", identity.userId);
      header("X-Username", identity.username);
      if (identity.role !== null) header("X-Role", identity.role);
      break;
    case "apikey":
      header("X-Role", identity.role);
      header("X-Api-Key", "true");
      break;
    case "device":
      header("X-Device-UID", identity.uid);
      break;
    case "workload":
      header("X-Workload-ID", identity.workloadId);
      header("X-Role", identity.role);
      break;
  }
  return undefined;
};

/**
 * The handlers of all internal operations. Trusted services call these operations. A missing handler is a compile
 * error.
 */
export const internalHandlers: Handlers<Omit<InternalOperations, keyof typeof peers>> = {
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
