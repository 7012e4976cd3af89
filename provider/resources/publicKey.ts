import { ConflictError } from "@gatehouse-access/sdk";
import {
  dateTime,
  filter as filterSchema,
  fingerprint,
  parseSshPublicKey,
  publicKeys,
  sshPublicKeyLine,
} from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { defineResource, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { splitId } from "./ids.ts";
import type { ListedKey } from "./keyListing.ts";

const wire = publicKeys.createPublicKey.body.shape;

const line = z.string().superRefine((text, context) => {
  try {
    parseSshPublicKey(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
  }
});

const filter = z
  .strictObject({
    hostname: filterSchema.shape.hostname.describe("Pattern (RE2, not anchored) on the device's name."),
    tags: filterSchema.shape.tags.describe("Tags of which a device has at least one; 1 to 3."),
  })
  .refine(
    (value) => (value.hostname === undefined) !== (value.tags === undefined),
    "must have exactly one of hostname and tags",
  );

export const publicKey = defineResource({
  name: "PublicKey",
  description: "An SSH public key, the logins it may use and the devices it opens.",
  idFormat: "tenant/fingerprint",
  inputs: {
    tenant: tenantInput,
    name: required(wire.name, { description: "Name of the key, for people." }),
    data: required(line, {
      description: "The key: one OpenSSH public key line. Comment and white space are not part of it.",
      replaces: true,
      canonical: (text) => sshPublicKeyLine(parseSshPublicKey(text)),
    }),
    username: required(wire.username, {
      description: "Pattern (RE2, not anchored) on the login name: `^root$` admits root only.",
    }),
    filter: required(filter, {
      description: "Which devices the key opens: by name or by tags, one of the two.",
    }),
  },
  outputs: {
    fingerprint: output(fingerprint, { description: "MD5 fingerprint, 16 hex pairs." }),
    createdAt: output(dateTime, { description: "When the key was registered." }),
  },

  async create(connection, inputs) {
    const { tenant, client, keys } = await connection.tenant(inputs.tenant);
    const { name, username, filter, data } = inputs;
    const body = { data: toBase64(data), name, username, filter };
    try {
      const made = await client.createPublicKey({ body });
      return { id: `${tenant}/${made.fingerprint}`, state: toState(tenant, made) };
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      const { fingerprint } = parseSshPublicKey(data);
      throw new Error(
        `PublicKey.data: the namespace ${tenant} has the key ${fingerprint} already, by another resource or by hand; remove one of the two`,
        { cause: error },
      );
    } finally {
      keys.forget();
    }
  },

  async read(connection, id) {
    const { tenant, fingerprint } = splitId(id, "PublicKey", "tenant", "fingerprint");
    const { keys } = await connection.tenant(tenant);
    const found = await keys.find(fingerprint);
    return found && { id, state: toState(tenant, found) };
  },

  async update(connection, id, _state, inputs) {
    const { tenant, fingerprint } = splitId(id, "PublicKey", "tenant", "fingerprint");
    const { client, keys } = await connection.tenant(tenant);
    const { name, username, filter } = inputs;
    const changed = await client.updatePublicKey({
      params: { fingerprint },
      body: { name, username, filter },
    });
    keys.forget();
    return toState(tenant, changed);
  },

  async delete(connection, id) {
    const { tenant, fingerprint } = splitId(id, "PublicKey", "tenant", "fingerprint");
    const { client, keys } = await connection.tenant(tenant);
    await client.deletePublicKey({ params: { fingerprint } });
    keys.forget();
  },
});

const toBase64 = (text: string) => Buffer.from(text).toString("base64");

function toState(tenant: string, key: ListedKey) {
  const data = Buffer.from(key.data, "base64").toString("utf8");
  const { hostname, tags } = key.filter;
  return {
    tenant,
    name: key.name,
    data: sshPublicKeyLine(parseSshPublicKey(data)),
    username: key.username,
    filter: tags === undefined ? { hostname: hostname ?? "" } : { tags: [...tags].sort() },
    fingerprint: key.fingerprint,
    createdAt: key.createdAt,
  };
}
