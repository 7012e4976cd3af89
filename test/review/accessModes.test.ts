import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { labelsOf, type RecordedService, startRecordedService } from "../support/recordedService.ts";

// Recorded responses of a server of version 0.27: a namespace in the mode identity and one in the mode legacy. The owner
// and an API key of the role administrator read each namespace, and an operator reads the one in the mode identity.

const TENANTS = {
  identity: "7eddd4ed-4d6a-4f75-a1fa-ff9937536358",
  legacy: "dda5c5f8-0c86-4d60-b4cf-fd7a4b1be3a8",
};
type Mode = keyof typeof TENANTS;
const CREDENTIALS = {
  user: { GATEHOUSE_USERNAME: "owner", GATEHOUSE_PASSWORD: "secret-Pw1" },
  key: { GATEHOUSE_API_KEY: "00000000-0000-4000-8000-000000000000" },
  operator: { GATEHOUSE_USERNAME: "alice", GATEHOUSE_PASSWORD: "Alice-pass-1" },
};
type Credential = keyof typeof CREDENTIALS;

const NOT_KNOWN = "the access in the namespace dev is not known: ";
const UNREAD_POLICIES = `${NOT_KNOWN}the access policies could not be read`;
const UNREAD_SSH_KEYS = "the SSH keys of users could not be read";
const NOT_LISTED = ["API keys could not be read", "invitations could not be read"];
const NOT_INVENTORIED = ["of the kind ApiKey could not be read", "of the kind Member could not be read"];
const NO_POLICIES = "of the kind AccessPolicy could not be read";

let service: RecordedService | undefined;
let program: PolicyProgram;
beforeEach(() => {
  program = new PolicyProgram();
  // Sets the clock to the time of the recording, so that the recorded invitations and API keys have not expired.
  vi.useFakeTimers({ now: new Date("2026-11-28T11:00:00Z"), toFake: ["Date"] });
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
    ...(credential !== "key" && { GATEHOUSE_TENANT: TENANTS[mode] }),
    GATEHOUSE_URL: service.url,
    GATEHOUSE_RETRY_TIMEOUT: "0",
  };
}

/** The expected exit code, and texts of the output. */
type Expected = readonly [code: number, ...texts: string[]];

const EXPLAIN = ["access", "--user", "alice@example.com", "--login", "root", "--device", "web1", "--explain"];
const EXPLAIN_KEY = ["access", "--key", "ana", "--login", "root", "--device", "web1", "--explain"];

const OF_ALICE = "user alice@example.com gains login root on web1";

/** The expected results in a mode, by command and by credential. */
type Rows = readonly (readonly [
  args: readonly string[],
  user: Expected,
  key: Expected,
  operator?: Expected,
])[];

const IDENTITY: Rows = [
  [
    ["access"],
    [0, "Operators after the approval of an SSH key", "service account backup", "Owner access"],
    [2, "Operators after a re-authentication", "service account backup", UNREAD_SSH_KEYS],
    [2, `UNKNOWN: ${UNREAD_POLICIES}`],
  ],
  [
    ["access", "--allow-incomplete"],
    [0, "Operators"],
    [0, "Operators", UNREAD_SSH_KEYS],
    [2, UNREAD_POLICIES],
  ],
  [
    ["access", "--csv"],
    [0, ",Operators,approval", ",Backup,allow", ",Owner access,allow"],
    [2, ",Operators,reauthentication", ",Backup,allow", ",Owner access,unknown", UNREAD_SSH_KEYS],
    [2, UNREAD_POLICIES],
  ],
  [
    ["access", "--json"],
    [0, '"outcome":"approval"', '"notEvaluated": []'],
    [2, '"outcome":"unknown"', UNREAD_SSH_KEYS],
    [2, UNREAD_POLICIES, '"grants": null'],
  ],
  [
    EXPLAIN,
    [
      0,
      "ALLOWED AFTER THE APPROVAL OF AN SSH KEY",
      "No root on databases (deny) does not apply: device differs",
    ],
    [2, "ALLOWED AFTER A RE-AUTHENTICATION", "SSH keys not known", UNREAD_SSH_KEYS],
    [2, `UNKNOWN: ${UNREAD_POLICIES}`],
  ],
  [
    [...EXPLAIN, "--json"],
    [0, '"outcome": "approval"'],
    [2, '"outcome": "reauthentication"', UNREAD_SSH_KEYS],
    [2, UNREAD_POLICIES, '"allowed": null'],
  ],
  [
    ["coverage"],
    [0, "AccessPolicy              0 of      4    0 %", "ServiceAccount            0 of      1    0 %"],
    [0, "AccessPolicy              0 of      4    0 %", ...NOT_INVENTORIED],
    [0, "AccessPolicy              0 of      0  not known", NO_POLICIES],
  ],
  [
    ["coverage", "--fail-on-unmanaged"],
    [2, "AccessPolicy Operators"],
    [2, ...NOT_INVENTORIED],
    [2, NO_POLICIES],
  ],
  [
    ["review"],
    [
      2,
      "No access changes",
      "AccessPolicy Operators (",
      `): ${OF_ALICE}`,
      "Member alice@example.com (",
      "): gives the role operator; user alice",
      "ApiKey ci-key: gives the role administrator",
      "7 blocking findings",
    ],
    [2, "No access changes", UNREAD_SSH_KEYS, ...NOT_LISTED, "10 blocking findings"],
    [2, UNREAD_POLICIES, "Access changes are not known", "Access was not evaluated"],
  ],
  [
    ["review", "--allow-unmanaged"],
    [0, "No blocking findings"],
    [2, UNREAD_SSH_KEYS, "4 blocking findings"],
    [2, UNREAD_POLICIES, "5 blocking findings"],
  ],
  [
    ["drift"],
    [2, `is unmanaged; ${OF_ALICE}`, "PublicKey ana", "gives no access at present"],
    [2, `is unmanaged; ${OF_ALICE} after a re-authentication`, UNREAD_SSH_KEYS, ...NOT_INVENTORIED],
    [2, UNREAD_POLICIES, NO_POLICIES, "is unmanaged; the effect on access is not known"],
  ],
  [["import"], [0, "4 AccessPolicy"], [0, "4 AccessPolicy", ...NOT_INVENTORIED], [0, NO_POLICIES]],
  [
    ["ssh-config", "--login", "root"],
    [0, "User root@dev.web1"],
    [0, "User root@dev.web1"],
    [0, "User root@dev.web1"],
  ],
];
const LEGACY: Rows = [
  [["access"], [0, "ana", "web1"], [0, "ana", "web1", ...NOT_LISTED]],
  [EXPLAIN_KEY, [0, "ALLOWED"], [0, "ALLOWED", ...NOT_LISTED]],
  [["coverage"], [0, "Member alice@example.com"], [0, ...NOT_INVENTORIED]],
  [["coverage", "--fail-on-unmanaged"], [2], [2]],
  [
    ["review"],
    [2, "No access changes", "2 blocking findings"],
    [2, "No access changes", "4 blocking findings", ...NOT_LISTED],
  ],
  [
    ["review", "--allow-unmanaged"],
    [0, "No blocking findings"],
    [2, ...NOT_LISTED],
  ],
  [["drift"], [2, "gives login root on web1"], [2, ...NOT_INVENTORIED]],
  [
    ["import"],
    [0, "Member.role must be one of observer, operator, administrator", "1 Member, 1 PublicKey"],
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
    return gatehouse(
      [command, ...out, "--only", "Member", "PublicKey", "ApiKey", "AccessPolicy", ...flags],
      env,
    );
  }
  if (!WITH_STACK.includes(command)) return gatehouse([command, ...flags], env);
  const stack = program.stack({ env });
  await stack.run(["preview", "--create"]);
  return stack.run([command, ...flags]);
}

const POLICY_TESTS = {
  identity: `
policyTest("mallory", ({ access }) => expect(access).not.toAllow({ user: "mallory" }));
policyTest("operators", ({ access }) => expect(access).toAllow({ user: "alice@*", login: "root" }));
policyTest("approval", ({ access }) => expect(access).toRequireApproval({ user: "alice@*" }));
policyTest("no approval", ({ access }) => expect(access).not.toRequireApproval({ user: "owner@*" }));`,
  legacy: `
policyTest("mallory", ({ access }) => expect(access).not.toAllow({ key: "mallory" }));
policyTest("ana", ({ access }) => expect(access).toAllow({ key: "ana", login: "root" }));`,
};

/** A credential that reads every list, and a credential that reads no access policy. */
const CASES = [
  { mode: "identity", credential: "user", rows: IDENTITY.map(([args, user]) => [args, user] as const) },
  { mode: "identity", credential: "operator", rows: IDENTITY.map(([args, , , one]) => [args, one] as const) },
] as const;
const FURTHER_CASES = [
  { mode: "identity", credential: "key", rows: IDENTITY.map(([args, , key]) => [args, key] as const) },
  { mode: "legacy", credential: "user", rows: LEGACY.map(([args, user]) => [args, user] as const) },
  { mode: "legacy", credential: "key", rows: LEGACY.map(([args, , key]) => [args, key] as const) },
] as const;
type Case = (typeof CASES | typeof FURTHER_CASES)[number];

const TITLE = "in the mode $mode, with the credential $credential";
describe.each(CASES)(TITLE, testCommands);
// These 36 runs of commands take half a minute.
describe.each(FURTHER_CASES)(TITLE, { tags: ["long"] }, testCommands);

function testCommands({ mode, credential, rows }: Case) {
  it.each(rows.map(([args, expected]) => [args.join(" "), args, expected] as const))(
    "%s",
    async (_title, args, expected) => {
      const [code, ...texts] = expected ?? [];
      const { stdout, stderr, code: ended } = await run(args, await start(mode, credential));
      const output = stdout + stderr;
      for (const text of texts) expect(output).toContain(text);
      expect(ended, output).toBe(code);
      // A service account is no member.
      expect(output).not.toContain("service.local");
      if (credential === "operator")
        expect(output).not.toMatch(/ALLOWED|DENIED|No (other )?access changes|No key reaches|principal_id/);
    },
  );

  it("test", async () => {
    program.write(
      "access.policy.mjs",
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
${POLICY_TESTS[mode]}
policyTest("keys", ({ policy }) => expect(policy.keys.filter(() => false)).toSatisfy(() => true, "x"));
policyTest("one owner", ({ members }) => expect(members).exactlyOneOwner());`,
    );
    const { stdout, code } = await spawnGatehouse(["test", program.folder], await start(mode, credential));
    const passed = [...stdout.matchAll(/ok +([a-z ]+?) \(/g)].map(([, name]) => name);
    // The list of members is incomplete without the invitations.
    const all: Readonly<Record<string, readonly string[]>> = {
      "identity user": ["mallory", "operators", "approval", "no approval", "keys", "one owner"],
      "identity key": ["mallory", "operators", "approval", "keys"],
      "identity operator": [],
      "legacy user": ["mallory", "ana", "keys", "one owner"],
      "legacy key": ["mallory", "ana", "keys"],
    };
    expect(passed).toEqual(all[`${mode} ${credential}` as keyof typeof all]);
    expect(stdout.includes(NOT_KNOWN)).toBe(credential === "operator");
    expect(code).toBe(credential === "user" ? 0 : 2);
  });
}

const UNKNOWN_MODE = "an access mode that this version does not know";
const UNKNOWN_POLICY =
  "has a subject, an action or a re-authentication period that this version cannot evaluate";

describe("a mode of a later version", () => testUnknownAccess("a mode of a later version", UNKNOWN_MODE));
// These 18 runs of commands take 15 seconds, and differ from the previous ones in the reason only.
describe.each([
  ["a subject of a later version", UNKNOWN_POLICY],
  ["an action of a later version", UNKNOWN_POLICY],
  ["access policies are not shown", "the access policies could not be read"],
])("%s", { tags: ["long"] }, testUnknownAccess);

function testUnknownAccess(label: string, reason: string) {
  const path = label.includes("mode") ? "/api/namespaces/{tenant}" : "/api/access-policies";
  const settings = () => start("identity", "user", { [`GET ${path}`]: label });

  const commands = [
    ["access"],
    ["access", "--allow-incomplete"],
    EXPLAIN,
    ["review", "--allow-unmanaged"],
    ["drift"],
  ];
  it.each(commands.map((args) => [args.join(" "), args] as const))(
    "is reported by %s",
    async (_title, args) => {
      const { stdout, code } = await run(args, await settings());
      expect([stdout, code]).toEqual([expect.stringMatching(`${NOT_KNOWN}.*${reason}`), 2]);
      expect(stdout).not.toMatch(/ALLOWED|DENIED|No (other )?access changes/);
    },
  );

  it("fails policy tests", async () => {
    program.write(
      "access.policy.mjs",
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("mallory", ({ access }) => expect(access).not.toAllow({ user: "mallory" }));`,
    );
    const { stdout, code } = await spawnGatehouse(["test", program.folder], await settings());
    expect([stdout, code]).toEqual([expect.stringMatching(`FAIL.*mallory[^]*${reason}`), 2]);
  });
}

it("reports members as unread if the server omits their e-mail addresses", async () => {
  const { stdout, code } = await run(
    ["review", "--allow-unmanaged"],
    await start("legacy", "user", { "GET /api/namespaces/{tenant}/members": "members without addresses" }),
  );
  expect([stdout, code]).toEqual([
    expect.stringContaining("members could not be read; lockouts cannot be detected"),
    2,
  ]);
});

it("writes the reason into the map, and the title of the Markdown report", { tags: ["long"] }, async () => {
  const stack = program.stack({ env: await start("identity", "operator") });
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
    expect([unset.stderr, unset.code]).toEqual([expect.stringContaining("Set GATEHOUSE_TENANT"), 1]);
    const set = await gatehouse(["access"], { ...env, GATEHOUSE_TENANT: TENANTS.identity });
    expect([set.stdout, set.code]).toEqual([expect.stringContaining(UNREAD_SSH_KEYS), 2]);
  });

  it("is found by its name", async () => {
    const env = await start("legacy", "key");
    const found = (name: string) =>
      gatehouse(["import", "--tenant", name, "--out", join(program.folder, name), "--state", "none"], env);
    expect((await found("dev")).code).toBe(0);
    expect((await found("other")).stderr).toContain('not a member of a namespace "other"');
  });
});
