import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessAnswer } from "../../provider/access/answer.ts";
import { type AccessFlags, type AccessFormat, accessInquiry } from "../../provider/access/inquiry.ts";
import type { NamespaceState } from "../../provider/namespace/namespaceState.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { definitionsByName } from "../../provider/resources/index.ts";
import { membersOf } from "../../provider/resources/member/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { type PolicyWorld, startPolicyWorld } from "./support.ts";

let world: PolicyWorld;
let estate: NamespaceState;
beforeAll(async () => {
  world = await startPolicyWorld();
  estate = await readNamespace(new Connection(world.fleet.client));
});
afterAll(() => world?.fleet.stop());

const access = (...args: readonly string[]) => gatehouse(["access", ...args], world.fleet.env);
/** Returns the output of `gatehouse access`. Starts no process, which would take longer than most tests. */
function query(flags: AccessFlags, format: AccessFormat = "text") {
  const { output, refused } = accessAnswer(estate, accessInquiry(flags, format));
  return { stdout: [...output].join(""), refused };
}
/** Returns the cells of each row in the printed table, without the header. */
const rowsOf = (stdout: string) => {
  const lines = stdout.split("\n");
  const head = lines.findIndex((line) => line.startsWith("KEY "));
  const end = lines.indexOf("", head);
  return lines.slice(head + 1, end).map((line) => line.split(/ {2,}/));
};
const short = (name: string) => `${world.fingerprints[name]?.slice(0, 11)}…`;
const uid = (name: string) => world.uids[name];

const FORMULA = '=cmd(), "x"\u001b[2J';

test("the server of this project ends access by itself, so the members decide about keys with an owner", () => {
  expect(estate.facts.enforcesExpiry).toBe(true);
  expect(estate.policy.members).toEqual(
    membersOf(estate)?.map(({ id, email }) => ({ id, email, isAccepted: true })),
  );
});

describe("the table", () => {
  test("lists each access with its rule, and the evaluated logins and addresses", async () => {
    const { code, stdout, stderr } = await spawnGatehouse(["access"], world.fleet.env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // Other users choose these names. The output must escape their control characters for the terminal.
    expect(stdout).not.toContain("\u001b");
    const cmd = `=cmd(), "x"\\u{1b}[2J (${short(FORMULA)})`;
    expect(rowsOf(stdout)).toEqual([
      [cmd, "deploy", "any except 203.0.113.1", "db-1, gate, lab", "none matches"],
      [cmd, "deploy", "203.0.113.1", "gate, lab", "none matches"],
      [
        `ana (${short("ana")})`,
        "root",
        "any except 203.0.113.1",
        "6 of 9 devices: 5 tagged web, db-1",
        "none matches",
      ],
      [
        `bob (${short("bob")})`,
        "deploy",
        "any except 203.0.113.1",
        "5 devices tagged web",
        "2 (allow, priority 50)",
      ],
      [`bob (${short("bob")})`, "root", "any except 203.0.113.1", "5 devices tagged web", "none matches"],
    ]);
    // The count omits the pending device. The login "seen" comes from a recorded session.
    expect(stdout).toContain(`Namespace ${world.fleet.tenant}: 3 keys, 9 accepted devices, 4 firewall rules`);
    expect(stdout).toContain(
      "4 login names (from patterns and 1 recent session): deploy, <any other login>, root, seen; ",
    );
    expect(stdout).toContain(
      "<any other address>, 198.51.100.4, 203.0.113.1; <any other address> represents all addresses",
    );
  });

  test("contains only the requested devices, keys, login names and addresses", () => {
    const prod = query({ device: ["tag:prod"], key: ["bo*"], login: ["root", "x"] });
    expect(rowsOf(prod.stdout)).toEqual([
      [`bob (${short("bob")})`, "root", "any except 203.0.113.1", "5 devices tagged web", "none matches"],
    ]);
    expect(prod.stdout).toContain("1 of 3 keys, 7 of 9 accepted devices");
    expect(prod.stdout).toContain("2 login names (as given): root, x");

    const from = query({ from: ["::ffff:203.0.113.77", "10.0.0.1"], device: ["WEB-1"] });
    expect(rowsOf(from.stdout).map((row) => row.slice(1, 4))).toEqual([
      ["root", "10.0.0.1", "web-1"],
      ["deploy", "10.0.0.1", "web-1"],
      ["root", "10.0.0.1", "web-1"],
    ]);
    expect(from.stdout).toContain("2 addresses (as given): 10.0.0.1, 203.0.113.77");
    expect(from.stdout).toContain("Keys without access to these devices: =cmd");
  });

  test("reports whether a name matched a device or a tag, and devices that no key reaches", () => {
    const named = query({ device: ["lab"] });
    expect(named.stdout).toContain("--device lab matches a device name. To select the tag, use tag:lab");
    expect(rowsOf(named.stdout).map((row) => row[3])).toEqual(["lab"]);
    const tagged = query({ device: ["prod"], from: ["203.0.113.9"] });
    expect(tagged.refused).toBe(false);
    expect(tagged.stdout).toContain("--device prod matches a tag of 7 devices");
    expect(tagged.stdout).toContain("No key reaches any of these devices");
  });
});

test("--json lists the uid of every device and every part of the answer", () => {
  const print = world.fingerprints.ana ?? "";
  const { stdout } = query({ key: [print.slice(0, 20)], device: ["web-*", "db-2"] }, "json");
  const answer = JSON.parse(stdout);
  const devices = ["db-2", "web-1", "web-2", "web-3", "web-4", "web-5"];
  expect(answer).toMatchObject({
    namespace: world.fleet.tenant,
    evaluated: {
      logins: ["deploy", "otheruser", "root", "seen"],
      addresses: ["192.0.2.1", "198.51.100.4", "203.0.113.1"],
      anyAddress: "192.0.2.1",
      anyLogin: "otheruser",
    },
    notEvaluated: [],
    unknown: [],
    keys: [{ fingerprint: print, name: "ana", username: "^root$", filter: { tags: ["prod"] } }],
    grants: [
      {
        key: print,
        logins: ["root"],
        addresses: ["192.0.2.1", "198.51.100.4"],
        rule: null,
        devices: devices.slice(1).map(uid),
      },
    ],
  });
  expect(answer.devices.map((device: { name: string }) => device.name)).toEqual(devices);
  expect(answer.rules).toHaveLength(4);
});

test("--csv prints a line for each device, and no cell that a spreadsheet would execute", async () => {
  const { code, stdout, stderr } = await access(
    "--csv",
    "--key",
    "=cmd*",
    "--device",
    "gate",
    "--device",
    "db-1",
  );
  expect(code).toBe(0);
  const about = `${world.fingerprints[FORMULA]},"'=cmd(), ""x""\u001b[2J",deploy`;
  expect(stdout.split("\r\n")).toEqual([
    "key_fingerprint,key_name,login,addresses,device_uid,device_name,rule_id,rule_action,rule_priority,until",
    `${about},192.0.2.1 198.51.100.4,${uid("db-1")},db-1,,,,`,
    `${about},192.0.2.1 198.51.100.4,${uid("gate")},gate,,,,`,
    `${about},203.0.113.1,${uid("gate")},gate,,,,`,
    "",
  ]);
  expect(stderr).toContain("1 of 3 keys, 2 of 9 accepted devices");
});

describe("--explain", () => {
  test("reports an allowed login that no rule matches, and the rules that nearly match", () => {
    const { refused, stdout } = query({ explain: true, key: ["ana"], device: ["web-5"] });
    expect(refused).toBe(false);
    expect(stdout).toContain("ALLOWED: key ana as root from <any other address> on web-5\n");
    expect(stdout).toContain("no firewall rule matches, so the default (allow) applies");
    expect(stdout).toContain("No --login was given: root is assumed.");
    expect(stdout).toContain("No --from was given: an address that no rule mentions is assumed.");
    expect(stdout).toContain(
      "admits the device web-5 (tagged prod, web): the key allows devices tagged prod",
    );
    const rules = stdout.split("\n").filter((line) => /^ {2}\d/.test(line));
    expect(rules.map((line) => line.slice(0, line.indexOf(". Conditions:")))).toEqual([
      "  1 (deny, priority 100) does not match: address differs (everything else matches)",
      "  4 (deny, priority 90) does not match: inactive (everything else matches)",
      "  2 (allow, priority 50) does not match: login differs (everything else matches)",
      "  3 (deny, priority 10) does not match: device differs (everything else matches)",
    ]);
  });

  test("reports a login that a rule denies, as text and as JSON", async () => {
    const [key, device, login, from] = ["bob", "web-1", "deploy", "203.0.113.9"] as const;
    const text = query({ explain: true, key: [key], device: [device], login: [login], from: [from] });
    expect(text.refused).toBe(true);
    expect(text.stdout).toContain("DENIED: key bob as deploy from 203.0.113.9 on web-1\n");
    expect(text.stdout).toContain("the firewall rule 1 (deny, priority 100) denies the login");
    expect(text.stdout).toContain("1 (deny, priority 100) decides");
    expect(text.stdout).toContain("2 (allow, priority 50) would decide");
    expect(text.stdout).not.toContain("assumed");

    const flags = ["--key", key, "--device", device, "--login", login, "--from", from];
    const json = await access("--explain", "--json", ...flags);
    expect(json.code).toBe(2);
    const answer = JSON.parse(json.stdout);
    expect(answer).toMatchObject({
      namespace: world.fleet.tenant,
      allowed: false,
      deniedBy: "rule",
      key: { name: "bob" },
      login: "deploy",
      address: "203.0.113.9",
      device: { uid: uid("web-1"), name: "web-1" },
      assumed: [],
      keyAdmitsLogin: true,
      keyAdmitsDevice: true,
      rule: { id: "1" },
    });
    // `onlyMismatch` is false for a rule with a lower priority than the deciding rule.
    expect(
      answer.considered.map(({ rule, role, mismatches, onlyMismatch }: Record<string, { id: string }>) => [
        rule?.id,
        role,
        mismatches,
        onlyMismatch,
      ]),
    ).toEqual([
      ["1", "decides", [], false],
      ["4", "no match", ["inactive", "login", "device"], false],
      ["2", "would decide", [], false],
      ["3", "no match", ["login", "device"], false],
    ]);
  });

  test("reports a device or login that the key does not admit", () => {
    const device = query({ explain: true, key: ["bob"], device: ["gate"] });
    expect(device.refused).toBe(true);
    expect(device.stdout).toContain("Because the key bob does not allow the device gate.");
    expect(device.stdout).toContain(
      "refuses the device gate (tagged lab): the key allows devices named like ^web-",
    );
    const login = query({ explain: true, key: ["bob"], device: ["web-1"], login: ["ana"] });
    expect(login.refused).toBe(true);
    expect(login.stdout).toContain("Because the key bob does not allow the login name ana.");
  });

  test("requires exactly one key and one device", () => {
    expect(() => query({ explain: true, device: ["tag:lab"] })).toThrow(
      /^--key: --explain needs exactly one key, but 3 match: .*ana .*bob /,
    );
    expect(() => query({ explain: true, key: ["ana"] })).toThrow(
      "--device: --explain needs exactly one device, but 9 match",
    );
  });
});

test.each([
  ["::ffff:198.51.100.7", "198.51.100.7"],
  ["2001:DB8:0:0::7", "2001:db8::7"],
  ["::198.51.100.7", "::c633:6407"],
])("normalizes the address %s as the service does: %s", (from, address) => {
  expect(accessInquiry({ from: [from] }, "text").addresses).toEqual([address]);
});

test.each<[AccessFlags, AccessFormat, RegExp]>([
  [{ device: ["waiting"] }, "text", /^--device: The selector waiting matches none of/],
  [
    { device: ["tag:prd"] },
    "text",
    /^--device: The selector tag:prd matches none of .*. Similar names: prod\.$/,
  ],
  [{ device: ["tag:*"] }, "text", /^--device: The selector tag:\* matches none of/],
  [
    { key: ["anna"] },
    "text",
    /^--key: The selector anna matches none of the namespace's 3 public keys. Similar names: ana\.$/,
  ],
  [{ key: ["a.a"] }, "text", /^--key: The selector a\.a matches none of/],
  [{ key: ["x*a"] }, "text", /^--key: The selector x\*a matches none of/],
  [{ from: ["10.0.0"] }, "text", /^--from must be an IPv4 or IPv6 address/],
  [{ from: ["fe80::1%eth0"] }, "text", /^--from must be/],
  [{ login: [""] }, "text", /^--login must not be empty/],
  [{ explain: true }, "csv", /^--explain cannot be combined with --csv/],
  [{ explain: true, login: ["a", "b"] }, "text", /^--explain allows at most one --login/],
])("rejects %j as %s and reports the flag", (flags, format, message) => {
  expect(() => query(flags, format)).toThrow(message);
});

test("a fingerprint prefix of several keys matches all of them, and the output reports it", () => {
  const keys = estate.of(definitionsByName.PublicKey);
  const [one] = keys?.values() ?? [];
  if (!keys || !one) throw new Error("no key");
  const start = String(one.state.fingerprint).slice(0, 20);
  const similar = { ...one, name: "twin", id: `${estate.tenant}/${start}-twin` };
  const twin = { ...similar, state: { ...one.state, name: "twin", fingerprint: `${start}-twin` } };
  const withSimilar = estate.with({
    objects: new Map([...estate.objects, ["PublicKey", new Map([...keys, [`${start}-twin`, twin]])]]),
  });
  const { output } = accessAnswer(withSimilar, accessInquiry({ key: [start] }, "text"));
  const text = [...output].join("");
  expect(text).toContain("2 of 4 keys");
  expect(text).toMatch(/--key \S+ matches several keys: .*twin/);
});

/** Returns a pattern for an error message of one line, without a stack trace. */
const oneError = (text: string) => expect.stringMatching(new RegExp(`^error: ${text}[^\n]*\n$`));

test("rejects a date without a time for --at", async () => {
  const { code, stderr } = await access("--at", "2026-12-01");
  expect(code).toBe(1);
  expect(stderr).toEqual(
    oneError("--at must be a time with an offset, such as 2026-12-01T18:00Z .*, not 2026-12-01"),
  );
});

test("reports a device that is not in the namespace as a one-line error", async () => {
  const message =
    "--device: The selector web-9 matches none of the namespace's 9 accepted devices. Similar names: web-1, web-2, web-3";
  expect(await access("--device", "web-9")).toEqual({ code: 1, stdout: "", stderr: oneError(message) });
});

test("rejects unknown flags and contradictory flags", async () => {
  const unknown = await access("--devcie", "x");
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toBe("error: Unknown flag --devcie. Did you mean --device? [usage]\n");
  const both = await access("--json", "--csv");
  expect(both.code).toBe(1);
  expect(both.stderr).toContain("cannot be used with");
});

test.each([
  [
    "no credential",
    () => ({ GATEHOUSE_URL: world.fleet.service.url }),
    "credential is not set\\. Set GATEHOUSE_OIDC .in a pipeline., or GATEHOUSE_USERNAME",
  ],
  [
    "a wrong password",
    () => ({ ...world.fleet.env, GATEHOUSE_PASSWORD: "wrong-horse" }),
    "Wrong user name or password at .*GATEHOUSE_PASSWORD. ",
  ],
  [
    "no service",
    () => ({ ...world.fleet.env, GATEHOUSE_URL: "http://127.0.0.1:9", GATEHOUSE_RETRY_TIMEOUT: "0" }),
    "Cannot connect to [^\n]*: connection refused ",
  ],
  ["a wrong namespace", () => ({ ...world.fleet.env, GATEHOUSE_TENANT: "mine" }), "GATEHOUSE_TENANT must be"],
])("%s is a one-line error", async (_, env, message) => {
  const run = await gatehouse(["access"], env());
  expect(run).toEqual({ code: 1, stdout: "", stderr: oneError(message) });
  expect(run.stderr).not.toContain("-horse");
});

test("reads the namespace of GATEHOUSE_TENANT, which has no devices", async () => {
  const { tenantId } = await world.fleet.client.createNamespace({ body: { name: "empty" } });
  const env = { ...world.fleet.env, GATEHOUSE_TENANT: tenantId };
  const { code, stdout } = await gatehouse(["access"], env);
  expect(code).toBe(0);
  expect(stdout).toContain(`Namespace ${tenantId}: 0 keys, 0 accepted devices, 0 firewall rules`);
  expect(stdout).toContain("No key reaches any of these devices");
});

test("in the community edition, which has no firewall, only the keys decide", {
  tags: ["long"],
}, async () => {
  const community = await startPolicyWorld("community");
  try {
    const { env } = community.fleet;
    const { code, stdout } = await gatehouse(["access", "--key", "ana"], env);
    expect(code).toBe(0);
    expect(rowsOf(stdout).map((row) => row.slice(1))).toEqual([
      ["root", "any", "7 devices tagged prod", "none matches"],
    ]);
  } finally {
    await community.fleet.stop();
  }
});
