import { type Client, ConflictError, createTag, hasDifference, where } from "@gatehouse-access/sdk";
import { tag as tagSchema } from "@gatehouse-access/sdk/contract";
import { defineResource } from "../model/defineResource.ts";
import type { Draft } from "../model/draft.ts";
import { required, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import type { Kind } from "../model/kind.ts";
import { knownInputs, outputOf, type PlannedStep } from "../model/plannedStep.ts";
import { idWithin } from "../model/values.ts";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import { doubtAbout, isMissingObject, isProvenMissing, requireAbsent } from "../service/absence.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type ListingSource, lengthOf } from "../service/listings.ts";
import { policies } from "./accessPolicy.ts";
import { changeDevice, deviceState, devicesOf } from "./device.ts";
import { devices } from "./deviceSelector.ts";
import { firewallRulesIn, rules } from "./firewallRule.ts";
import { keys } from "./publicKey.ts";

/** The tags of a namespace, by name. */
const tags: ListingSource<string> = (client) => ({
  kind: "Tag",
  keysOf: (name) => [name],
  async *pages() {
    const { headers, body } = await client.call("getTags");
    yield { items: body, total: lengthOf(body, headers) };
  },
  look: async () => undefined,
});

const ids = new IdForm("Tag", {
  tenant: EXAMPLE_TENANT,
  name: "staging",
});

const definition = defineResource({
  name: "Tag",
  description:
    "The name of a tag, for references from other resources. Changing the name renames the tag on all devices, public keys and firewall rules of the namespace in one step. Every filter with the tag keeps matching. A tag exists while a device, key or rule uses it. Creating or deleting this resource does not change anything on the service. Servers of version 0.21 or later store tags separately: there, this resource creates the tag, and deletes it unless a device, key, rule or access policy uses it.",
  id: ids,
  idNote: "the name at creation",
  object: { kind: "tag", id: (_id, { name }) => String(name) },
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
    // The id does not identify a renamed tag: it contains the old name, and another resource may declare a new tag with
    // that name.
    ofId: () => [],
  },

  async create(connection, inputs) {
    const opened = await connection.tenant(inputs.tenant);
    await ensure(opened, inputs.name);
    return { id: `${opened.tenant}/${inputs.name}`, state: { tenant: opened.tenant, name: inputs.name } };
  },

  async read(connection, id, state) {
    const { tenant, name: first } = ids.split(id);
    const name = state.name ?? first;
    const opened = await connection.tenant(tenant);
    // Some servers store a tag only while an object uses it. On these servers, a read always returns the tag in the
    // state.
    const exists = !(await storesTags(opened.client)) || (await opened.listing(tags).all()).includes(name);
    return exists ? { id, state: { tenant, name } } : undefined;
  },

  async update(connection, id, state, inputs) {
    const { tenant } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { name: from } = state;
    if (from !== inputs.name)
      await opened.tagWork.renaming(from, inputs.name, () => rename(opened, from, inputs.name));
    return { tenant, name: inputs.name };
  },

  // Deletes the tag only if no object uses it. The service would remove the deleted tag from devices, keys and rules,
  // and a filter whose only tag was removed would match every device. Servers that do not store tags separately also
  // keep a tag while it is in use.
  async delete(connection, id, state) {
    const opened = await connection.tenant(ids.split(id).tenant);
    if (!(await storesTags(opened.client)) || (await isUsed(connection, opened, state.name))) return;
    const params = { tag: state.name };
    const listing = opened.listing(tags);
    await listing.remove(state.name, opened.client, (witnessed) => witnessed.deleteTag({ params }));
    listing.forget();
  },
});

const storesTags = async (client: Client): Promise<boolean> =>
  hasDifference((await client.serverVersion()).dialect, "tags as objects");

/** Creates the tag if the server stores tags separately. Does nothing if the tag exists. */
async function ensure({ client, listing, tagWork }: TenantClient, name: string): Promise<void> {
  if (!(await storesTags(client))) return;
  await tagWork.during(() =>
    createTag(client, name).catch((error: unknown) => {
      if (!(error instanceof ConflictError)) throw error;
    }),
  );
  listing(tags).forget();
}

async function isUsed(connection: Connection, opened: TenantClient, name: string): Promise<boolean> {
  const { client, listing, tenant } = opened;
  const query = { filter: where("tags").contains([name]), perPage: 1 };
  if ((await client.getDevices({ query })).length > 0) return true;
  for (const source of [keys, rules, policies]) listing<unknown>(source).forget();
  const filters = [
    ...(await listing(policies).all()),
    ...(await listing(keys).all()),
    ...(await firewallRulesIn(connection, tenant)),
  ];
  return filters.some(({ filter }) => filter.tags?.includes(name));
}

async function rename(opened: TenantClient, from: string, to: string): Promise<void> {
  const { client, listing } = opened;
  try {
    await client.renameTag({ params: { tag: from }, body: { tag: to } });
  } catch (error) {
    if (error instanceof ConflictError) {
      const fault: ResourceFault = {
        code: "already_exists",
        field: ["name"],
        detail: said`Cannot rename "${from}" to "${to}": the tag "${to}" is already in use`,
        remedy: said`use "${to}" in the resources that need it, instead of renaming "${from}"`,
      };
      throw new ResourceError("Tag", fault, { cause: error });
    }
    // The rename counts as successful if the tag with the old name does not exist. Either no object ever had the tag,
    // or an earlier attempt has renamed it.
    if (!isMissingObject(error)) throw error;
    const doubt = isProvenMissing(error) ? undefined : doubtAbout(error);
    await requireAbsent("Tag", from, doubt, () => listing(tags).isListed(from));
    await ensure(opened, to);
  }
  for (const source of [devices, keys, rules, policies, tags]) listing<unknown>(source).forget();
}

/** The kind for the name of a tag. A tag is no object of the namespace, but an update renames the tag everywhere. */
export const tag: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: undefined,
  watched: undefined,
  operations: { create: [], update: ["renameTag"], delete: [] },
  plan: {
    stage: "names",
    names: "tags",
    keyOf: (before) => outputOf(before, "name"),
    create: () => undefined,
    update: () => undefined,
    remove: () => undefined,
    together: renameTags,
  },
  quota: undefined,
  decides: undefined,
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: undefined,
};

/**
 * Renames tags on every device, and in every filter of a key, rule or access policy. All renames are applied together,
 * because one tag may take the old name of another tag.
 */
function renameTags(draft: Draft, planned: readonly PlannedStep[]): void {
  const names = new Map<string, string>();
  for (const one of planned) {
    if (one.before && one.step.op === "update")
      names.set(outputOf(one.before, "name"), String(knownInputs(one).name));
  }
  if (names.size === 0) return;
  const renamed = (tags: readonly string[]) => tags.map((name) => names.get(name) ?? name);
  for (const { uid, tags } of devicesOf(draft).map(deviceState))
    changeDevice(draft, uid, { tags: renamed(tags) });
  for (const objects of draft.objects().values()) {
    for (const [key, { definition, state }] of objects) {
      if (!definition.inputs.filter) break;
      const { tags, ...filter } = state.filter as { readonly tags?: readonly string[] };
      if (tags) draft.put(definition, key, { ...state, filter: { ...filter, tags: renamed(tags) } });
    }
  }
}
