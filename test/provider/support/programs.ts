import { createPublicKey, generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { isSparse } from "../../projects.ts";

/** A placeholder for the second namespace of a test. */
export const OTHER_TENANT = "11111111-2222-4333-8444-555555555555";

/** The tags, users and devices that generated programs refer to. The test service must contain all of them. */
export const UNIVERSE = {
  tags: ["edge", "prod", "web1", "dbserver", "EU7", "lab"],
  users: ["ana", "bob"],
  /**
   * The devices that generated programs use, by resource type. Each type has its own devices, so that no two resources
   * of different types manage the same device.
   */
  devices: {
    DeviceTags: ["tags-01", "tags-02"],
    DeviceTagAttachment: ["attach-01", "attach-02"],
    // The MAC addresses of devices, since the resources of this kind change the names of their devices.
    Device: ["02:00:00:00:de:01", "02:00:00:00:de:02"],
  },
} as const;

const tag = fc.constantFrom(...UNIVERSE.tags);
const tags = fc.uniqueArray(tag, { minLength: 1, maxLength: 3 });
const tenant = fc.option(fc.constant(OTHER_TENANT), { nil: undefined });
const adopt = fc.constantFrom(undefined, false, true, "overwrite");

/** An OpenSSH line of a new ed25519 key. */
export function sshKeyLine(comment = ""): string {
  const { publicKey } = generateKeyPairSync("ed25519");
  const raw = createPublicKey(publicKey.export({ type: "spki", format: "pem" }))
    .export({ type: "spki", format: "der" })
    .subarray(-32);
  const field = (data: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, data.length]), data]);
  const blob = Buffer.concat([field(Buffer.from("ssh-ed25519")), field(raw)]).toString("base64");
  return `ssh-ed25519 ${blob} ${comment}`.trimEnd();
}

const lines = Array.from({ length: 5 }, (_, index) => sshKeyLine(`key-${index}`));
const pattern = fc.constantFrom("^root$", ".*", "^(web|db)-[0-9]+$", "a+b", "[[:alpha:]]+");
const filter = fc.oneof(
  fc.record({ hostname: pattern }),
  fc.record({ tags }),
  fc.record({ tags, hostname: fc.constant(undefined) }),
);

/** Generates ends of access. The second and the third are the same time. */
const expiresAt = fc.constantFrom(
  undefined,
  "2100-01-01T00:00:00Z",
  "2100-01-01T02:00:00+02:00",
  "2101-06-30T12:00:00.5Z",
);

/** Generates a device name, also in uppercase. */
const device = (names: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...names), fc.boolean())
    .map(([name, upper]) => (upper ? name.toUpperCase() : name));

/** Namespace settings that servers of version 0.19 do not have. */
const newSettings = {
  deviceProof: fc.constantFrom("optional", "required"),
  sessionMaxMinutes: fc.nat(43_200),
  sessionIdleMinutes: fc.nat(43_200),
  sessionRecordMode: fc.constantFrom("all", "default", "terminals"),
  sessionRecordMegabytes: fc.nat(1024),
  sessionRecordFailure: fc.constantFrom("continue", "end"),
  sshForwarding: fc.array(
    fc.record({ login: pattern, target: fc.constantFrom(".*", "^db-[0-9]+:5432$", "^\\[::1\\]:443$") }),
    { maxLength: 4 },
  ),
};

const byName: Record<string, fc.Arbitrary<Record<string, unknown>>> = {
  Namespace: fc.record(
    {
      name: fc.constantFrom("trials", "Trials-2", "stage"),
      forceDestroy: fc.boolean(),
      adopt,
      settings: fc.record(
        {
          sessionRecord: fc.boolean(),
          connectionAnnouncement: fc.string({ maxLength: 40 }),
          ...(!isSparse && newSettings),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ["name"] },
  ),
  Member: fc.record({
    tenant,
    email: fc.constantFrom("ana@example.com", "Bob@Example.com"),
    role: fc.constantFrom("observer", "operator", "administrator"),
    expiresAt,
    allowLockout: fc.boolean(),
    adopt,
  }),
  PublicKey: fc.record({
    tenant,
    name: fc.constantFrom("laptop", "Ana's key", "x"),
    data: fc
      .tuple(fc.constantFrom(...lines), fc.constantFrom("", " comment", "\n", "  \n"))
      .map(([line, end]) => line + end),
    username: pattern,
    filter,
    // The owner of a namespace is a member of both namespaces.
    owner: fc.constantFrom("", "admin@example.com", "Admin@Example.com"),
    expiresAt,
    adopt,
  }),
  FirewallRule: fc.record(
    {
      tenant,
      action: fc.constantFrom("allow", "deny"),
      priority: fc.nat(1000),
      sourceIp: fc.constantFrom(".*", "^10\\.", "^192\\.0\\.2\\.1$", "[.:]"),
      username: pattern,
      filter,
      active: fc.boolean(),
      expiresAt,
      adopt,
    },
    { requiredKeys: ["action", "priority", "sourceIp", "username", "filter"] },
  ),
  ApiKey: fc.record(
    {
      tenant,
      name: fc.constantFrom("ci-one", "ci-two", "deploy.bot"),
      role: fc.constantFrom("observer", "operator", "administrator", "owner"),
      validDays: fc.constantFrom(-1, 30, 60, 90, 365),
      rotateBefore: fc.nat(29),
      overlap: fc.nat(90),
      keepers: fc.dictionary(fc.constantFrom("year", "owner"), fc.constantFrom("a", "b"), { maxKeys: 2 }),
      allowLockout: fc.boolean(),
    },
    { requiredKeys: ["validDays"] },
  ),
  TrustedWorkload: fc.record(
    {
      tenant,
      name: fc.constantFrom("deploy", "review.2"),
      issuer: fc.constantFrom(
        "https://token.actions.githubusercontent.com",
        "https://gitlab.example.com/oidc",
      ),
      audience: fc.constantFrom("https://gatehouse.example.com", "gatehouse"),
      // The first two have a different order of the same claims.
      claims: fc.constantFrom(
        { repository: "acme/fleet", ref: "refs/heads/release-*" },
        { ref: "refs/heads/release-*", repository: "acme/fleet" },
        { "https://example.com/team": "ops", project_path: "acme/**", ref_protected: "true" },
      ),
      role: fc.constantFrom("observer", "operator", "administrator"),
      maxSessionMinutes: fc.integer({ min: 5, max: 1440 }),
      singleUse: fc.boolean(),
      allowLockout: fc.boolean(),
      adopt,
    },
    { requiredKeys: ["name", "issuer", "audience", "claims", "role"] },
  ),
  // Tags without devices, since the rename of a used tag would affect other objects.
  Tag: fc.record({ tenant, name: fc.constantFrom("unused1", "unused2") }),
  DeviceTags: fc.record({ tenant, device: device(UNIVERSE.devices.DeviceTags), tags, adopt }),
  DeviceTagAttachment: fc.record({
    tenant,
    device: device(UNIVERSE.devices.DeviceTagAttachment),
    tag,
    adopt,
  }),
  Device: fc.record(
    {
      tenant,
      device: device(UNIVERSE.devices.Device),
      name: fc.constantFrom("gate-a", "Gate-B"),
      status: fc.constant("accepted"),
      onDestroy: fc.constantFrom("keep", "remove"),
    },
    { requiredKeys: ["device"] },
  ),
  AccessPolicy: fc
    .record(
      {
        tenant,
        name: fc.constantFrom("operators", "No root"),
        subject: fc.oneof(
          fc.record({ role: fc.constantFrom("operator", "service") }),
          fc.record({ user: fc.constantFrom("7506174b-8351-4509-8190-622626608dc5", "x") }),
          fc.record({ allMembers: fc.constant(true), role: fc.constant(undefined) }),
        ),
        filter,
        logins: fc.oneof(
          fc.constant(["*"]),
          fc.uniqueArray(fc.constantFrom("root", "ana"), { minLength: 1 }),
        ),
        sourceIps: fc.uniqueArray(
          fc.constantFrom("10.0.0.5", "192.168.1.77/16", "2001:DB8::1", "::ffff:1.2.3.4"),
        ),
        action: fc.constantFrom("allow", "deny"),
        requireReauth: fc.boolean(),
        reauthPeriod: fc.nat(3600),
        adopt,
      },
      { requiredKeys: ["name", "subject", "filter", "logins"] },
    )
    .filter(({ action, requireReauth = false, reauthPeriod = 0 }) =>
      requireReauth ? action !== "deny" : reauthPeriod === 0,
    ),
  ServiceAccount: fc.record(
    {
      tenant,
      name: fc.constantFrom("backup", "Monitoring"),
      data: fc.constantFrom(...lines),
      singleUse: fc.boolean(),
      validDays: fc.constantFrom(-1, 1, 30, 36_500),
      adopt,
    },
    { requiredKeys: ["name", "data"] },
  ),
  InstallKey: fc.record(
    {
      tenant,
      name: fc.constantFrom("warehouse", "Lab-1"),
      mode: fc.constant("webhook"),
      allowedMacs: fc.constant([]),
      webhookUrl: fc.constantFrom("https://hooks.example.com/a", "http://192.0.2.1:8080"),
      webhookSecret: fc.constantFrom("first", "second"),
      webhookTimeout: fc.integer({ min: 1, max: 15 }),
      webhookCallbackTtl: fc.integer({ min: 1, max: 86_400 }),
      validDays: fc.constantFrom(-1, 1, 30, 36_500),
      usageLimit: fc.nat(9),
      ephemeral: fc.constant(true),
      ephemeralTimeout: fc.integer({ min: 1, max: 10 }),
      tags,
      disabled: fc.boolean(),
      adopt,
    },
    { requiredKeys: ["name", "mode", "webhookUrl", "webhookSecret", "ephemeral"] },
  ),
};

/** Generates valid inputs of a resource, in all spellings that programs may use. */
export function programs(resource: string): fc.Arbitrary<Record<string, unknown>> {
  const arbitrary = byName[resource];
  if (!arbitrary) throw new Error(`no generator of programs for ${resource}: add one in this file`);
  return arbitrary;
}
