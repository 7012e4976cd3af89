import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { misspelledVariables } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { knownVariables, unknownSettings } from "../../../server/settings/unknownVariables.ts";
import type { CommandResult } from "../../support/command.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { testService } from "../../support/service.ts";
import { expectFailure } from "./failure.ts";

const check = (env: Readonly<Record<string, string>>, flags: readonly string[] = []) =>
  callServerCommand(["serve", "--check", ...flags], { env });

/** Expects that a command failed, and printed one line for each error. */
function expectLines({ code, stderr }: CommandResult, parts: readonly string[]): void {
  expect(code).toBe(1);
  expect(stderr.trim().split("\n")).toEqual(parts.map((part) => expect.stringContaining(part)));
}

describe("serve --check", () => {
  test("accepts correct settings, and creates nothing", async () => {
    const dataDir = join(testFolder(), "data");
    const env = {
      GATEHOUSE_SSH_PORT: "2222",
      GATEHOUSE_DATABASE_URL: "postgresql://gate@database.invalid/gate",
    };
    expect(await check(env, ["--data-dir", dataDir])).toEqual({
      code: 0,
      stdout: "settings OK\n",
      stderr: "",
    });
    expect(existsSync(dataDir)).toBe(false);
  });

  test("reports every problem: values, combinations of values, and files, without secrets", async () => {
    const folder = testFolder();
    const missing = (name: string) => join(folder, name);
    const values = await check({
      GATEHOUSE_PORT: "http",
      GATEHOUSE_DATABASE_URL: "mysql://gate:pa55word@db/gate",
    });
    expect(values).toMatchObject({ code: 1, stdout: "" });
    expect(values.stderr.trim().split("\n")).toHaveLength(2);
    expect(values.stderr).not.toContain("pa55word");

    const combinations = await check({
      GATEHOUSE_TLS_CERT_FILE: missing("cert"),
      GATEHOUSE_INTERNAL_PORT: "8081",
      GATEHOUSE_EDITION: "cloud",
      GATEHOUSE_SMTP_URL: "smtp://mail.invalid",
      GATEHOUSE_SAML_IDP_ENTITY_ID: "idp",
    });

    expectLines(combinations, [
      "GATEHOUSE_PUBLIC_URL (flag --public-url) is not set",
      "must be set together",
      "is set without GATEHOUSE_INTERNAL_TOKEN",
      "is set without GATEHOUSE_MAIL_FROM",
      "SAML needs all of these settings",
    ]);

    writeFileSync(missing("geoip"), "no database");
    writeFileSync(missing("data"), "");
    const files = await check({
      GATEHOUSE_TLS_CERT_FILE: missing("cert"),
      GATEHOUSE_TLS_KEY_FILE: missing("key"),
      GATEHOUSE_SSH_HOST_KEY_FILE: missing("host"),
      GATEHOUSE_METRICS_TOKEN_FILE: missing("token"),
      GATEHOUSE_GEOIP_FILE: missing("geoip"),
      GATEHOUSE_DATA_DIR: missing("data"),
    });

    expectLines(files, [
      `Cannot read the TLS certificate ${missing("cert")}`,
      `Cannot read the SSH host key ${missing("host")}`,
      `Cannot read the metrics token ${missing("token")}`,
      `The position file ${missing("geoip")}`,
      `Cannot write the data folder ${missing("data")}`,
    ]);
    const secret = await check({ GATEHOUSE_SECRET_FILE: missing("secret") });
    expect(secret).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("GATEHOUSE_SECRET_FILE cannot be used: "),
    });
  });

  test("reports a host key in the data folder that other users can read", async () => {
    const dataDir = testFolder();
    const file = join(dataDir, "ssh_host_ed25519_key");
    writeFileSync(file, "");
    chmodSync(file, 0o644);
    expect((await check({}, ["--data-dir", dataDir])).code).toBe(0);
    const refused = await check({ GATEHOUSE_SSH_PORT: "2222" }, ["--data-dir", dataDir]);
    expectFailure(refused, `Other users can read or write the SSH host key ${file}`);
  });

  test("changes no file of an existing data folder", async () => {
    const dataDir = join(testFolder(), "data");
    mkdirSync(dataDir, { mode: 0o700 });
    expect((await check({}, ["--data-dir", dataDir])).code).toBe(0);
    expect(readdirSync(dataDir)).toEqual([]);
    const secret = join(dataDir, "secret");
    writeFileSync(secret, "a secret that all users can read");
    chmodSync(secret, 0o644);
    const refused = await check({}, ["--data-dir", dataDir]);
    expectFailure(refused, "Users other than the owner may read or write the secret");
  });

  test("warns about unknown variables, suggests similar settings, and does not print values", async () => {
    const dataDir = join(testFolder(), "data");
    const env = {
      GATEHOUSE_TRUSTED_PROXY: "10.0.0.1",
      GATEHOUSE_QUUX: "pa55word",
      GATEHOUSE_URL: "https://a.example",
    };
    expect(await check(env, ["--data-dir", dataDir])).toEqual({
      code: 0,
      stdout: "settings OK\n",
      stderr:
        "gatehouse-server: Warning: GATEHOUSE_QUUX is not a setting and has no effect.\n" +
        "gatehouse-server: Warning: GATEHOUSE_TRUSTED_PROXY is not a setting and has no effect. " +
        "Did you mean GATEHOUSE_TRUSTED_PROXIES?\n",
    });
    // The warnings also appear next to errors.
    const invalid = await check({ ...env, GATEHOUSE_PORT: "http" });
    expect(invalid.stderr.trim().split("\n")).toHaveLength(3);
  });
});

test("a service logs a warning for each unknown variable, without its value", {
  tags: ["long"],
}, async () => {
  const service = await testService({ env: { GATEHOUSE_SECRET_FIEL: "pa55word" } });
  expect(service.logs().filter(({ level }) => level === 40)).toContainEqual(
    expect.objectContaining({
      variable: "GATEHOUSE_SECRET_FIEL",
      msg: "GATEHOUSE_SECRET_FIEL is not a setting and has no effect. Did you mean GATEHOUSE_SECRET_FILE?",
    }),
  );
  expect(service.output()).not.toContain("pa55word");
});

test("knows every variable that a program of the project reads", () => {
  const root = join(import.meta.dirname, "..", "..", "..");
  const sources = ["sdk", "provider", "agent", "server"].flatMap((folder) =>
    globSync(`${folder}/**/*.ts`, {
      cwd: root,
      exclude: ["**/dist/**", "**/node_modules/**", "**/generated/**"],
    }),
  );
  // Names in quotes or after `env.`: names in a longer text may be examples.
  const reads = /"(GATEHOUSE_[A-Z_]+[A-Z])"|\benv\.(GATEHOUSE_[A-Z_]+[A-Z])/g;
  const names = new Set(
    sources.flatMap((file) =>
      Array.from(
        readFileSync(join(root, file), "utf8").matchAll(reads),
        ([, quoted, read]) => quoted ?? read ?? "",
      ),
    ),
  );
  expect(names).toContain("GATEHOUSE_AGENT_TENANT");
  expect(names).toContain("GATEHOUSE_API_KEY");
  expect([...names].filter((name) => !knownVariables.has(name))).toEqual([]);
});

test("no variable of the service looks like a misspelled variable of a client", () => {
  expect(misspelledVariables([...knownVariables], () => new Command())).toEqual([]);
  expect(misspelledVariables(["GATEHOUSE_TENNANT", "GATEHOUSE_QUUX"], () => new Command())).toEqual([
    "GATEHOUSE_TENNANT is not a setting and has no effect. Did you mean GATEHOUSE_TENANT?",
  ]);
});

test.each([
  ["GATEHOUSE_DATABSE_URL_FILE", "GATEHOUSE_DATABASE_URL_FILE"],
  ["GATEHOUSE_SSHPORT", "GATEHOUSE_SSH_PORT"],
  ["GATEHOUSE_Port", "GATEHOUSE_PORT"],
  ["GATEHOUSE_NOTHING_LIKE_IT_AT_ALL", undefined],
])("suggests for %s: %s", (variable, similar) => {
  const [unknown] = unknownSettings([variable, "PATH", "OTHER_GATEHOUSE_PORT"]);
  if (similar === undefined) expect(unknown).toEqual({ variable, similar });
  else expect(unknown?.similar).toContain(similar);
});

// Node's `mkdirSync` with the option `recursive` never ends on these file systems.
test
  .skipIf(process.platform !== "linux")
  .each(["/proc/gatehouse-data", "/proc/gatehouse/data", "/sys/gatehouse-data", "/proc"])(
  "a service with the data folder %s ends with an error, and so does --check",
  async (dataDir) => {
    const serve = ["serve", "--data-dir", dataDir, "--port", "0"];
    for (const command of [serve, [...serve, "--check"]]) {
      const result = await callServerCommand(command);
      expectFailure(result, /^gatehouse-server: Cannot (write|create files in) the data folder [^\n]+\n$/);
      expect(result.stderr).toContain(dataDir);
    }
  },
);

test("a service does not create its data folder below a file", async () => {
  const file = join(testFolder(), "file");
  writeFileSync(file, "");
  const serve = ["serve", "--data-dir", join(file, "a", "b"), "--port", "0"];
  for (const command of [serve, [...serve, "--check"]]) {
    expectFailure(await callServerCommand(command), "a part of the path is a file, not a folder");
  }
});
