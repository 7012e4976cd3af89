import { beforeEach, describe, expect, test } from "vitest";
import { expectError, NOT_FOUND, statusesOf } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { DENY_RULE, enroll, PUBLIC_KEY } from "../http/testApp.ts";

let uid: string;
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
  await tagDevice("alpha", "beta", "gamma");
});

const tagDevice = (...tags: string[]) => ana.call("updateDeviceTags", { params: { uid }, body: { tags } });

interface Kind {
  readonly name: string;
  /** The kind of the object in the names of operations. */
  readonly kind: "PublicKey" | "FirewallRule";
  readonly param: "fingerprint" | "id";
  readonly body: object;
  readonly missing: string;
  /**
   * Status of the response to a request that sets tags on an object whose filter has a host name (rules section 16.5).
   */
  readonly replacedByHostname: number;
}

const kinds: Kind[] = [
  {
    name: "key",
    kind: "PublicKey",
    param: "fingerprint",
    body: PUBLIC_KEY,
    missing: Array(16).fill("00").join(":"),
    replacedByHostname: 404,
  },
  {
    name: "rule",
    kind: "FirewallRule",
    param: "id",
    body: DENY_RULE,
    missing: "4711",
    replacedByHostname: 400,
  },
];

describe.each(kinds)("filter tags of a $name", ({ name, kind, param, body, missing, replacedByHostname }) => {
  const create = async (filter: object): Promise<string> => {
    const created = await ana.call(`create${kind}`, { body: { ...body, filter } });
    expect(created.status).toBe(200);
    return created.body[param];
  };
  const on = (id: string, token = ana.token) => ({ token, params: { [param]: id } });
  const add = (id: string, tag: unknown, token?: string) =>
    app.call(`add${kind}Tag`, { ...on(id, token), body: { tag } });
  const replace = (id: string, tags: unknown, token?: string) =>
    app.call(`update${kind}Tags`, { ...on(id, token), body: { tags } });
  // To remove a tag from a key, the request contains the tag in the path; from a rule, in the body (rules D17, D18).
  // The service ignores a tag in the body of a key's request.
  const remove = (id: string, tag: string, token = ana.token) =>
    app.call(`remove${kind}Tag`, {
      token,
      params: { [param]: id, tag },
      body: name === "rule" ? { tag } : { tag: "ignored" },
    });
  const filter = async () => (await ana.call(`get${kind}s`)).body[0].filter;

  test("adds, replaces and deletes tags in order, three at most", async () => {
    const id = await create({ tags: ["beta"] });
    expect((await add(id, "alpha")).status).toBe(200);
    expect((await add(id, "alpha")).status).toBe(409);
    expect(await filter()).toEqual({ tags: ["beta", "alpha"] });
    expect((await add(id, "gamma")).status).toBe(200);
    await tagDevice("delta");
    expect((await add(id, "delta")).status).toBe(403);
    expect((await remove(id, "alpha")).status).toBe(200);
    expect((await remove(id, "alpha")).status).toBe(404);
    expect(await filter()).toEqual({ tags: ["beta", "gamma"] });
    expect((await replace(id, ["delta", "beta"])).status).toBe(200);
    expect(await filter()).toEqual({ tags: ["delta", "beta"] });
  });

  test("keeps the last tag of a filter, since a filter without tags would match everything", async () => {
    const id = await create({ tags: ["beta"] });
    expectError(
      await remove(id, "beta"),
      400,
      `tag: the filter of the ${name} has no other tag; add another tag to the filter first`,
    );
    expect((await replace(id, [])).status).toBe(400);
    expect(await filter()).toEqual({ tags: ["beta"] });
  });

  test("keeps one of two tags that are deleted concurrently", async () => {
    const id = await create({ tags: ["alpha", "beta"] });
    expect(await statusesOf([remove(id, "alpha"), remove(id, "beta")])).toEqual([200, 400]);
    expect((await filter()).tags).toHaveLength(1);
  });

  test("answers 404 to tags without an object in the namespace, even if another namespace has them", async () => {
    const eve = await app.user("eve", "eves");
    const other = await enroll(app, eve.tenant, "00:00:00:00:00:02");
    const theirs = { token: eve.token, params: { uid: other.uid }, body: { tags: ["theirs"] } };
    await app.call("updateDeviceTags", theirs);
    const id = await create({ tags: ["beta"] });
    expect((await add(id, "theirs")).status).toBe(404);
    expectError(
      await replace(id, ["beta", "theirs"]),
      404,
      "tags: the namespace does not use theirs",
      NOT_FOUND,
    );
    expect(await filter()).toEqual({ tags: ["beta"] });
    for (const refused of [add(id, "theirs", eve.token), replace(id, ["theirs"], eve.token)]) {
      expect((await refused).status).toBe(404);
    }
    expect((await remove(id, "beta", eve.token)).body.message).toBe(`no such ${name}`);
  });

  test("rejects changes of tags for a filter by hostname", async () => {
    const id = await create({ hostname: ".*" });
    expect((await add(id, "alpha")).status).toBe(400);
    expect((await remove(id, "alpha")).status).toBe(400);
    expectError(
      await replace(id, ["alpha"]),
      replacedByHostname,
      `the filter of the ${name} selects by hostname, not by tags`,
      replacedByHostname === 404 ? NOT_FOUND : {},
    );
    expect(await filter()).toEqual({ hostname: ".*" });
  });

  test.each([["ab"], ["a-b"], [undefined]])("rejects the tag %j", async (tag) => {
    const id = await create({ tags: ["beta"] });
    expect((await add(id, tag)).status).toBe(400);
    expect((await replace(id, tag === undefined ? tag : [tag])).status).toBe(400);
  });

  test("answers 404 to a missing object", async () => {
    expect((await add(missing, "alpha")).status).toBe(404);
    expect((await replace(missing, ["alpha"])).status).toBe(404);
    expect((await remove(missing, "alpha")).status).toBe(404);
  });
});
