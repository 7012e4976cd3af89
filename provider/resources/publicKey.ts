import { fingerprint, parseSshPublicKey, publicKeys, sshPublicKeyLine } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { PublicKey } from "../service/listings.ts";
import {
  defineResource,
  filterInput,
  filterState,
  IdForm,
  listed,
  output,
  patternOn,
  required,
  tenantInput,
} from "./definition.ts";

const wire = publicKeys.createPublicKey.body.shape;

const line = z.string().superRefine((text, context) => {
  try {
    parseSshPublicKey(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
  }
});

const ids = new IdForm("PublicKey", "tenant", "fingerprint");

export const publicKey = defineResource({
  name: "PublicKey",
  description: "An SSH public key, the logins it may use and the devices it opens.",
  id: ids,
  inputs: {
    tenant: tenantInput,
    name: required(wire.name, { description: "Name of the key, for people." }),
    data: required(line, {
      description: "The key: one OpenSSH public key line. Comment and white space are not part of it.",
      replaces: true,
      canonical: (text) => sshPublicKeyLine(parseSshPublicKey(text)),
    }),
    username: required(patternOn(wire.username, "login"), {
      description: "Pattern (RE2, not anchored) on the login name: `^root$` admits root only.",
    }),
    filter: filterInput,
  },
  outputs: {
    fingerprint: output(fingerprint, { description: "MD5 fingerprint, 16 hex pairs." }),
    createdAt: output(z.string(), {
      description: "When the key was registered; empty while the service has not said it.",
      // Servers of 0.19 leave it out of the answer to a creation.
      volatile: true,
    }),
  },

  tags: { needs: "filter" },
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
    const made = await opened.tagWork.needing(filter.tags, "PublicKey", () =>
      client.createPublicKey({ body }, { idempotencyKey }),
    );
    keys.put(made);
    return existing(tenant, made);
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
    data: sshPublicKeyLine(parseSshPublicKey(data)),
    username: key.username,
    filter: filterState(key.filter),
    fingerprint: key.fingerprint,
    createdAt: key.createdAt ?? "",
  };
}
