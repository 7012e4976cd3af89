import { describe, expect, it } from "vitest";
import { type Repairer, removable } from "../../provider/drift/repair.ts";
import { definitionNamed, type LiveObject } from "../../provider/namespace/liveObjects.ts";

const TENANT = "00000000-0000-4000-8000-000000000000";
const USER = "64b000000000000000000001";
const OTHER = "64b000000000000000000002";

const object = (kind: string, id: string, declaredBy?: LiveObject["declaredBy"]): LiveObject => ({
  definition: definitionNamed(kind),
  id: `${TENANT}/${id}`,
  name: id,
  state: {},
  ...(declaredBy && { declaredBy }),
});

const OBJECTS = [
  object("Member", USER),
  object("Member", OTHER),
  object("ApiKey", "deploy"),
  object("PublicKey", "aa:bb"),
];

/**
 * Returns the ids of the unmanaged objects that a repair with this credential removes. For each object that the repair
 * keeps, returns the reason.
 */
function sortedFor(
  identity: Repairer["identity"],
  objects: readonly LiveObject[] = OBJECTS,
  closed: readonly string[] = [],
  deletesForgotten = false,
) {
  const repairer = {
    identity,
    project: "fleet",
    stack: "prod",
    adoptFrom: [],
    deletesForgotten,
    closed: new Set(closed),
    resources: new Set(["attachment"]),
  };
  // The audit trail contains no declaration of a part.
  const removals = objects.map((object) => ({
    object,
    declaredBy: object.definition.object?.isPart ? undefined : object.declaredBy,
  }));
  const { done, left } = removable(removals, repairer);
  return {
    removed: done.map(({ name }) => name),
    left: Object.fromEntries(left.map(({ item, reason }) => [item.name, reason])),
  };
}

describe("a repair", () => {
  it.each(["password", "token"] as const)("keeps the membership of the running user with a %s", (kind) => {
    expect(sortedFor({ kind, tenant: TENANT, userId: USER })).toEqual({
      removed: [OTHER, "deploy", "aa:bb"],
      left: { [USER]: "this user runs the command" },
    });
  });

  it("keeps every API key if it runs with an API key, since the service does not report which API key the run uses", () => {
    expect(sortedFor({ kind: "apiKey", tenant: TENANT })).toEqual({
      removed: [USER, OTHER, "aa:bb"],
      left: { deploy: expect.stringMatching(/^this run may use this API key/) },
    });
  });

  it("keeps objects that this stack declared earlier, unless it deletes forgotten objects", () => {
    const declaredBy = { project: "fleet", stack: "prod", resource: "me", at: "2026-01-01T00:00:00.000Z" };
    const own = [object("Member", USER, declaredBy), object("ApiKey", "deploy", declaredBy)];
    const earlier = expect.stringMatching(/^this stack declared the object earlier/);
    expect(sortedFor({ kind: "password", userId: OTHER }, own)).toEqual({
      removed: [],
      left: { [USER]: earlier, deploy: earlier },
    });
    const all = sortedFor({ kind: "password", userId: OTHER }, own, [], true);
    expect(all).toEqual({ removed: [USER, "deploy"], left: {} });
  });

  it("keeps a manual tag that a resource may have claimed: one that the state lacks, or one of another stack", () => {
    const tag = (id: string, stack: string, resource: string) =>
      object("DeviceTagAttachment", id, { project: "fleet", stack, resource });
    const tags = [
      tag("1/a", "prod", "attachment"),
      tag("2/b", "prod", "lost"),
      tag("3/c", "lab", "attachment"),
    ];
    expect(sortedFor({ kind: "token" }, tags)).toEqual({
      removed: ["1/a"],
      left: {
        "2/b": expect.stringMatching(/^this stack declared the object earlier/),
        "3/c": expect.stringMatching(/^attachment of fleet\/lab declared this object last/),
      },
    });
    expect(sortedFor({ kind: "token" }, tags, [], true).removed).toEqual(["1/a", "2/b"]);
  });

  it("keeps the running user's membership even if it deletes forgotten objects", () => {
    const declaredBy = { project: "fleet", stack: "prod", resource: "me", at: "2026-01-01T00:00:00.000Z" };
    const own = [object("Member", USER, declaredBy), object("ApiKey", "deploy", declaredBy)];
    expect(sortedFor({ kind: "token", userId: USER }, own, [], true).removed).toEqual(["deploy"]);
    expect(sortedFor({ kind: "apiKey" }, own, [], true).removed).toEqual([USER]);
  });

  it("keeps access policies if the namespace would deny every login without them", () => {
    const policies = [object("AccessPolicy", "owner"), object("PublicKey", "aa:bb")];
    expect(sortedFor({ kind: "token", userId: USER }, policies, [TENANT])).toEqual({
      removed: ["aa:bb"],
      left: { owner: expect.stringMatching(/^the namespace may deny every login/) },
    });
    expect(sortedFor({ kind: "token", userId: USER }, policies, [OTHER]).removed).toEqual(["owner", "aa:bb"]);
  });
});
