import { parseSshPublicKey, refusedKeyType } from "@gatehouse-access/sdk/contract";
import type { AccessKey } from "@gatehouse-access/sdk/policy";
import type { ResourceValues } from "../engine/index.ts";
import { definitionsByName } from "../resources/index.ts";
import { sshFingerprintOf } from "../resources/publicKey.ts";
import { idWithin } from "../resources/values.ts";
import type { Values } from "../values.ts";
import type { Draft } from "./draft.ts";
import { type Kind, listedBy, policyEnd } from "./kind.ts";
import { userIdOf } from "./member.ts";
import type { DecidingFacts } from "./namespaceObjects.ts";
import { outputOf, UnpredictableError } from "./plannedStep.ts";

const definition = definitionsByName.PublicKey;

type KeyState = Pick<AccessKey, "name" | "username" | "filter" | "fingerprint"> & {
  readonly data: string;
  readonly ownerId: string;
  readonly expiresAt: string;
};

export const publicKey: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "public keys",
    missed: "unmanaged public keys cannot be detected",
    isRequired: true,
  }),
  parts: undefined,
  watched: {},
  operations: { create: ["createPublicKey"], update: ["updatePublicKey"], delete: ["deletePublicKey"] },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "fingerprint"),
    // The address is empty if the owner is not a member.
    captured: ({ state: { owner, ownerId } }) => ({
      owner: [...new Set([owner, ownerId])].filter(Boolean).join(" "),
    }),
    newKey: (_draft, _planned, { data }) => parseSshPublicKey(String(data)).fingerprint,
    values: (draft, { planned, after, key }) => ({
      fingerprint: key,
      ...ownerIn(draft, after, planned.before),
    }),
  },
  decides: {
    parts: (objects, facts) => ({
      keys: Array.from(objects, ({ state }) => accessKey(state as KeyState, facts)),
    }),
    subject: "key",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "keys", naming: "name" },
};

function accessKey(state: KeyState, { enforcesExpiry, hasAccessModes }: DecidingFacts): AccessKey {
  const { fingerprint, name, username, filter, data, ownerId } = state;
  // Other servers than this project's admit all types of keys.
  const refusedType = enforcesExpiry ? refusedKeyType(data) : undefined;
  // Identity mode identifies a key by another fingerprint. Older servers stored keys that this version rejects.
  const sshFingerprint = hasAccessModes ? sshFingerprintOf(data) : undefined;
  return {
    fingerprint,
    name,
    username,
    filter,
    ...(refusedType !== undefined && { refusedType }),
    ...(sshFingerprint !== undefined && { sshFingerprint }),
    ...policyEnd(state),
    ...(ownerId && { owner: ownerId }),
  };
}

/**
 * Returns the owner of a planned key: the id of the member with the declared e-mail address. A user who is not a member
 * has the address as id, so that the key admits no logins.
 * @throws UnpredictableError if the members could not be read
 */
function ownerIn(draft: Draft, after: ResourceValues, before: ResourceValues | undefined): Values {
  const { owner } = after.inputs;
  if (typeof owner !== "string" || owner === "" || !draft.live.facts.enforcesExpiry)
    return { owner: "", ownerId: "" };
  // Users can change the address of their account. The declared address then still refers to the same user.
  // Drift of a deleted key restores the key with the owner in the state.
  const stated = before?.inputs.owner === owner ? before : before ? undefined : after;
  const known = stated ? outputOf(stated, "ownerId") : "";
  if (known === "" && !draft.of(definitionsByName.Member))
    throw new UnpredictableError("its owner cannot be found, because the members could not be read");
  const email = owner.toLowerCase();
  return { owner: email, ownerId: known || userIdOf(draft, email) || email };
}
