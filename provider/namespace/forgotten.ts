import type { Connection } from "../service/connection.ts";
import { type Declarer, isDeclaredBy, ManagedObjects, type OwnResource } from "./coverage.ts";
import { inventoryOf, type LiveObject } from "./liveObjects.ts";

/**
 * Returns the objects that a stack declared earlier and that its state does not contain, for example because the
 * response to a create request was lost. Lists only the kinds and namespaces that occur in the state. Sends few
 * requests to servers that store no declarations.
 */
export async function forgottenObjects(
  connection: Connection,
  own: readonly OwnResource[],
  declarer: Declarer,
): Promise<LiveObject[]> {
  const managed = new ManagedObjects(own);
  const kindsOf = Map.groupBy(own, ({ outputs }) => String(outputs?.tenant ?? ""));
  const found: LiveObject[] = [];
  for (const [tenant, resources] of kindsOf) {
    if (tenant === "" || (await connection.server(tenant)).isOwn !== true) continue;
    const declared = resources.filter(
      ({ definition }) => definition.list && definition.object && !definition.object.isPart,
    );
    const { objects } = await inventoryOf(
      connection,
      tenant,
      declared.map(({ definition }) => definition),
    );
    found.push(
      ...objects.filter((object) => isDeclaredBy(object, declarer) && managed.ownerOf(object) === undefined),
    );
  }
  return found;
}
