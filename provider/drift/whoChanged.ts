import { type Client, NotFoundError, PermissionError } from "@gatehouse-access/sdk";

/** An entry of the service's audit trail, as far as it says who changed an object. */
export interface TrailNote {
  /** RFC 3339 in UTC. */
  readonly at: string;
  readonly operation: string;
  readonly actor: {
    readonly kind: "user" | "apikey" | "device" | "operator";
    readonly id: string;
    readonly name: string;
  };
  /** Where the request came from; empty for an operator of the service. */
  readonly address: string;
  /** Finds the request in the service's log. */
  readonly requestId: string;
  /** The resource of a program that the request said it is of: a hint, which any writer can forge. */
  readonly declaredBy?: DeclaringResource;
}

/** A resource of a program. */
export interface DeclaringResource {
  readonly project: string;
  readonly stack: string;
  readonly resource: string;
}

export interface ObjectName {
  /** Name of the resource that declares such objects. */
  readonly kind: string;
  /** Its id without the namespace. */
  readonly id: string;
}

/** What the trail says of objects; `notes` of those that it could not say, as sentences. */
export interface TrailAnswer {
  /** By {@link nameText}. Undefined where the service has no audit trail, or the credential may not read it. */
  readonly found: ReadonlyMap<string, TrailNote> | undefined;
  readonly notes: readonly string[];
}

export const nameText = ({ kind, id }: ObjectName): string => `${kind} ${id}`;

/** Up to so many objects are asked for one by one; of more, the trail is read from its end. */
const ONE_BY_ONE_MAX = 40;
const READ_MAX = 5_000;

const TRAIL_KINDS: Readonly<Record<string, string>> = {
  Namespace: "namespace",
  Member: "member",
  PublicKey: "publicKey",
  FirewallRule: "firewallRule",
  ApiKey: "apiKey",
  Tag: "tag",
  Device: "device",
  DeviceTags: "deviceTags",
  DeviceTagAttachment: "deviceTags",
};

/** Who changed each of these objects last, by the audit trail of their namespace. */
export async function whoChanged(
  client: Client,
  tenant: string,
  objects: readonly ObjectName[],
): Promise<TrailAnswer> {
  const wanted = new Map(objects.map((object) => [nameText(object), trailName(object)]));
  const asked = new Map([...wanted.values()].map((name) => [nameText(name), name]));
  try {
    const read = wanted.size <= ONE_BY_ONE_MAX ? askEach : readBack;
    const byTrail = await read(client, tenant, asked);
    const found = new Map(
      [...wanted].flatMap(([name, inTrail]) => {
        const entry = byTrail.get(nameText(inTrail));
        return entry ? [[name, entry] as const] : [];
      }),
    );
    const missing = wanted.size - found.size;
    const notes = missing > 0 ? [`the audit trail says nothing of ${missing} of the objects`] : [];
    return { found, notes };
  } catch (error) {
    // Other services have no audit trail.
    if (error instanceof NotFoundError) return { found: undefined, notes: [] };
    if (!(error instanceof PermissionError)) throw error;
    return { found: undefined, notes: [`who changed what could not be read: ${error.message}`] };
  }
}

/** Kind and id in the trail. The tags of a device are one object there. */
const trailName = ({ kind, id }: ObjectName): ObjectName => ({
  kind: TRAIL_KINDS[kind] ?? kind,
  id: kind === "DeviceTagAttachment" ? id.slice(0, id.indexOf("/")) : id,
});

async function askEach(client: Client, tenant: string, names: ReadonlyMap<string, ObjectName>) {
  const found = new Map<string, TrailNote>();
  const ask = async ([name, { kind, id }]: readonly [string, ObjectName]) => {
    const query = { kind, object: id, perPage: 1 };
    const [entry] = await client.getAuditTrail({ params: { tenant }, query });
    if (entry) found.set(name, noteOf(entry));
  };
  await Promise.all([...names].map(ask));
  return found;
}

async function readBack(client: Client, tenant: string, names: ReadonlyMap<string, ObjectName>) {
  const found = new Map<string, TrailNote>();
  let read = 0;
  for await (const entry of client.iterate("getAuditTrail", {
    params: { tenant },
    query: { perPage: 100 },
  })) {
    const name = nameText(entry.object);
    if (names.has(name) && !found.has(name)) found.set(name, noteOf(entry));
    read += 1;
    if (found.size === names.size || read === READ_MAX) break;
  }
  return found;
}

type Entry = Awaited<ReturnType<Client["getAuditTrail"]>>[number];

const noteOf = ({ at, operation, actor, address, requestId, declaredBy }: Entry): TrailNote => {
  return { at, operation, actor, address, requestId, ...(declaredBy && { declaredBy }) };
};
