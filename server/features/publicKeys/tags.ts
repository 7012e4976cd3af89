import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotFoundError } from "../../errors.ts";
import type { ObjectWrite } from "../../http/handler.ts";
import { addFilterTag, type FilterOwner, removeFilterTag, replaceFilterTags } from "../filters/filterTags.ts";
import { declaredPublicKey, type FoundKey, publicKeyRows } from "./publicKey.ts";

const keys: FilterOwner<"PublicKey"> = {
  noun: "key",
  RefusedReplacement: NotFoundError,
  rows: publicKeyRows,
  declared: declaredPublicKey,
};

export const addPublicKeyTag: ObjectWrite<PublicOperations["addPublicKeyTag"], FoundKey> = (context) =>
  addFilterTag(context, keys, context.body.tag);

export const updatePublicKeyTags: ObjectWrite<PublicOperations["updatePublicKeyTags"], FoundKey> = (
  context,
) => replaceFilterTags(context, keys, context.body.tags);

export const removePublicKeyTag: ObjectWrite<PublicOperations["removePublicKeyTag"], FoundKey> = (context) =>
  removeFilterTag(context, keys, context.params.tag);
