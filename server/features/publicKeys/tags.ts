import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { addFilterTag, type FilterOwner, removeFilterTag, replaceFilterTags } from "../filters/filterTags.ts";
import { publicKeyRows } from "./publicKey.ts";

function ownerOf(tenantId: string, fingerprint: string): FilterOwner<"PublicKey"> {
  return {
    noun: "key",
    RefusedReplacement: NotFoundError,
    rows: publicKeyRows,
    key: { tenantId, fingerprint },
  };
}

export const addPublicKeyTag: Handler<PublicOperations["addPublicKeyTag"]> = async (context) => {
  const { services, identity, params, body } = context;
  await addFilterTag(services, ownerOf(identity.tenant, params.fingerprint), body.tag);
  return undefined;
};

export const updatePublicKeyTags: Handler<PublicOperations["updatePublicKeyTags"]> = async (context) => {
  const { services, identity, params, body } = context;
  await replaceFilterTags(services, ownerOf(identity.tenant, params.fingerprint), body.tags);
  return undefined;
};

export const removePublicKeyTag: Handler<PublicOperations["removePublicKeyTag"]> = async (context) => {
  const { services, identity, params } = context;
  await removeFilterTag(services, ownerOf(identity.tenant, params.fingerprint), params.tag);
  return undefined;
};
