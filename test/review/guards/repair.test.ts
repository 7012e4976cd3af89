import { describe, expect, test } from "vitest";
import type { DriftedResource } from "../../../provider/drift/driftReport.ts";
import {
  declarationsOf,
  type Repairer,
  removable,
  removeObjects,
  restorable,
} from "../../../provider/drift/repair.ts";
import { definitionNamed, type LiveObject } from "../../../provider/namespace/liveObjects.ts";
import type { Connection } from "../../../provider/service/connection.ts";

const TENANT = "00000000-0000-4000-8000-000000000000";
const [SELF, OTHER] = ["64b000000000000000000001", "64b000000000000000000002"];

const repairer = (more: Partial<Repairer> = {}): Repairer => ({
  identity: { kind: "token", tenant: TENANT },
  project: "fleet",
  stack: "prod",
  adoptFrom: [],
  resources: new Set<string>(),
  deletesForgotten: false,
  closed: new Set<string>(),
  ...more,
});
const object = (kind: string, id: string, more: Partial<LiveObject> = {}): LiveObject => ({
  definition: definitionNamed(kind),
  id: `${TENANT}/${id}`,
  name: id,
  state: {},
  ...more,
});
const of = (stack: string, project = "fleet") => ({ project, stack, resource: "ana", at: "" });

/** Returns the reason for each object that a repair keeps, and undefined for each object that it deletes. */
function reasons(by: Repairer, ...objects: readonly LiveObject[]) {
  const { done, left } = removable(
    // The audit trail contains no declaration of a part.
    objects.map((one) => ({
      object: one,
      declaredBy: one.definition.object?.isPart ? undefined : one.declaredBy,
    })),
    by,
  );
  const kept = new Map(left.map(({ item, reason }) => [item, reason]));
  expect([...done, ...kept.keys()]).toHaveLength(objects.length);
  return objects.map((one) => kept.get(one));
}

describe("a repair with the credential of a workload", () => {
  const running = repairer({ identity: { kind: "token", workloadId: SELF } });

  test("keeps the workload that runs it, and no other workload", () => {
    const objects = [object("TrustedWorkload", SELF), object("TrustedWorkload", OTHER)];
    expect(reasons(running, ...objects)).toEqual(["this workload runs the command", undefined]);
  });

  test("keeps no object of another kind with the same id", () => {
    expect(reasons(running, object("FirewallRule", SELF), object("Member", SELF))).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("a repair", () => {
  const members = [object("Member", SELF), object("Member", OTHER), object("ApiKey", "ci")];

  test.each(["password", "token"] as const)("keeps the membership of the running user with a %s", (kind) => {
    const running = repairer({ identity: { kind, userId: SELF } });
    expect(reasons(running, ...members)).toEqual(["this user runs the command", undefined, undefined]);
  });

  test("keeps every API key if it runs with an API key, since the service does not report which one the run uses", () => {
    expect(reasons(repairer({ identity: { kind: "apiKey" } }), ...members)).toEqual([
      undefined,
      undefined,
      expect.stringMatching(/^this run may use this API key/),
    ]);
  });

  test("keeps the running user and the API key of the run even if it deletes forgotten objects", () => {
    const own = [
      object("Member", SELF, { declaredBy: of("prod") }),
      object("ApiKey", "ci", { declaredBy: of("prod") }),
    ];
    const isKept = (identity: Repairer["identity"]) =>
      reasons(repairer({ identity, deletesForgotten: true }), ...own).map((reason) => reason !== undefined);
    expect(isKept({ kind: "token", userId: SELF })).toEqual([true, false]);
    expect(isKept({ kind: "apiKey" })).toEqual([false, true]);
  });

  test("keeps a manual tag that a resource may have claimed: one that the state lacks, or one of another stack", () => {
    const tag = (id: string, stack: string, resource: string) =>
      object("DeviceTagAttachment", id, { declaredBy: { project: "fleet", stack, resource } });
    const tags = [
      tag("1/a", "prod", "attachment"),
      tag("2/b", "prod", "lost"),
      tag("3/c", "lab", "attachment"),
    ];
    const resources = new Set(["attachment"]);
    const foreign = expect.stringMatching(/^attachment of fleet\/lab declared this object last/);
    expect(reasons(repairer({ resources }), ...tags)).toEqual([
      undefined,
      expect.stringMatching(/^this stack declared the object earlier/),
      foreign,
    ]);
    expect(reasons(repairer({ resources, deletesForgotten: true }), ...tags)).toEqual([
      undefined,
      undefined,
      foreign,
    ]);
  });

  test("keeps the access policies of a namespace that would deny every login", () => {
    const objects = [object("AccessPolicy", "1"), object("PublicKey", "aa:bb")];
    expect(reasons(repairer({ closed: new Set([TENANT]) }), ...objects)).toEqual([
      expect.stringMatching(/^the namespace may deny every login/),
      undefined,
    ]);
    expect(reasons(repairer({ closed: new Set([OTHER]) }), ...objects)).toEqual([undefined, undefined]);
  });

  test("keeps objects of other stacks, unless --adopt-from allows the change", () => {
    const objects = [
      object("PublicKey", "1", { declaredBy: of("lab") }),
      object("PublicKey", "2", { declaredBy: of("lab", "other") }),
      object("PublicKey", "3"),
    ];
    const foreign = (owner: string) =>
      `ana of ${owner} declared this object last; allow the change with --adopt-from ${owner}`;
    expect(reasons(repairer(), ...objects)).toEqual([foreign("fleet/lab"), foreign("other/lab"), undefined]);
    // The name of a stack alone refers to the same project.
    expect(reasons(repairer({ adoptFrom: ["lab"] }), ...objects)).toEqual([
      undefined,
      foreign("other/lab"),
      undefined,
    ]);
    expect(reasons(repairer({ adoptFrom: ["other/lab"] }), ...objects)).toEqual([
      foreign("fleet/lab"),
      undefined,
      undefined,
    ]);
    // --delete-forgotten concerns only objects of this stack.
    expect(reasons(repairer({ deletesForgotten: true }), ...objects)).toEqual([
      foreign("fleet/lab"),
      foreign("other/lab"),
      undefined,
    ]);
  });

  test("keeps objects that this stack declared earlier, unless --delete-forgotten is set", () => {
    const own = object("PublicKey", "1", { declaredBy: of("prod") });
    expect(reasons(repairer(), own)).toEqual([
      expect.stringMatching(/^this stack declared the object earlier/),
    ]);
    expect(reasons(repairer({ deletesForgotten: true }), own)).toEqual([undefined]);
  });
});

describe("the declaration of an unmanaged object", () => {
  /** A connection to a server, whose audit trail contains the entries. */
  const connectionTo = (isOwn: boolean, entries: readonly object[] = []) =>
    ({
      server: async () => ({ isOwn }),
      tenant: async () => ({
        client: {
          async *iterate() {
            yield* entries;
          },
        },
      }),
    }) as unknown as Connection;
  const split = async (connection: Connection, one: LiveObject) => {
    const { known, unknown } = await declarationsOf(connection, [one]);
    return { known: known.map(({ declaredBy }) => declaredBy?.stack ?? "none"), unknown: unknown.length };
  };

  test("is unknown on a server that records no declarations", async () => {
    const key = object("PublicKey", "1", { declaredBy: of("lab") });
    expect(await split(connectionTo(false), key)).toEqual({ known: [], unknown: 1 });
    expect(await split(connectionTo(true), key)).toEqual({ known: ["lab"], unknown: 0 });
  });

  test("of a device's tag is the declaration of the entry that added the tag, and unknown without this entry", async () => {
    const tag = object("DeviceTagAttachment", "uid/prod", { declaredBy: of("prod") });
    const entry = (after: readonly string[], stack: string) => ({
      at: "",
      operation: "updateDeviceTags",
      actor: {},
      address: "",
      requestId: "",
      before: { tags: [] },
      after: { tags: after },
      declaredBy: of(stack),
    });
    const adding = connectionTo(true, [entry(["lab"], "other"), entry(["prod"], "lab")]);
    expect(await split(adding, tag)).toEqual({ known: ["lab"], unknown: 0 });
    expect(await split(connectionTo(true, [entry(["lab"], "lab")]), tag)).toEqual({ known: [], unknown: 1 });
  });
});

describe("the drifted resources that a repair reverts", () => {
  const drifted = (name: string, more: Partial<DriftedResource> = {}) =>
    ({
      op: "update",
      urn: `urn:${name}`,
      type: "gatehouse:index:PublicKey",
      name,
      fields: [{ path: "username", old: "a", new: "b" }],
      ...more,
    }) as DriftedResource;
  const kept = (by: Repairer, resources: readonly DriftedResource[], changed: readonly string[] = []) => {
    const notApplied = changed.map((urn) => ({ urn })) as unknown as Parameters<
      typeof restorable
    >[0]["notApplied"];
    const { done, left } = restorable({ drifted: resources, notApplied }, by);
    return [done.map(({ name }) => name), left.map(({ item, reason }) => `${item.name}: ${reason}`)];
  };

  test("are not the resources that another stack declared last", () => {
    const moved = drifted("moved", { declaredBy: of("lab") } as Partial<DriftedResource>);
    const own = drifted("own", { declaredBy: of("prod") } as Partial<DriftedResource>);
    expect(kept(repairer(), [moved, own, drifted("free")])).toEqual([
      ["own", "free"],
      ["moved: ana of fleet/lab declared this object last; allow the change with --adopt-from fleet/lab"],
    ]);
    expect(kept(repairer({ adoptFrom: ["lab"] }), [moved])).toEqual([["moved"], []]);
  });

  test("are not the resources that the program changes", () => {
    expect(kept(repairer(), [drifted("a"), drifted("b")], ["urn:a"])).toEqual([
      ["b"],
      [expect.stringMatching(/^a: the program declares another change of this resource/)],
    ]);
  });

  test("are not the devices whose name or status no resource declares", () => {
    const type = "gatehouse:index:DeviceTags";
    const device = [{ path: "deviceName", old: "web-1", new: "web-2" }];
    const tags = { path: "tags", old: [], new: ["prod"] };
    const only = drifted("only", { type, fields: device });
    const both = drifted("both", { type, fields: [...device, tags] });
    const deleted = drifted("deleted", { type, fields: device, op: "delete" });
    expect(kept(repairer(), [only, both, deleted])).toEqual([
      ["both", "deleted"],
      [expect.stringMatching(/^only: no resource declares the device's name or status/)],
    ]);
  });
});

describe("the deletion of objects", () => {
  const deleting = (calls: string[], failing: readonly string[] = []) =>
    ["a", "b", "c"].map((name) => {
      const remove = async (_: unknown, id: string) => {
        calls.push(id);
        if (failing.includes(name)) throw new Error(`${name} is in use`);
      };
      const definition = { ...definitionNamed("PublicKey"), delete: remove };
      return object("PublicKey", name, { definition: definition as LiveObject["definition"] });
    });
  const connection = {} as Connection;

  test("keeps an object that is no longer due", async () => {
    const calls: string[] = [];
    const removed: string[] = [];
    const isDue = async ({ name }: LiveObject) => name !== "b";
    await removeObjects(connection, deleting(calls), ({ name }) => removed.push(name), isDue);
    expect(removed).toEqual(["a", "c"]);
    expect(calls).toEqual([`${TENANT}/a`, `${TENANT}/c`]);
  });

  test("continues after a failure, and reports all failures", async () => {
    const removed: string[] = [];
    const work = removeObjects(connection, deleting([], ["a", "c"]), ({ name }) => removed.push(name));
    await expect(work).rejects.toThrow(/^Cannot delete 2 objects: .*a is in use; .*c is in use\.$/);
    expect(removed).toEqual(["b"]);
  });
});
