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
    "The name of a tag, for other resources to refer to. Changing it renames the tag at once on every device, key and rule of the namespace, so that no filter misses a device meanwhile. A tag exists while something carries it: declaring one makes nothing, and removing the declaration removes nothing.",
  id: ids,
  idNote: "the name at creation",
  inputs: {
    tenant: tenantInput,
    name: required(tagSchema, { description: "The tag: 3 to 255 letters and digits." }),
  },
  outputs: {},
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) => [{ key: `tag ${tenant ?? ""} ${name}`, property: "name" }],
    // A renamed tag keeps its id, and another one may be declared under the old name.
    ofId: () => [],
  },

  async create(connection, inputs) {
    const { tenant } = await connection.tenant(inputs.tenant);
    return { id: `${tenant}/${inputs.name}`, state: { tenant, name: inputs.name } };
  },

  async read(_connection, id, state) {
    const { tenant, name } = ids.split(id);
    // A tag that nothing carries is still declared.
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
    // Devices, keys and rules keep the tag.
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
        detail: said`"${to}" is carried already, so "${from}" cannot become it`,
        remedy: said`declare "${to}" where it is meant instead`,
      };
      throw new ResourceError("Tag", fault, { cause: error });
    }
    // Nothing carries the old name: there is nothing to rename, or an earlier try has done it.
    if (!isMissingObject(error) || (isSilent(error) && (await client.getTags()).includes(from))) throw error;
  }
  for (const listing of [devices, keys, rules]) listing.forget();
}
