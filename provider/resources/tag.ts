import { ConflictError } from "@gatehouse-access/sdk";
import { tag as tagSchema } from "@gatehouse-access/sdk/contract";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { TenantClient } from "../service/connection.ts";
import { isMissingObject, isSilent } from "../service/listings.ts";
import { defineResource, IdForm, required, tenantInput } from "./definition.ts";

const ids = new IdForm("Tag", "tenant", "name");

export const tag = defineResource({
  name: "Tag",
  description:
    "The name of a tag, for references from other resources. Changing the name renames the tag on all devices, public keys and firewall rules of the namespace in one step. Every filter with the tag keeps matching. A tag exists while a device, key or rule uses it. Creating or deleting this resource does not change anything on the service.",
  id: ids,
  idNote: "the name at creation",
  inputs: {
    tenant: tenantInput,
    name: required(tagSchema, {
      description: "The name of the tag. Must contain 3 to 255 letters and digits.",
    }),
  },
  outputs: {},
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) => [{ key: `tag ${tenant ?? ""} ${name}`, property: "name" }],
    // The id of a renamed tag contains the old name, and another resource may declare a tag with the old name.
    ofId: () => [],
  },

  async create(connection, inputs) {
    const { tenant } = await connection.tenant(inputs.tenant);
    return { id: `${tenant}/${inputs.name}`, state: { tenant, name: inputs.name } };
  },

  async read(_connection, id, state) {
    const { tenant, name } = ids.split(id);
    // The service does not store a tag that no object uses, but the state keeps the tag. A read therefore sends no
    // request.
    return { id, state: { tenant, name: state.name ?? name } };
  },

  async update(connection, id, state, inputs) {
    const { tenant } = ids.split(id);
    const opened = await connection.tenant(tenant);
    if (state.name !== inputs.name)
      await opened.tagWork.during(() => rename(opened, state.name, inputs.name));
    return { tenant, name: inputs.name };
  },

  async delete() {
    // Nothing to delete: devices, keys and rules keep the tag.
  },
});

async function rename(
  { client, devices, keys, rules }: TenantClient,
  from: string,
  to: string,
): Promise<void> {
  try {
    await client.renameTag({ params: { tag: from }, body: { tag: to } });
  } catch (error) {
    if (error instanceof ConflictError) {
      const fault: ResourceFault = {
        code: "already_exists",
        field: ["name"],
        detail: said`cannot rename "${from}" to "${to}": the tag "${to}" is already in use`,
        remedy: said`use "${to}" in the resources that need it, instead of renaming "${from}"`,
      };
      throw new ResourceError("Tag", fault, { cause: error });
    }
    // If no object has a tag with the old name, the rename succeeds. Either no object ever had the tag, or an earlier
    // attempt renamed the tag.
    if (!isMissingObject(error) || (isSilent(error) && (await client.getTags()).includes(from))) throw error;
  }
  for (const listing of [devices, keys, rules]) listing.forget();
}
