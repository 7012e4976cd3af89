import type { namespaces, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { inviteMember, leaveNamespace, removeMember, updateMember } from "./members.ts";
import {
  createNamespace,
  deleteNamespace,
  editNamespace,
  getNamespace,
  getNamespaces,
  setSessionRecord,
} from "./namespaces.ts";

type Ids = keyof typeof namespaces & keyof PublicOperations;

export const namespaceHandlers: Handlers<Pick<PublicOperations, Ids>> = {
  getNamespaces,
  createNamespace,
  getNamespace,
  editNamespace,
  deleteNamespace,
  leaveNamespace,
  inviteMember,
  updateMember,
  removeMember,
  setSessionRecord,
};
