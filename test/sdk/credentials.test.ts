import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import {
  apiKeyCredential,
  ConfigurationError,
  credentialsFromEnvironment,
  passwordCredential,
  Secret,
  tokenCredential,
} from "../../sdk/index.ts";

const folder = mkdtempSync(join(tmpdir(), "gatehouse-credentials-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(content: string): string {
  const path = join(folder, `f${Math.random().toString(36).slice(2)}`);
  writeFileSync(path, content);
  return path;
}

const OIDC = { GATEHOUSE_TENANT: "00000000-0000-4000-8000-000000000001" };

test("reads each source of a workload's tokens", () => {
  const sourceOf = (env: Record<string, string>) => {
    const { credential } = credentialsFromEnvironment({ ...OIDC, ...env });
    expect(credential).toMatchObject({ kind: "workload", tenant: OIDC.GATEHOUSE_TENANT });
    return credential?.kind === "workload" ? credential.source : undefined;
  };
  const job = { ACTIONS_ID_TOKEN_REQUEST_URL: "https://h/?v=1", ACTIONS_ID_TOKEN_REQUEST_TOKEN: "r" };
  expect(sourceOf({ GATEHOUSE_OIDC: "github", ...job, GATEHOUSE_OIDC_AUDIENCE: "a" })).toMatchObject({
    kind: "github",
    url: "https://h/?v=1",
    audience: "a",
  });
  expect(sourceOf({ GATEHOUSE_OIDC: "github", ...job })).not.toHaveProperty("audience");
  expect(sourceOf({ GATEHOUSE_OIDC: "gitlab", GATEHOUSE_OIDC_TOKEN: "t" })).toMatchObject({ kind: "token" });
  const path = fileWith("t");
  expect(sourceOf({ GATEHOUSE_OIDC: "file", GATEHOUSE_OIDC_TOKEN_FILE: path })).toEqual({
    kind: "file",
    path,
  });
});

const revealed = (env: Record<string, string>) => {
  const { url, credential } = credentialsFromEnvironment(env);
  const parts = Object.entries(credential ?? {}).map(([name, value]) => [
    name,
    value instanceof Secret ? value.reveal() : value,
  ]);
  return { ...(url !== undefined && { url }), ...Object.fromEntries(parts) };
};

test("returns no credential if no variable is set, and treats an empty variable as unset", () => {
  expect(credentialsFromEnvironment({})).toEqual({});
  expect(credentialsFromEnvironment({ GATEHOUSE_API_KEY: "", GATEHOUSE_URL: "" })).toEqual({});
});

test("reads each kind of credential", () => {
  expect(revealed({ GATEHOUSE_URL: "https://h", GATEHOUSE_API_KEY: "k" })).toEqual({
    url: "https://h",
    kind: "apiKey",
    key: "k",
    settings: ["GATEHOUSE_API_KEY"],
  });
  expect(revealed({ GATEHOUSE_TOKEN: "Bearer t" })).toEqual({
    kind: "token",
    token: "t",
    settings: ["GATEHOUSE_TOKEN"],
  });
  expect(
    revealed({
      GATEHOUSE_USERNAME: "ann",
      GATEHOUSE_PASSWORD: " p w ",
      GATEHOUSE_TOTP_SECRET: "jbsw y3dp ehpk 3pxp",
    }),
  ).toEqual({
    kind: "password",
    username: "ann",
    password: " p w ",
    totpSecret: "JBSWY3DPEHPK3PXP",
    settings: ["GATEHOUSE_USERNAME", "GATEHOUSE_PASSWORD"],
  });
});

test("reads each variable from a file and ignores the last newline", () => {
  expect(
    revealed({
      GATEHOUSE_URL_FILE: fileWith("https://h\n"),
      GATEHOUSE_USERNAME_FILE: fileWith("ann\r\n"),
      GATEHOUSE_PASSWORD_FILE: fileWith("pw \n"),
      GATEHOUSE_TOTP_SECRET_FILE: fileWith("JBSWY3DPEHPK3PXP"),
    }),
  ).toMatchObject({ url: "https://h", username: "ann", password: "pw ", totpSecret: "JBSWY3DPEHPK3PXP" });
  expect(revealed({ GATEHOUSE_API_KEY_FILE: fileWith("k\n") })).toMatchObject({
    key: "k",
    settings: ["GATEHOUSE_API_KEY_FILE"],
  });
  expect(revealed({ GATEHOUSE_TOKEN_FILE: fileWith("t\n") })).toMatchObject({ token: "t" });
});

test.each([
  [
    { GATEHOUSE_API_KEY: "hunter2", GATEHOUSE_API_KEY_FILE: "/x" },
    ["GATEHOUSE_API_KEY and GATEHOUSE_API_KEY_FILE are both set. Set only one"],
  ],
  [
    { GATEHOUSE_TOKEN_FILE: "/does/not/exist" },
    ["GATEHOUSE_TOKEN_FILE", "/does/not/exist", "it does not exist. Correct the path."],
  ],
  [{ GATEHOUSE_TOKEN_FILE: folder }, ["GATEHOUSE_TOKEN_FILE", folder, "it is a folder, not a file"]],
  [{ GATEHOUSE_TOKEN_FILE: fileWith("\n") }, ["GATEHOUSE_TOKEN_FILE", "is empty"]],
  [{ GATEHOUSE_TOKEN_FILE: fileWith("hunter2\nhunter2\n") }, ["white space"]],
  [{ GATEHOUSE_API_KEY: "hunter2", GATEHOUSE_TOKEN: "hunter2" }, ["GATEHOUSE_API_KEY and GATEHOUSE_TOKEN"]],
  [
    { GATEHOUSE_API_KEY: "hunter2", GATEHOUSE_USERNAME: "ann", GATEHOUSE_PASSWORD: "hunter2" },
    ["GATEHOUSE_API_KEY and GATEHOUSE_USERNAME"],
  ],
  [{ GATEHOUSE_USERNAME: "ann" }, ["GATEHOUSE_USERNAME is set without GATEHOUSE_PASSWORD"]],
  [{ GATEHOUSE_PASSWORD: "hunter2" }, ["GATEHOUSE_PASSWORD is set without GATEHOUSE_USERNAME"]],
  [{ GATEHOUSE_TOTP_SECRET: "hunter2" }, ["GATEHOUSE_TOTP_SECRET is set without"]],
  [
    { GATEHOUSE_USERNAME: "ann", GATEHOUSE_PASSWORD: "hunter2", GATEHOUSE_TOTP_SECRET: "hunter1890!" },
    ["GATEHOUSE_TOTP_SECRET is not base32"],
  ],
  [
    { GATEHOUSE_URL: "127.0.0.1:8080" },
    ["GATEHOUSE_URL has no scheme. Set it to https://127.0.0.1:8080, or to http://127.0.0.1:8080"],
  ],
  [{ GATEHOUSE_URL: "localhost:8080" }, ["GATEHOUSE_URL has no scheme. Set it to https://localhost:8080"]],
  [
    { GATEHOUSE_URL: "ann:hunter2@host" },
    ["GATEHOUSE_URL is not the URL of a service. Set it to a URL such as"],
  ],
  [{ GATEHOUSE_URL: "http//host" }, ["GATEHOUSE_URL is not the URL of a service"]],
  [{ GATEHOUSE_URL: "ftp://host" }, ["GATEHOUSE_URL is not the URL of a service"]],
  [{ GATEHOUSE_URL: "https://ann:hunter2@host" }, ["GATEHOUSE_URL must not contain a user name or password"]],
  [{ GATEHOUSE_API_KEY: "hunter 2" }, ["GATEHOUSE_API_KEY is empty, or contains white space"]],
  [{ GATEHOUSE_OIDC: "jenkins" }, ["GATEHOUSE_OIDC is set without GATEHOUSE_TENANT"]],
  [{ ...OIDC, GATEHOUSE_OIDC: "jenkins" }, ["GATEHOUSE_OIDC must be github, gitlab or file"]],
  [
    { ...OIDC, GATEHOUSE_OIDC: "github", ACTIONS_ID_TOKEN_REQUEST_URL: "https://hunter" },
    [
      "ACTIONS_ID_TOKEN_REQUEST_TOKEN ",
      "is not set, but GATEHOUSE_OIDC is github. Add the permission id-token: write",
    ],
  ],
  [
    { ...OIDC, GATEHOUSE_OIDC: "gitlab" },
    [
      "GATEHOUSE_OIDC_TOKEN ",
      "is not set, but GATEHOUSE_OIDC is gitlab. Add GATEHOUSE_OIDC_TOKEN to id_tokens",
    ],
  ],
  [
    { ...OIDC, GATEHOUSE_OIDC: "file" },
    ["GATEHOUSE_OIDC_TOKEN_FILE ", "is not set, but GATEHOUSE_OIDC is file. Set it to the path"],
  ],
  [
    { ...OIDC, GATEHOUSE_OIDC: "file", GATEHOUSE_OIDC_TOKEN_FILE: "/does/not/exist" },
    ["GATEHOUSE_OIDC_TOKEN_FILE", "it does not exist. Correct the path."],
  ],
  [
    { ...OIDC, GATEHOUSE_OIDC: "file", GATEHOUSE_OIDC_TOKEN_FILE: fileWith("\n") },
    ["GATEHOUSE_OIDC_TOKEN_FILE", "is empty"],
  ],
  [
    { ...OIDC, GATEHOUSE_OIDC: "gitlab", GATEHOUSE_OIDC_TOKEN: "hunter2", GATEHOUSE_API_KEY: "hunter2" },
    ["GATEHOUSE_API_KEY and GATEHOUSE_OIDC are set"],
  ],
  [{ GATEHOUSE_OIDC_TOKEN: "hunter2" }, ["GATEHOUSE_OIDC_TOKEN is set without GATEHOUSE_OIDC"]],
])("rejects %j and reports the cause without secrets", (env, words) => {
  let message = "";
  try {
    credentialsFromEnvironment(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    message = (error as Error).message;
  }
  for (const word of words) {
    expect(message).toContain(word);
  }
  expect(message).not.toContain("hunter");
});

test("rejects credentials that a header cannot carry", () => {
  for (const text of ["", "a b", "a\nb", "ä"]) {
    expect(() => apiKeyCredential(text)).toThrow(ConfigurationError);
    expect(() => tokenCredential(text)).toThrow(ConfigurationError);
  }
  expect(() => passwordCredential({ username: "", password: "x" })).toThrow(ConfigurationError);
});
