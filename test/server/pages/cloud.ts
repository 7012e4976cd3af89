import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Secret, TOTP } from "otpauth";
import { expect } from "vitest";
import { call } from "../../support/call.ts";
import { startService, type TestService } from "../../support/service.ts";

/** The origin of links in the service's mails. The tests replace it with the address of the local service. */
const PUBLIC_URL = "http://gate.example.org";

export const PASSWORD = "correct-horse";

/** Starts a cloud instance as a process. The instance writes its mails to files. */
export const startCloud = (env: Readonly<Record<string, string>> = {}): Promise<TestService> =>
  startService({
    env: {
      GATEHOUSE_EDITION: "cloud",
      GATEHOUSE_PUBLIC_URL: PUBLIC_URL,
      // The login rate limits are off (0), because tests log in more often than users do.
      GATEHOUSE_LOGINS_PER_ADDRESS: "0",
      GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
      ...env,
    },
  });

/** Decodes the text of a mail file (RFC 2045, section 6.7). */
function textOf(raw: string): string {
  const [head = "", ...body] = raw.split("\r\n\r\n");
  const text = body.join("\n\n").replaceAll("\r\n", "\n");
  if (!/^content-transfer-encoding: quoted-printable$/im.test(head)) return text;
  return text
    .replaceAll("=\n", "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Returns the texts of the mails to an address, oldest first. */
function mailsTo({ dataDir }: TestService, address: string): string[] {
  const folder = join(dataDir, "mail");
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith(".eml"));
  } catch {
    return [];
  }
  return names
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .filter((raw) => new RegExp(`^To: .*${address}`, "im").test(raw))
    .map(textOf);
}

/** Waits for the n-th mail to an address. Returns the text of the mail. */
export async function mailTo(service: TestService, address: string, n = 1): Promise<string> {
  await expect.poll(() => mailsTo(service, address).length).toBeGreaterThanOrEqual(n);
  return mailsTo(service, address)[n - 1] ?? "";
}

/** Returns the link in a text, with the address of the local service. */
export function linkIn(service: TestService, text: string): string {
  const link = new URL(/https?:\/\/\S+/.exec(text)?.[0] ?? "");
  expect(link.origin).toBe(PUBLIC_URL);
  return service.url + link.pathname + link.search;
}

/** Returns the status of the response to a login. */
export const loginStatus = async (service: TestService, username: string, password: string) =>
  (await call(service, "POST /api/login", { body: { username, password } })).status;

/** Logs in as an existing user. Returns the token. */
export async function tokenOf(service: TestService, username: string, password = PASSWORD): Promise<string> {
  const { status, body } = await call(service, "POST /api/login", { body: { username, password } });
  expect(status).toBe(200);
  return body.token;
}

/** Creates a user. Returns a token of the user. */
export async function newUser(service: TestService, username: string): Promise<string> {
  await service.createUser({ username, password: PASSWORD });
  return tokenOf(service, username);
}

/** Returns the service's complete log of the requests so far. */
export async function wholeLog(service: TestService): Promise<string> {
  // The log is in order. When it contains this additional request, it also contains all earlier requests.
  const last = `/the-end-${randomUUID()}`;
  await fetch(service.url + last);
  await expect.poll(() => service.output()).toContain(last);
  return service.output();
}

/** Creates a user with MFA. The service sends mails about the recovery address and about MFA. */
export async function withMfa(service: TestService, username: string, recoveryEmail: string) {
  const token = await newUser(service, username);
  await call(service, "PATCH /api/users", { token, body: { recovery_email: recoveryEmail } });
  const { secret, recovery_codes } = (await call(service, "GET /api/user/mfa/generate", { token })).body;
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const body = { code: totp.generate(), secret, recovery_codes };
  expect((await call(service, "PUT /api/user/mfa/enable", { token, body })).status).toBe(200);
  return { token, totp };
}
