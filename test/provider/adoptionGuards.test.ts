import { describe, expect, it } from "vitest";
import { type Creation, createOrAdopt } from "../../provider/lifecycle/createOrAdopt.ts";
import type { Existing, Origin, ResourceDefinition } from "../../provider/model/definition.ts";
import { definitionNamed } from "../../provider/namespace/liveObjects.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { NotFoundError, type RequestErrorDetails, TransportError } from "../../sdk/errors.ts";
import { sshKeyLine } from "./support/programs.ts";

type Values = Record<string, unknown>;
type Found = Existing<Readonly<Values>>;

const TENANT = "00000000-0000-4000-8000-000000000000";
const INPUTS = {
  tenant: TENANT,
  name: "ana",
  data: sshKeyLine(),
  username: "^root$",
  filter: { hostname: ".*" },
};
const id = (name: string) => `${TENANT}/${name}`;
const DECLARATION = { project: "fleet", stack: "prod", resource: "ana" };
const of = (more: Partial<typeof DECLARATION> = {}) => ({ ...DECLARATION, at: "", ...more });

const REQUEST: RequestErrorDetails = {
  operation: "createPublicKey",
  method: "POST",
  path: "/api/sshkeys/public-keys",
  outcome: "none",
  attempts: 1,
};

/** A service with at most one object. Its functions record their calls. */
interface Service {
  /** The object on the service. */
  readonly existing?: Found;
  /** The results of the creations, in order: an object, or an error. */
  readonly creations?: readonly (Found | Error)[];
  /** The entry of the audit trail about the last change of the object. */
  readonly lastChange?: object;
  readonly knowsIdempotencyKeys?: boolean;
  /** Ids of objects that other resources of the program have claimed. */
  readonly claimed?: readonly string[];
}

async function run(
  { existing, creations = [], lastChange, knowsIdempotencyKeys = true, claimed = [] }: Service,
  more: Partial<Creation> & { readonly overwrites?: boolean; readonly isNamed?: boolean } = {},
) {
  const calls: string[] = [];
  const results = [...creations];
  const { overwrites, isNamed = true, ...creation } = more;
  const definition = {
    ...definitionNamed("PublicKey"),
    ...(overwrites !== undefined && { overwrites }),
    find: async (_: unknown, __: unknown, isOthers: (id: string) => boolean = () => false) =>
      existing && !isOthers(existing.id) ? existing : undefined,
    async create() {
      calls.push("create");
      const result = results.shift() ?? new Error("the test expects no further creation");
      if (result instanceof Error) throw result;
      return result;
    },
    async update(_: unknown, updated: string, state: Values, inputs: Values) {
      calls.push(`update ${updated}`);
      return { ...state, ...inputs };
    },
  } as unknown as ResourceDefinition;
  const origin: Origin = {
    name: "ana",
    idempotencyKey: "1",
    isNamed,
    replaced: undefined,
    chosen: {},
    unseen: undefined,
    claim: () => {},
    isOthers: (other) => claimed.includes(other),
    after: () => origin,
  };
  const connection = {
    forget: async () => {},
    knowsIdempotencyKeys: async () => knowsIdempotencyKeys,
    tenant: async () => ({
      tenant: TENANT,
      client: { getAuditTrail: async () => (lastChange ? [lastChange] : []) },
    }),
  } as unknown as Connection;
  const created = await createOrAdopt({
    definition,
    connection,
    inputs: INPUTS,
    origin,
    declaration: DECLARATION,
    adopted: (adopted) => calls.push(`adopt ${adopted}`),
    ...creation,
  }).catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
  return { calls, created: typeof created === "string" ? created : created.id };
}

const OBJECT: Found = { id: id("live"), state: INPUTS };
const DIFFERENT: Found = { id: id("live"), state: { ...INPUTS, username: ".*" } };
const exists = expect.stringMatching(/live already exists/);

it("an existing object is adopted with adopt if it equals the declaration, without a request", async () => {
  expect(await run({ existing: OBJECT }, { inputs: { ...INPUTS, adopt: true } })).toEqual({
    calls: [`adopt ${OBJECT.id}`],
    created: OBJECT.id,
  });
});

it("an existing object that differs is not adopted with adopt, and is updated with adopt: overwrite", async () => {
  const refused = await run({ existing: DIFFERENT }, { inputs: { ...INPUTS, adopt: true } });
  expect(refused).toEqual({ calls: [], created: exists });
  expect(refused.created).toContain('username is ".*", declared "^root$"');
  expect(await run({ existing: DIFFERENT }, { inputs: { ...INPUTS, adopt: "overwrite" } })).toEqual({
    calls: [`adopt ${DIFFERENT.id}`, `update ${DIFFERENT.id}`],
    created: DIFFERENT.id,
  });
});

describe("an object that an earlier attempt created under the same idempotency key", () => {
  const created = (declaredBy?: object): Found => ({
    ...DIFFERENT,
    live: { revision: "1", ...(declaredBy && { declaredBy }) } as NonNullable<Found["live"]>,
  });
  const changed = (declaredBy?: object) => ({
    at: "",
    operation: "updatePublicKey",
    address: "",
    requestId: "",
    actor: { kind: "user", id: "1", name: "ana" },
    ...(declaredBy && { declaredBy }),
  });

  it("is updated if this resource made its last change", async () => {
    const service = { creations: [created(of())], lastChange: changed(of()) };
    expect(await run(service)).toEqual({
      calls: ["create", `update ${DIFFERENT.id}`],
      created: DIFFERENT.id,
    });
  });

  it.each([
    ["another resource of the stack", changed(of({ resource: "bob" }))],
    ["another stack", changed(of({ stack: "lab" }))],
    ["another project", changed(of({ project: "other" }))],
    ["an actor without a program", changed()],
    ["an actor that the credential may not read", undefined],
  ])("is not updated if its last change is of %s", async (_, lastChange) => {
    const service = { creations: [created(of())], ...(lastChange && { lastChange }) };
    expect(await run(service)).toEqual({ calls: ["create"], created: exists });
  });

  it("is not taken if another resource or stack has declared it since", async () => {
    for (const owner of [of({ resource: "bob" }), of({ stack: "lab" })])
      expect(await run({ creations: [created(owner)] })).toEqual({ calls: ["create"], created: exists });
  });

  it("is not taken if another resource of the program has claimed it", async () => {
    const service = { creations: [OBJECT, { ...OBJECT, id: id("next") }], claimed: [OBJECT.id] };
    expect(await run(service)).toEqual({ calls: ["create", "create"], created: id("next") });
  });

  it("is not replaced to match the declaration", async () => {
    const other = { ...OBJECT, state: { ...INPUTS, data: sshKeyLine() } };
    expect(await run({ creations: [other] })).toEqual({ calls: ["create"], created: exists });
  });
});

describe("a create request without a clear answer", () => {
  const LOST = new TransportError(
    "the connection broke",
    { ...REQUEST, outcome: "unknown" },
    "interrupted",
    undefined,
  );

  it("is repeated on a server with idempotency keys", async () => {
    expect(await run({ existing: DIFFERENT, creations: [LOST, OBJECT] })).toEqual({
      calls: ["create", "create"],
      created: OBJECT.id,
    });
  });

  it("takes an equal object on a server without them, and no object that differs", async () => {
    const older = { creations: [LOST], knowsIdempotencyKeys: false };
    expect(await run({ ...older, existing: OBJECT })).toEqual({
      calls: ["create", `adopt ${OBJECT.id}`],
      created: OBJECT.id,
    });
    expect(await run({ ...older, existing: DIFFERENT })).toEqual({ calls: ["create"], created: exists });
  });

  it("is not repeated if the service refused the request", async () => {
    const refused = new NotFoundError("No such namespace", { ...REQUEST, status: 404, isFromService: true });
    expect(await run({ creations: [refused] })).toEqual({
      calls: ["create"],
      created: expect.stringContaining("No such namespace"),
    });
    const unproven = new NotFoundError("not found", { ...REQUEST, status: 404 });
    expect((await run({ creations: [unproven, OBJECT] })).created).toBe(OBJECT.id);
  });
});

describe("the object of a replaced resource", () => {
  const inherits = (inherited: string) => inherited === OBJECT.id;
  const owned = (declaredBy: object): Found => ({
    ...OBJECT,
    live: { declaredBy } as NonNullable<Found["live"]>,
  });
  const next = { ...OBJECT, id: id("next") };

  it("is inherited without adopt if this stack declared it last", async () => {
    const existing = owned(of({ resource: "former" }));
    expect(await run({ existing }, { inherits })).toEqual({ calls: [], created: OBJECT.id });
  });

  it("is not inherited if another stack declared it last, or another resource claimed it", async () => {
    const moved = await run({ existing: owned(of({ stack: "lab" })), creations: [next] }, { inherits });
    expect(moved.created).toBe(next.id);
    const claimed = await run({ existing: OBJECT, creations: [next], claimed: [OBJECT.id] }, { inherits });
    expect(claimed.created).toBe(next.id);
    const none = await run({ existing: OBJECT, creations: [next] }, { inherits: () => false });
    expect(none.created).toBe(next.id);
  });
});
