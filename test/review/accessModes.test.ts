import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { labelsOf, type RecordedService, startRecordedService } from "../support/recordedService.ts";

// Recorded responses of a server of version 0.27: a namespace in the mode legacy and one in the mode identity. The owner
// and an API key of the role administrator read each namespace.

const TENANTS = {
  identity: "a464f5dc-8996-4003-844c-80b27ffc82cf",
  legacy: "edb832fa-c57a-4c12-ab05-b97d83e31ef8",
};
type Mode = keyof typeof TENANTS;
const CREDENTIALS = {
  user: { GATEHOUSE_USERNAME: "owner", GATEHOUSE_PASSWORD: "Owner-pass-1" },
  key: { GATEHOUSE_API_KEY: "00000000-0000-4000-8000-000000000000" },
};
type Credential = keyof typeof CREDENTIALS;

const NOT_KNOWN = "the access in the namespace dev is not known: this namespace decides by access policies";
const NOT_LISTED = ["API keys could not be read", "invitations could not be read"];
const NOT_INVENTORIED = ["of the kind ApiKey could not be read", "of the kind Member could not be read"];

let service: RecordedService | undefined;
let program: PolicyProgram;
beforeEach(() => {
  program = new PolicyProgram();
  // Sets the clock to the time of the recording, so that the recorded invitations and API keys have not expired.
  vi.useFakeTimers({ now: new Date("2026-11-28T07:00:00Z"), toFake: ["Date"] });
});
afterEach(async () => {
  vi.useRealTimers();
  program.remove();
  await service?.stop();
});

/**
 * Starts the service of a namespace and a credential, and returns the settings of a command.
 * @param changed other labels of exchanges, by request such as `GET /api/devices`
 */
async function start(mode: Mode, credential: Credential, changed: Readonly<Record<string, string>> = {}) {
  const beginning = `${mode} ${credential}: `;
  service = await startRecordedService(
    labelsOf(beginning).map((label) => changed[label.slice(beginning.length)] ?? label),
  );
  return {
    ...CREDENTIALS[credential],
    ...(credential === "user" && { GATEHOUSE_TENANT: TENANTS[mode] }),
    GATEHOUSE_URL: service.url,
    GATEHOUSE_RETRY_TIMEOUT: "0",
  };
}

/** The expected exit code, and texts of the output. */
type Expected = readonly [code: number, ...texts: string[]];

const EXPLAIN = ["access", "--key", "ana", "--login", "root", "--device", "web1", "--explain"];

/** The expected results, by command and by credential. */
const IDENTITY: readonly (readonly [args: readonly string[], user: Expected, key: Expected])[] = [
  [["access"], [2, `UNKNOWN: ${NOT_KNOWN}`], [2, `UNKNOWN: ${NOT_KNOWN}`]],
  [
    ["access", "--allow-incomplete"],
    [2, NOT_KNOWN],
    [2, NOT_KNOWN],
  ],
  [
    ["access", "--csv"],
    [2, NOT_KNOWN],
    [2, NOT_KNOWN],
  ],
  [
    ["access", "--json"],
    [2, NOT_KNOWN, '"grants": null'],
    [2, NOT_KNOWN, '"grants": null'],
  ],
  [EXPLAIN, [2, `UNKNOWN: ${NOT_KNOWN}`], [2, `UNKNOWN: ${NOT_KNOWN}`]],
  [
    [...EXPLAIN, "--json"],
    [2, NOT_KNOWN, '"allowed": null'],
    [2, NOT_KNOWN, '"allowed": null'],
  ],
  [["coverage"], [0, NOT_KNOWN], [0, NOT_KNOWN, ...NOT_INVENTORIED]],
  [
    ["coverage", "--fail-on-unmanaged"],
    [2, NOT_KNOWN],
    [2, NOT_KNOWN],
  ],
  [
    ["review"],
    [2, NOT_KNOWN, "Access changes are not known", "Access was not evaluated"],
    [2, NOT_KNOWN, "Access changes are not known", ...NOT_LISTED],
  ],
  [
    ["drift"],
    [2, NOT_KNOWN, "is unmanaged; the effect on access is not known"],
    [2, NOT_KNOWN, ...NOT_INVENTORIED],
  ],
  [["import"], [0, NOT_KNOWN, "1 Member, 1 PublicKey"], [0, NOT_KNOWN, ...NOT_INVENTORIED]],
  [
    ["ssh-config", "--login", "root"],
    [0, "User root@dev.web1"],
    [0, "User root@dev.web1"],
  ],
];
const LEGACY: typeof IDENTITY = [
  [["access"], [0, "ana", "web1"], [0, "ana", "web1", ...NOT_LISTED]],
  [EXPLAIN, [0, "ALLOWED"], [0, "ALLOWED", ...NOT_LISTED]],
  [["coverage"], [0, "Member alice@example.com"], [0, ...NOT_INVENTORIED]],
  [["coverage", "--fail-on-unmanaged"], [2], [2]],
  [
    ["review"],
    [2, "No access changes", "1 blocking finding"],
    [2, "No access changes", "3 blocking findings", ...NOT_LISTED],
  ],
  [
    ["review", "--allow-unmanaged"],
    [0, "No blocking findings"],
    [2, ...NOT_LISTED],
  ],
  [["drift"], [2, "gives login root on web1"], [2, ...NOT_INVENTORIED]],
  [
    ["import"],
    [0, "Member.role: must be one of observer, operator, administrator", "1 Member, 1 PublicKey"],
    [0, ...NOT_INVENTORIED],
  ],
  [
    ["ssh-config", "--login", "root"],
    [0, "User root@dev.web1"],
    [0, "User root@dev.web1"],
  ],
];

const WITH_STACK = ["coverage", "review", "drift"];

async function run([command = "", ...flags]: readonly string[], env: Record<string, string>) {
  if (command === "import") {
    const out = ["--out", join(program.folder, "imported"), "--state", "none"];
    return gatehouse([command, ...out, "--only", "Member", "PublicKey", "ApiKey", ...flags], env);
  }
  if (!WITH_STACK.includes(command)) return gatehouse([command, ...flags], env);
  const stack = program.stack({ env });
  await stack.run(["preview", "--create"]);
  return stack.run([command, ...flags]);
}

describe.each(["user", "key"] as const)("with the credential %s", (credential) => {
  describe.each([
    ["identity", IDENTITY],
    ["legacy", LEGACY],
  ] as const)("in the mode %s", (mode, rows) => {
    it.each(
      rows.map(([args, user, key]) => [args.join(" "), args, credential === "user" ? user : key] as const),
    )("%s", async (_title, args, [code, ...texts]) => {
      const { stdout, stderr, code: ended } = await run(args, await start(mode, credential));
      const output = stdout + stderr;
      for (const text of texts) expect(output).toContain(text);
      expect(ended, output).toBe(code);
      // A service account is no member.
      expect(output).not.toContain("service.local");
      if (mode === "identity")
        expect(output).not.toMatch(
          /ALLOWED|DENIED|No (other )?access changes|No key reaches|key_fingerprint/,
        );
    });

    it("test", async () => {
      program.write(
        "access.policy.mjs",
        `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("no access", ({ access }) => expect(access).not.toAllow({ key: "mallory" }));
policyTest("no keys", ({ policy }) => expect(policy.keys.filter(() => false)).toSatisfy(() => true, "x"));
policyTest("one owner", ({ members }) => expect(members).exactlyOneOwner());`,
      );
      const { stdout, code } = await spawnGatehouse(["test", program.folder], await start(mode, credential));
      const passes = (name: string) => new RegExp(`ok +${name}`).test(stdout);
      expect([passes("no access"), passes("no keys")]).toEqual(Array(2).fill(mode === "legacy"));
      // The list of members is incomplete without the invitations.
      expect(passes("one owner")).toBe(credential === "user");
      expect(stdout.includes(NOT_KNOWN)).toBe(mode === "identity");
      expect(code).toBe(mode === "legacy" && credential === "user" ? 0 : 2);
    });
  });
});

it("reports a mode that the client does not know as not known", async () => {
  const { stdout, code } = await gatehouse(
    EXPLAIN,
    await start("legacy", "user", { "GET /api/namespaces/{tenant}": "a mode of a later version" }),
  );
  expect([stdout, code]).toEqual([expect.stringContaining(`UNKNOWN: ${NOT_KNOWN}`), 2]);
});

it("reports members as unread if the server omits their e-mail addresses", async () => {
  const { stdout, code } = await run(
    ["review", "--allow-unmanaged"],
    await start("legacy", "user", { "GET /api/namespaces/{tenant}": "members without addresses" }),
  );
  expect([stdout, code]).toEqual([
    expect.stringContaining("members could not be read; lockouts cannot be detected"),
    2,
  ]);
});

it("writes the reason into the map, and the title of the Markdown report", async () => {
  const stack = program.stack({ env: await start("identity", "user") });
  const [html, markdown] = ["map.html", "review.md"].map((name) => join(program.folder, name)) as [
    string,
    string,
  ];
  await stack.run(["review", "--create", "--html", html, "--markdown", markdown]);
  expect(readFileSync(html, "utf8")).toContain(`<li>${NOT_KNOWN}`);
  expect(readFileSync(markdown, "utf8")).toMatch(/## Blocked: .*access not known/);
  await stack.run(["review", "--allow-incomplete", "--allow-unmanaged", "--markdown", markdown]);
  expect(readFileSync(markdown, "utf8")).toMatch(/## Incomplete: .*access not known/);
  rmSync(html);
  await stack.run(["drift", "--html", html]);
  expect(readFileSync(html, "utf8")).toContain(`<li>${NOT_KNOWN}`);
});

describe("the namespace of an API key", () => {
  const EMPTY = { "GET /api/sshkeys/public-keys": "no public keys", "GET /api/devices": "no devices" };

  it("is set by GATEHOUSE_TENANT if the server returns no object of it", async () => {
    const env = await start("identity", "key", EMPTY);
    const unset = await gatehouse(["access"], env);
    expect([unset.stderr, unset.code]).toEqual([expect.stringContaining("set GATEHOUSE_TENANT"), 1]);
    const set = await gatehouse(["access"], { ...env, GATEHOUSE_TENANT: TENANTS.identity });
    expect([set.stdout, set.code]).toEqual([expect.stringContaining(NOT_KNOWN), 2]);
  });

  it("is found by its name", async () => {
    const env = await start("legacy", "key");
    const found = (name: string) =>
      gatehouse(["import", "--tenant", name, "--out", join(program.folder, name), "--state", "none"], env);
    expect((await found("dev")).code).toBe(0);
    expect((await found("other")).stderr).toContain('not a member of a namespace "other"');
  });
});
