import type { PublicOperations, sessions } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { getSessionRecord } from "./playback.ts";
import { deleteSessionRecord, getSessionRecordStatus, recordSession } from "./records.ts";
import { closeSession, getSession, getSessions, setSessionAuthenticated } from "./sessions.ts";

export const sessionHandlers: Handlers<
  Pick<PublicOperations, keyof typeof sessions & keyof PublicOperations>
> = {
  getSessions,
  getSession,
  setSessionAuthenticated,
  closeSession,
  recordSession,
  getSessionRecord,
  deleteSessionRecord,
  getSessionRecordStatus,
};
