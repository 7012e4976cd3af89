import { tenantId } from "@gatehouse-access/sdk/contract";
import type { Existing, ResourceDefinition } from "../model/definition.ts";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";

/** The maximum number of objects that an error lists. */
const NAMED = 5;

/**
 * Returns the object that a selector matches. The selector is the object's id, its id without the namespace, or its
 * name.
 * @throws Error with the allowed selectors if no object matches, or if several objects have the name
 */
export async function selectObject(
  definition: ResourceDefinition,
  connection: Connection,
  text: string,
): Promise<Existing<Values>> {
  const { name, id: form } = definition;
  const parts = form.text.split("/");
  // The id of a namespace has no prefix. The ids of all other objects begin with the id of their namespace.
  if (parts.length === 1) {
    const found = await definition.read(connection, text, {});
    if (found) return found;
    const detail = said`The user of the credential is not a member of a namespace "${text}"`;
    throw new ResourceError(name, { code: "object_not_found", detail });
  }
  const [first = "", ...others] = text.split("/");
  const isWhole = others.length > 0 && tenantId.safeParse(first).success;
  const tenant = isWhole ? first : (await connection.tenant(undefined)).tenant;
  const rest = isWhole ? others.join("/") : text;
  const mayBeId = rest !== "" && rest.split("/").length >= parts.length - 1;
  const found = mayBeId ? await definition.read(connection, `${tenant}/${rest}`, {}) : undefined;
  if (found) return found;
  const id = await idNamed(definition, connection, tenant, rest);
  const named = id === undefined ? undefined : await definition.read(connection, id, {});
  if (named) return named;
  throw new ResourceError(name, {
    code: "object_not_found",
    detail: said`The namespace ${tenant} has no such object: "${rest}"`,
    remedy: said`use the id (${form.text}), the id without the namespace, or the name`,
  });
}

async function idNamed(
  definition: ResourceDefinition,
  connection: Connection,
  tenant: string,
  name: string,
): Promise<string | undefined> {
  if (definition.named) return definition.named(connection, tenant, name);
  const all = (await definition.list?.(connection, tenant)) ?? [];
  const ids = all.filter((object) => object.name === name).map(({ id }) => id);
  if (ids.length <= 1) return ids[0];
  const more = ids.length > NAMED ? `, and ${ids.length - NAMED} more` : "";
  throw new ResourceError(definition.name, {
    code: "ambiguous_object",
    detail: said`${ids.length} objects have the name "${name}"`,
    remedy: said`use an id instead: ${ids.slice(0, NAMED).join(", ")}${more}`,
  });
}
