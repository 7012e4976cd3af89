import { inspect } from "node:util";
import { expect, test } from "vitest";
import {
  apiKeyCredential,
  type Credential,
  passwordCredential,
  Secret,
  tokenCredential,
  workloadCredential,
} from "../../sdk/index.ts";
import { connect, failure } from "./scriptedClient.ts";
import { fakeTiming, fakeToken, type Step, scriptedServer } from "./scriptedServer.ts";

const HIDDEN = "hunter2hunter2";
const TOTP = "JBSWY3DPEHPK3PXP";
const TOKEN = fakeToken({ tenant: "t", jti: HIDDEN });
const signature = TOKEN.split(".")[1] as string;

/** Returns all text of a value that a log, a debugger or a state file could contain. */
function shown(value: unknown): string {
  const options = { depth: 20, showHidden: true, getters: false, maxStringLength: null } as const;
  const error = value instanceof Error ? `${value.message}\n${value.stack}\n${shown(value.cause)}` : "";
  return [inspect(value, options), JSON.stringify(value), String(value), error].join("\n");
}

function expectHidden(value: unknown): void {
  const text = shown(value);
  for (const secret of [HIDDEN, TOTP, signature]) {
    expect(text).not.toContain(secret);
  }
}

const credentials: Record<string, Credential> = {
  apiKey: apiKeyCredential(HIDDEN),
  token: tokenCredential(TOKEN),
  password: passwordCredential({ username: "ann", password: HIDDEN, totpSecret: TOTP }),
  workload: workloadCredential({ tenant: "t", source: { kind: "token", token: HIDDEN } }),
};

test("returns a secret only from reveal()", () => {
  const secret = new Secret(HIDDEN);
  expect(secret.reveal()).toBe(HIDDEN);
  expectHidden(secret);
  expectHidden({ nested: [secret] });
});

test.each(Object.entries(credentials))(
  "%s: credential and client do not contain the secret",
  async (_, credential) => {
    expectHidden(credential);
    const client = connect("http://127.0.0.1:9", { credential });
    expectHidden(client);
    expectHidden(client.forTenant("x"));
  },
);

test.each(Object.entries(credentials))(
  "%s: errors do not contain the secret, even if the server repeats it",
  async (_, credential) => {
    const server = await scriptedServer();
    const client = connect(server.url, { credential, timing: fakeTiming().timing });
    const echo = { message: `you sent ${HIDDEN}, ${TOTP} and ${TOKEN}` };
    server.always(({ path, headers }): Step => {
      if (path === "/api/login") {
        return { status: 401, headers: { "x-mfa-token": HIDDEN } };
      }
      if (path === "/api/user/mfa/auth") {
        return { body: { token: TOKEN } };
      }
      if (path === "/api/auth/workload") {
        return { body: { token: TOKEN, tenant: "t", workload: {}, expires_at: "", renewable_until: "" } };
      }
      const sent = [headers["x-api-key"], headers.authorization].join();
      return {
        status: 403,
        headers: { "x-request-id": HIDDEN },
        body: { ...echo, message: `${echo.message} ${sent}` },
      };
    });
    const error = await client.getTags().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "PermissionError" });
    // The test uses the secrets of the credential, since a server's message can only repeat secrets that the client
    // sends.
    const own = {
      apiKey: [HIDDEN],
      token: [signature],
      password: [HIDDEN, TOTP, signature],
      workload: [HIDDEN, signature],
    }[credential.kind];
    for (const secret of own) {
      expect(shown(error)).not.toContain(secret);
    }
  },
);

test.each([
  "die",
  "dieInBody",
  { body: `<html>${HIDDEN}` },
  { status: 401 },
  { status: 400, body: [HIDDEN] },
] as const)("hides password and response in the error of a failed login: %j", async (step) => {
  const server = await scriptedServer();
  const client = connect(server.url);
  server.always(step);
  expectHidden(await failure(client.login({ body: { username: "ann", password: HIDDEN } }), Error));
});

test("returns the MFA token of a login only from mfaToken", async () => {
  const server = await scriptedServer();
  const client = connect(server.url);
  server.script({ status: 401, headers: { "x-mfa-token": HIDDEN } });
  const error = await failure(client.login({ body: { username: "ann", password: "wrong" } }), Error);
  expect((error as { mfaToken?: string }).mfaToken).toBe(HIDDEN);
  expectHidden(error);
});

test("masks secrets of the request body in the server's message", async () => {
  const server = await scriptedServer();
  const client = connect(server.url, { credential: tokenCredential(TOKEN) });
  server.script({ status: 400, body: { message: `password ${HIDDEN} is too simple` } });
  const error = await failure(client.updateUser({ body: { password: HIDDEN } }), Error);
  expect(error.message).toContain("password [secret] is too simple");
  expectHidden(error);
});

test.each([
  { currentPassword: "hunter2", password: "hunter2-prod-91X" },
  { currentPassword: "hunter2-prod-91X", password: "hunter2" },
])("masks the whole secret if it starts with another secret: %j", async (body) => {
  const server = await scriptedServer();
  const client = connect(server.url, { credential: tokenCredential(TOKEN) });
  server.script({ status: 400, body: { message: "hunter2-prod-91X is too like hunter2" } });
  const error = await failure(client.updateUser({ body }), Error);
  expect(error.message).toContain("[secret] is too like [secret]");
});

test("rejects a credential with a line break and hides it in the error", () => {
  expect(() => apiKeyCredential(`${HIDDEN}\r\nx: y`)).toThrow(/white space/);
  try {
    apiKeyCredential(`${HIDDEN}\r\nx: y`);
  } catch (error) {
    expectHidden(error);
  }
});
