import { beforeEach, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { enroll, enrollProven } from "../http/testApp.ts";

const MAC = "00:00:00:00:00:01";
const { app, ana } = withAppAndUser();
const setProof = (deviceProof: string) =>
  ana.call("editNamespace", { body: { settings: { device_proof: deviceProof } } });
/** Returns the response status of a request that marks a device as offline. The request uses the device's token. */
const statusOf = async ({ uid, token }: { readonly uid: string; readonly token: string }) =>
  (await app.call("offlineDevice", { token, params: { uid } })).status;
let publicKey: string;
beforeEach(async () => {
  const { uid } = await enrollProven(app, ana.tenant, MAC);
  ({ publicKey } = await app.services.db.device.findUniqueOrThrow({ where: { uid } }));
});

/**
 * Sends a device's report. `proof` receives a valid challenge and a placeholder signature, and returns the proof of the
 * private key that the report contains.
 */
async function report(proof: (valid: { challenge: string; signature: string }) => object) {
  const { challenge } = (await app.call("challengeDevice")).body;
  const info = { id: "debian", pretty_name: "", version: "v0.19.0", arch: "amd64", platform: "native" };
  const body = { info, identity: { mac: MAC }, public_key: publicKey, tenant_id: ana.tenant };
  const signature = Buffer.from("no signature").toString("base64");
  const { status, body: answer } = await app.call("authDevice", {
    body: { ...body, proof: proof({ challenge, signature }) },
  });
  return [status, answer.message];
}

test("requires a challenge of the service, of the last minute, signed with the device's key", async () => {
  expect(await report((proof) => proof)).toEqual([403, expect.stringContaining("proof.signature: ")]);
  const unknown = expect.stringContaining("proof.challenge is ");
  expect(await report((proof) => ({ ...proof, challenge: `9${proof.challenge}` }))).toEqual([403, unknown]);
  expect(await report((proof) => ({ ...proof, challenge: "anything" }))).toEqual([403, unknown]);
  const late = report((proof) => {
    app.pass(61);
    return proof;
  });
  expect(await late).toEqual([403, unknown]);
});

test("refuses devices without proofs and voids their tokens if the namespace requires proofs", async () => {
  const proven = await enrollProven(app, ana.tenant, MAC);
  const unproven = await enroll(app, ana.tenant, "00:00:00:00:00:02");
  expect([await statusOf(proven), await statusOf(unproven)]).toEqual([200, 403]);
  await setProof("required");
  expect([await statusOf(proven), await statusOf(unproven)]).toEqual([200, 401]);
  const info = { id: "", pretty_name: "", version: "", arch: "", platform: "" };
  for (const mac of ["00:00:00:00:00:02", "00:00:00:00:00:03"]) {
    const body = { info, identity: { mac }, public_key: "key", tenant_id: ana.tenant };
    expectError(await app.call("authDevice", { body }), 403, /settings\.device_proof/);
  }
  await enrollProven(app, ana.tenant, MAC);
});

test("expires a device's token after seven days, and renews it in time with reports", async () => {
  const first = await enrollProven(app, ana.tenant, MAC);
  await ana.call("acceptDevice", { params: { uid: first.uid } });
  app.pass(4 * 24 * 60 * 60);
  const second = await enrollProven(app, ana.tenant, MAC);
  expect(second.token).not.toBe(first.token);
  app.pass(4 * 24 * 60 * 60);
  expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
  // Agents of version 0.19 request all signatures with the token that they received when they started. The service
  // therefore accepts expired device tokens for this operation.
  const body = { fingerprint: "00:".repeat(15).concat("00"), data: "text" };
  expect((await app.call("authSshPublicKey", { token: first.token, body })).status).toBe(404);
});

test("voids a deleted device's token immediately, even if the device enrolls again", async () => {
  const first = await enrollProven(app, ana.tenant, MAC);
  await ana.call("deleteDevice", { params: { uid: first.uid } });
  expect(await statusOf(first)).toBe(401);
  app.pass(1);
  const second = await enrollProven(app, ana.tenant, MAC);
  expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
});

test("accepts the token of a device that enrolled at the first millisecond of a second", async () => {
  app.stopClock();
  expect(await statusOf(await enrollProven(app, ana.tenant, "00:00:00:00:00:02"))).toBe(200);
});

test("hides the public keys of devices from observers, and shows them to operators", async () => {
  const { uid } = await enrollProven(app, ana.tenant, MAC);
  const seen = async (role: string) => {
    const { id: key } = (await ana.call("createApiKey", { body: { name: role, expires_at: -1, role } })).body;
    const device = (await app.call("getDevice", { apiKey: key, params: { uid } })).body;
    const [listed] = (await app.call("getDevices", { apiKey: key, query: { status: "pending" } })).body;
    expect(listed.public_key).toBe(device.public_key);
    return device.public_key;
  };
  expect([await seen("observer"), await seen("operator")]).toEqual(["", publicKey]);
});
