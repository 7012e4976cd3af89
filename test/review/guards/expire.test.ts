import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { findExpired, removeExpired } from "../../../provider/drift/expire.ts";
import { definitionNamed, type LiveObject } from "../../../provider/namespace/liveObjects.ts";
import type { Connection } from "../../../provider/service/connection.ts";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { withAppAndUser } from "../../server/http/appOfTest.ts";
import { startSparseService } from "../../support/sparseService.ts";
import { connectionOf } from "../support/connectionOf.ts";

const { app, ana } = withAppAndUser();
const ENDED = new Date(Date.now() - 24 * 60 * 60_000).toISOString();
const LATER = new Date(Date.now() + 24 * 60 * 60_000).toISOString();
const DEFINITION = definitionNamed("PublicKey");

/** A connection to a server that does not end access, so that expired objects still give access. */
let connection: Connection;
beforeEach(async () => {
  const sparse = await startSparseService(app.url);
  connection = connectionOf(sparse.url, ana);
  return async () => {
    await connection.client.close();
    await sparse.stop();
  };
});

const fieldsOf = (name: string, username = "^root$") => ({ name, username, filter: { hostname: ".*" } });

/** Creates a public key, and returns its resource in a state with an end. */
async function expiredKey(name: string, expiresAt = ENDED) {
  const body = { ...fieldsOf(name), data: Buffer.from(sshKeyLine()).toString("base64") };
  const { fingerprint } = (await ana.call("createPublicKey", { body })).body as { fingerprint: string };
  const id = `${ana.tenant}/${fingerprint}`;
  const live = await DEFINITION.read(connection, id, {});
  const outputs = { ...live?.state, expiresAt, expiryStatus: "by-run" };
  const resource = {
    urn: `urn:pulumi:prod::fleet::gatehouse:index:PublicKey::${name}`,
    id,
    outputs,
    type: "gatehouse:index:PublicKey",
  };
  return { fingerprint, resource };
}

type Resource = Awaited<ReturnType<typeof expiredKey>>["resource"];

const search = (resources: readonly Resource[], others: readonly Resource[] = []) => ({
  connection,
  resources,
  others: others.map((other) => ({ ...other, urn: `${other.urn}-other`, definition: DEFINITION })),
});
const statuses = (objects: readonly { readonly name: string; readonly status: string }[]) =>
  Object.fromEntries(objects.map(({ name, status }) => [name, status]));
const namesOnService = async () =>
  (await app.services.db.publicKey.findMany()).map(({ name }) => name).sort();

test("an expired object is removed, and an object without a passed end stays", async () => {
  const keys = [await expiredKey("temp"), await expiredKey("later", LATER)];
  const all = search(keys.map(({ resource }) => resource));
  const found = await findExpired(all);
  expect(statuses(found.objects)).toEqual({ temp: "by-run" });
  const removed: string[] = [];
  const after = await removeExpired(all, found, ({ name }) => removed.push(name));
  expect([removed, statuses(after.objects)]).toEqual([["temp"], { temp: "removed" }]);
  expect(await namesOnService()).toEqual(["later"]);
});

test("an object that changes between the search and the deletion stays", async () => {
  const { fingerprint, resource } = await expiredKey("raced");
  const found = await findExpired(search([resource]));
  expect(found.due.map(({ name }) => name)).toEqual(["raced"]);
  await ana.call("updatePublicKey", { params: { fingerprint }, body: fieldsOf("raced", ".*") });
  const after = await removeExpired(search([resource]), found, () => expect.unreachable());
  expect(statuses(after.objects)).toEqual({ raced: "changed" });
  expect(await namesOnService()).toEqual(["raced"]);
});

test("an object that another actor deletes between the search and the deletion is no failure", async () => {
  const { fingerprint, resource } = await expiredKey("raced");
  const found = await findExpired(search([resource]));
  await ana.call("deletePublicKey", { params: { fingerprint } });
  const after = await removeExpired(search([resource]), found, () => expect.unreachable());
  expect(statuses(after.objects)).toEqual({ raced: "removed" });
});

test("an object that was changed out of band is listed with its fields, and stays", async () => {
  const { fingerprint, resource } = await expiredKey("altered");
  await ana.call("updatePublicKey", { params: { fingerprint }, body: fieldsOf("altered", ".*") });
  await connection.forget();
  const found = await findExpired(search([resource]));
  expect(found.objects).toMatchObject([{ status: "changed", changed: ["username"] }]);
  expect(found.due).toEqual([]);
});

test("an object that another resource declares without a passed end stays", async () => {
  const { resource } = await expiredKey("shared");
  const lasting = { ...resource, outputs: { ...resource.outputs, expiresAt: LATER } };
  expect((await findExpired(search([resource], [lasting]))).due).toEqual([]);
  const own = { ...lasting, urn: `${lasting.urn}-renewed` };
  expect((await findExpired(search([resource, own]))).due).toEqual([]);
  // The end of the other resource has passed too.
  expect((await findExpired(search([resource], [resource]))).due.map(({ name }) => name)).toEqual(["shared"]);
});

describe("an object that cannot be evaluated stays, and is reported", () => {
  test("if its provider instance uses another service", async () => {
    const { resource } = await expiredKey("elsewhere");
    const provider = { urn: "urn:provider", id: "1", type: "pulumi:providers:gatehouse" };
    const resources = [
      { ...provider, inputs: { url: "https://other.example.org" } },
      { ...resource, provider: "urn:provider::1" },
    ];
    const found = await findExpired({ connection, resources, others: [] });
    expect(found).toMatchObject({ objects: [], due: [] });
    expect(found.notEvaluated).toEqual([
      "PublicKey elsewhere belongs to another service; set GATEHOUSE_URL to the address of that service",
    ]);
  });

  test("if its end is secret in the state", async () => {
    const { resource } = await expiredKey("secret");
    const hidden = { ...resource, outputs: { ...resource.outputs, expiresAt: { secret: "…" } } };
    const found = await findExpired({ connection, resources: [hidden], others: [] });
    expect([found.due, found.notEvaluated]).toEqual([
      [],
      ["PublicKey secret: the state does not contain its end in plaintext"],
    ]);
  });

  test("if the credential may not read its namespace", async () => {
    const { resource } = await expiredKey("unreadable");
    await app.user("ben", "other");
    const others = connectionOf(app.url, { username: "ben" });
    onTestFinished(() => others.client.close());
    const found = await findExpired({ connection: others, resources: [resource], others: [] });
    expect([found.objects, found.due]).toEqual([[], []]);
    expect(found.notEvaluated).toEqual([expect.stringMatching(/^PublicKey unreadable could not be read: /)]);
  });
});

test("an expired object whose access the service has ended is not due", async () => {
  const { fingerprint, resource } = await expiredKey("ended");
  const own = connectionOf(app.url, ana);
  onTestFinished(() => own.client.close());
  const body = { ...fieldsOf("ended"), expires_at: ENDED };
  await ana.call("updatePublicKey", { params: { fingerprint }, body });
  const found = await findExpired({ connection: own, resources: [resource], others: [] });
  expect([found.objects, found.due]).toEqual([[], []]);
});

test("a failed deletion does not stop the other deletions, and all failures are reported", async () => {
  const [first, second] = [await expiredKey("first"), await expiredKey("second")];
  const found = await findExpired(search([first.resource, second.resource]));
  const due = found.due.map((object): LiveObject => {
    const refused = () => Promise.reject(new Error("the service refused the deletion"));
    return object.name === "first" ? { ...object, definition: { ...DEFINITION, delete: refused } } : object;
  });
  const removed: string[] = [];
  const removing = removeExpired(search([first.resource, second.resource]), { ...found, due }, ({ name }) =>
    removed.push(name),
  );
  await expect(removing).rejects.toThrow(/^Cannot delete 1 object: .*the service refused the deletion/);
  expect([removed, await namesOnService()]).toEqual([["second"], ["first"]]);
});
