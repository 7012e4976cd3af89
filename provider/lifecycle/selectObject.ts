import { tenantId } from "@gatehouse-access/sdk/contract";
import { ResourceError, said } from "../resourceError.ts";
import type { Existing, ResourceDefinition } from "../resources/definition.ts";
import type { Connection } from "../service/connection.ts";

type Values = Readonly<Record<string, unknown>>;

/** Most objects that an error names. */
const NAMED = 5;

/**
 * The object that a text means: by its id, by its id without the namespace, or by the name that people know it by.
 * @throws Error where there is none, or several have the name, with what may be given
 */
export async function objectMeant(
  definition: ResourceDefinition,
  connection: Connection,
  text: string,
): Promise<Existing<Values>> {
  const { name, id: form } = definition;
  const parts = form.text.split("/");
  // The parts of a namespace's id are the namespace alone.
  if (parts.length === 1) {
    const found = await definition.read(connection, text, {});
    if (found) return found;
    const detail = said`there is no "${text}" that the credential's user is a member of`;
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
    detail: said`the namespace ${tenant} has none "${rest}"`,
    remedy: said`give its id (${form.text}), that without the namespace, or its name`,
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
    detail: said`${ids.length} have the name "${name}"`,
    remedy: said`give the id of one: ${ids.slice(0, NAMED).join(", ")}${more}`,
  });
}
