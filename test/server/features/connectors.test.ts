import { spawnSync } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { valuesOf } from "../http/testApp.ts";

const { app, ana } = withAppAndUser({ edition: "cloud" });

const ENGINE = { address: "engine.example.org", port: 2376 };
const create = (body: object) => ana.call("connectorCreate", { body });
const list = async (query = {}) => (await ana.call("connectorList", { query })).body;
const get = async (uid: string) => (await ana.call("connectorGet", { params: { uid } })).body;
const update = (uid: string, body: object, headers = {}) =>
  ana.call("connectorUpdate", { params: { uid }, body, headers });
const created = async (body: object = ENGINE): Promise<{ uid: string; revision: string }> => {
  expect((await create(body)).status).toBe(200);
  app.pass(1);
  return (await list())[0];
};
const stored = (uid: string) => app.services.db.connector.findUniqueOrThrow({ where: { uid } });

test("stores a connector: enabled, not secure and not connected", async () => {
  const { uid } = await created();
  expect(await get(uid)).toEqual({
    uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    tenant_id: ana.tenant,
    enable: true,
    secure: false,
    ...ENGINE,
    status: { state: "disconnected", message: "the service is not connected to the engine" },
    revision: expect.stringMatching(/^[\w-]{22}$/),
  });
});

test("answers 500 to the engine's details without a connection to the engine", async () => {
  const { uid } = await created();
  expectError(
    await ana.call("connectorInfo", { params: { uid } }),
    500,
    "the connector is not connected to its engine",
  );
});

test("lists the latest first, in pages, and by `enable`", async () => {
  for (const [n, enable] of [true, false, true].entries()) {
    await create({ ...ENGINE, port: n + 1, enable });
    app.pass(1);
  }
  const ports = async (query = {}) => valuesOf(await list(query), "port");
  expect(await ports()).toEqual([3, 2, 1]);
  expect(await ports({ enable: "true" })).toEqual([3, 1]);
  expect(await ports({ enable: "false" })).toEqual([2]);
  expect(await ports({ page: 2, per_page: 2 })).toEqual([1]);
  expect((await ana.call("connectorList", { query: { enable: "maybe" } })).status).toBe(400);
});

test("keeps omitted fields in a change, and checks If-Match", async () => {
  const { uid, revision } = await created();
  const { status, headers } = await update(uid, { port: 1 }, { "if-match": `"${revision}"` });
  expect(status).toBe(200);
  const now = await get(uid);
  expect(now).toMatchObject({ ...ENGINE, port: 1, enable: true });
  expect(headers.get("etag")).toBe(`"${now.revision}"`);
  expect((await update(uid, { port: 2 }, { "if-match": `"${revision}"` })).status).toBe(412);
  expect((await update(uid, {})).status).toBe(200);
  expect(await get(uid)).toEqual(now);
});

test("deletes a connector", async () => {
  const { uid } = await created();
  const remove = () => ana.call("connectorDelete", { params: { uid } });
  expect((await remove()).status).toBe(200);
  expect((await remove()).status).toBe(404);
  expect(await list()).toEqual([]);
});

test("records changes and the creation in the audit trail", async () => {
  const { uid } = await created();
  await update(uid, { enable: false });
  const params = { tenant: ana.tenant };
  const { body } = await ana.call("getAuditTrail", { params, query: { kind: "connector" } });
  expect(body).toMatchObject([
    { operation: "connectorUpdate", object: { id: uid }, before: { enable: true }, after: { enable: false } },
    { operation: "connectorCreate", object: { id: uid }, before: null, after: { ...ENGINE, tls: null } },
  ]);
});

test("validates address and port, and requires certificates for TLS", async () => {
  for (const address of ["10.0.0.5", "::1", "localhost"]) {
    const { uid } = await created({ ...ENGINE, address });
    await ana.call("connectorDelete", { params: { uid } });
  }
  for (const [more, expected] of [
    [{ address: "" }, 400],
    [{ address: "http://engine" }, 400],
    [{ address: "engine:2375" }, 400],
    [{ address: "-engine" }, 400],
    [{ address: "a..b" }, 400],
    [{ address: undefined }, 400],
    [{ port: 0 }, 400],
    [{ port: 65_536 }, 400],
    [{ port: "1" }, 422],
    [{ enable: "yes" }, 422],
    [{ secure: true }, 400],
    [{ secure: true, tls: null }, 400],
    [{ secure: true, tls: { ca: "x", cert: "y", key: "z" } }, 400],
  ] as const) {
    const { status, body } = await create({ ...ENGINE, ...more });
    expect([status, body?.message], JSON.stringify(more)).toEqual([expected, expect.any(String)]);
    expect(await list()).toEqual([]);
  }
});

const openssl = spawnSync("openssl", ["version"]).status === 0;

/** Creates a self-signed certificate and its key. */
function createTls() {
  const folder = testFolder();
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const files = ["-out", certFile, "-keyout", keyFile];
  spawnSync("openssl", ["req", "-x509", ...curve, ...files, "-days", "2", "-subj", "/CN=engine.example.org"]);
  const [cert, key] = [readFileSync(certFile, "utf8"), readFileSync(keyFile, "utf8")];
  return { ca: cert, cert, key };
}

describe.skipIf(!openssl)("TLS material", () => {
  let tls: ReturnType<typeof createTls>;
  let secure: object;
  beforeEach(() => {
    tls = createTls();
    secure = { ...ENGINE, secure: true, tls };
  });

  test("is stored encrypted, and never returned", async () => {
    expect(new X509Certificate(tls.cert).subject).toBe("CN=engine.example.org");
    const { uid } = await created(secure);
    const row = await stored(uid);
    expect(JSON.stringify(row)).not.toContain("BEGIN");
    expect(JSON.parse(app.services.sealer.open(row.sealedTls ?? "", `connector ${uid}`))).toEqual(tls);
    const params = { tenant: ana.tenant };
    const trail = await ana.call("getAuditTrail", { params });
    for (const text of [JSON.stringify(await list()), trail.text]) expect(text).not.toMatch(/BEGIN|sealed/);
    expect(() => app.services.sealer.open(row.sealedTls ?? "", "connector another")).toThrow();
  });

  test("stays when it is omitted, and is deleted when the connector is not secure any more", async () => {
    const { uid, revision } = await created(secure);
    await update(uid, { port: 1 });
    expect((await stored(uid)).sealedTls).not.toBeNull();
    await update(uid, { secure: false });
    expect(await stored(uid)).toMatchObject({ sealedTls: null, tlsDigest: null });
    expectError(await update(uid, { secure: true }), 400, "tls: a secure connector needs this field");
    await update(uid, { secure: true, tls, port: ENGINE.port });
    expect((await get(uid)).revision).toBe(revision);
  });

  test("is rejected if the key does not match; the error does not repeat the key", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    const { status, text } = await create({ ...secure, tls: { ...tls, key } });
    expect(status).toBe(400);
    expect(text).toContain("tls must be");
    expect(text).not.toContain("PRIVATE");
  });

  test("is discarded if the connector is not secure", async () => {
    const { uid } = await created({ ...secure, secure: false });
    expect((await stored(uid)).sealedTls).toBeNull();
  });
});
