import { dateTime, trustedWorkloads, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Listing, TrustedWorkload } from "../service/listings.ts";
import {
  IdForm,
  type InputValues,
  listed,
  liveFacts,
  optional,
  output,
  required,
  tenantInput,
} from "./definition.ts";
import { defineGuarded } from "./lockoutGuard.ts";
import { declares } from "./values.ts";

const wire = trustedWorkloads.createTrustedWorkload.body.shape;

const inputs = {
  tenant: tenantInput,
  name: required(wire.name, {
    description: "The name of the workload. Must be unique in the namespace.",
    notDecisive: "the name is only displayed",
  }),
  issuer: required(wire.issuer, {
    description:
      "The URL of the OpenID Connect provider, exactly as in the claim `iss` of its tokens. Must be an `https` URL.",
  }),
  audience: required(wire.audience, {
    description:
      "The value that the claim `aud` of a token must contain. Clients request tokens for the address of the service by default.",
  }),
  claims: required(wire.claims, {
    description:
      "The claims that a token must have, by name. In a value, `*` matches any text without a slash, and `**` matches any text. Numbers and switches are compared as text, such as `true`.",
  }),
  role: required(wire.role, {
    description: "The role of the workload. Must be `observer`, `operator` or `administrator`.",
  }),
  maxSessionMinutes: optional(wire.max_session_minutes.unwrap(), {
    description:
      "The number of minutes after the issue of a token during which the workload can use the service. Must be between 5 and 1440.",
    default: 60,
  }),
  singleUse: optional(z.boolean(), {
    description:
      "Whether each token can be exchanged only once. Use `true` for providers that issue a new token for each request, such as GitHub.",
    default: false,
  }),
};

const outputs = {
  workloadId: output(userId, { description: "The ID of the workload." }),
  createdBy: output(userId, { description: "The ID of the user or workload that created the workload." }),
  createdAt: output(dateTime, { description: "The time when the workload was created." }),
};

const ids = new IdForm("TrustedWorkload", "tenant", "workloadId");

export const trustedWorkload = defineGuarded({
  name: "TrustedWorkload",
  description:
    "A job of a pipeline, or another program, that exchanges a token of an OpenID Connect provider for a session in a namespace. The program needs no stored secret. Requires `gatehouse-server`.",
  id: ids,
  object: { kind: "trustedWorkload" },
  idNote: "an import also accepts `tenant/name`",
  inputs,
  outputs,
  needs: (_inputs, state) => (state ? [] : [{ capability: "trusted workloads" }]),
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) => [{ key: `trusted workload ${tenant ?? ""} ${name}`, property: "name" }],
  },

  async find(connection, values) {
    const { tenant, trustedWorkloads } = await connection.tenant(values.tenant);
    const found = await workloadNamed(trustedWorkloads, values.name);
    return found && existing(tenant, found);
  },

  async list(connection, tenant) {
    return (await connection.trustedWorkloads(tenant)).map((workload) => {
      const { id, state } = existing(tenant, workload);
      return listed(id, workload.name, state, { declaredBy: workload.declaredBy });
    });
  },

  async create(connection, values, { idempotencyKey }) {
    const { tenant, client, trustedWorkloads } = await connection.tenant(values.tenant);
    const created = await client.createTrustedWorkload({ body: bodyOf(values) }, { idempotencyKey });
    trustedWorkloads.put(created);
    return existing(tenant, created);
  },

  async read(connection, id, state) {
    const { tenant, workloadId: idOrName } = ids.split(id);
    const { trustedWorkloads } = await connection.tenant(tenant);
    // Only an import has no state.
    const isImport = state.workloadId === undefined;
    const byId = userId.safeParse(idOrName).success ? await trustedWorkloads.find(idOrName) : undefined;
    const found = byId ?? (isImport ? await workloadNamed(trustedWorkloads, idOrName) : undefined);
    return found && existing(tenant, found);
  },

  async update(connection, id, state, values) {
    const { tenant, workloadId } = ids.split(id);
    if (declares(inputs, state, values)) return state;
    const { client, trustedWorkloads } = await connection.tenant(tenant);
    const changed = await client.updateTrustedWorkload({ params: { id: workloadId }, body: bodyOf(values) });
    trustedWorkloads.forget();
    return existing(tenant, changed).state;
  },

  async delete(connection, id) {
    const { tenant, workloadId } = ids.split(id);
    const { client, trustedWorkloads } = await connection.tenant(tenant);
    await trustedWorkloads.remove(workloadId, client, (witnessed) =>
      witnessed.deleteTrustedWorkload({ params: { id: workloadId } }),
    );
    trustedWorkloads.forget();
  },
});

const workloadNamed = async (workloads: Listing<TrustedWorkload>, wanted: string) =>
  (await workloads.all()).find(({ name }) => name === wanted);

/** Returns the settings of a workload, for a create or an update. */
const bodyOf = (values: InputValues<typeof inputs>) => {
  const { name, issuer, audience, claims, role, maxSessionMinutes, singleUse } = values;
  return { name, issuer, audience, claims, role, maxSessionMinutes, singleUse };
};

/** Returns a workload with its id and state. */
function existing(tenant: string, workload: TrustedWorkload) {
  const { id, name, issuer, audience, claims, role, maxSessionMinutes, singleUse } = workload;
  const settings = { tenant, name, issuer, audience, claims, role, maxSessionMinutes, singleUse };
  const { createdBy, createdAt } = workload;
  const state = { ...settings, workloadId: id, createdBy, createdAt };
  return { id: `${tenant}/${id}`, state, live: liveFacts(workload) };
}
