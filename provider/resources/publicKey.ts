import { fingerprint, parseSshPublicKey, publicKeys, sshPublicKeyLine } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { PublicKey } from "../service/listings.ts";
import {
  defineResource,
  filterInput,
  filterState,
  IdForm,
  listed,
  needsOfTags,
  output,
  patternOn,
  required,
  tenantInput,
} from "./definition.ts";

const wire = publicKeys.createPublicKey.body.shape;

/** A public key, as one line in OpenSSH format. */
export const sshKeySchema = z.string().superRefine((text, context) => {
  try {
    parseSshPublicKey(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
  }
});

/** Returns a public key without its comment and extra white space. */
export const canonicalSshKey = (line: string): string => sshPublicKeyLine(parseSshPublicKey(line));

const ids = new IdForm("PublicKey", "tenant", "fingerprint");

export const publicKey = defineResource({
  name: "PublicKey",
  description: "An SSH public key, with the logins and devices that it gives access to.",
  id: ids,
  inputs: {
    tenant: tenantInput,
    name: required(wire.name, {
      description: "The display name of the key. Several keys can have the same name.",
    }),
    data: required(sshKeySchema, {
      description:
        "The public key, as one line in OpenSSH format. The comment and extra white space are ignored.",
      replaces: true,
      canonical: canonicalSshKey,
    }),
    username: required(patternOn(wire.username, "login"), {
      description:
        "An RE2 pattern that matches the login name. The pattern is not anchored: use `^root$` to allow only `root`.",
    }),
    filter: filterInput,
  },
  outputs: {
    fingerprint: output(fingerprint, {
      description: "The MD5 fingerprint of the key, as 16 hexadecimal pairs separated by colons.",
    }),
    createdAt: output(z.string(), {
      description: "The time when the key was registered. Empty until the service has returned it.",
      // Servers of version 0.19 omit the time of creation from the response to a create.
      volatile: true,
    }),
  },

  tags: { needs: "filter" },
  actsIn: "legacy",
  needs: ({ filter }) => needsOfTags(filter.tags, ["filter", "tags"]),
  identity: {
    fields: ["tenant", "data"],
    ofInputs: ({ tenant, data }) => [
      { key: `key ${tenant ?? ""} ${parseSshPublicKey(data).fingerprint}`, property: "data" },
    ],
  },

  async find(connection, inputs) {
    const { tenant, keys } = await connection.tenant(inputs.tenant);
    const found = await keys.find(parseSshPublicKey(inputs.data).fingerprint);
    return found && existing(tenant, found);
  },

  async list(connection, tenant) {
    const { keys } = await connection.tenant(tenant);
    return (await keys.all()).map((key) =>
      listed(`${tenant}/${key.fingerprint}`, key.name, () => toState(tenant, key), key.declaredBy),
    );
  },

  async create(connection, inputs, { idempotencyKey }) {
    const opened = await connection.tenant(inputs.tenant);
    const { tenant, client, keys } = opened;
    const { name, username, filter, data } = inputs;
    const body = { data: toBase64(data), name, username, filter };
    const created = await opened.tagWork.needing(filter.tags, "PublicKey", () =>
      client.createPublicKey({ body }, { idempotencyKey }),
    );
    keys.put(created);
    return existing(tenant, created);
  },

  async read(connection, id) {
    const { tenant, fingerprint } = ids.split(id);
    const { keys } = await connection.tenant(tenant);
    const found = await keys.find(fingerprint);
    return found && existing(tenant, found);
  },

  async update(connection, id, _state, inputs) {
    const { tenant, fingerprint } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { client, keys } = opened;
    const { name, username, filter } = inputs;
    const changed = await opened.tagWork.needing(filter.tags, "PublicKey", () =>
      client.updatePublicKey({ params: { fingerprint }, body: { name, username, filter } }),
    );
    keys.put(changed);
    return toState(tenant, changed);
  },

  async delete(connection, id) {
    const { tenant, fingerprint } = ids.split(id);
    const { client, keys } = await connection.tenant(tenant);
    await client.deletePublicKey({ params: { fingerprint } });
    keys.drop(fingerprint);
  },
});

const toBase64 = (text: string) => Buffer.from(text).toString("base64");

function existing(tenant: string, key: PublicKey) {
  return { id: `${tenant}/${key.fingerprint}`, state: toState(tenant, key) };
}

function toState(tenant: string, key: PublicKey) {
  const data = Buffer.from(key.data, "base64").toString("utf8");
  return {
    tenant,
    name: key.name,
    data: canonicalSshKey(data),
    username: key.username,
    filter: filterState(key.filter),
    fingerprint: key.fingerprint,
    createdAt: key.createdAt ?? "",
  };
}
