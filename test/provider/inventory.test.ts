import { describe, expect, it } from "vitest";
import type { StateResource } from "../../provider/engine/index.ts";
import {
  type Exception,
  exceptionFor,
  exceptionLine,
  isExceptionOver,
  ManagedObjects,
  ownResources,
} from "../../provider/namespace/coverage.ts";
import { declarable, definitionNamed, type LiveObject } from "../../provider/namespace/liveObjects.ts";
import { selectorsOf } from "../../provider/resources/deviceSelector.ts";
import type { Device } from "../../provider/service/listings.ts";
import { sshKeyLine } from "./support/programs.ts";

const TENANT = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";
const uid = (digit: string) => digit.repeat(64);

const live = (kind: string, id: string, state: Record<string, unknown> = {}, name = id): LiveObject => ({
  definition: definitionNamed(kind),
  id: `${TENANT}/${id}`,
  name,
  state,
});
const resource = (
  kind: string,
  id: string,
  outputs: object = {},
  type = "pulumi-nodejs:dynamic/gatehouse:",
) =>
  ({
    urn: `urn:pulumi:prod::p::${type}${kind}::${id}`,
    type: type + kind,
    id: `${TENANT}/${id}`,
    outputs: { tenant: TENANT, ...outputs },
  }) as StateResource;
const managedBy = (...resources: StateResource[]) =>
  new ManagedObjects(ownResources(resources, "https://access.example.org"));

describe("ManagedObjects", () => {
  it("finds objects by id, for both resource types", () => {
    const managed = managedBy(
      resource("PublicKey", "aa"),
      resource("FirewallRule", "7", {}, "gatehouse:index:"),
      { ...resource("PublicKey", "cc"), type: "other:index:PublicKey" },
    );
    expect(managed.ownerOf(live("PublicKey", "aa"))).toMatch(/::aa$/);
    expect(managed.ownerOf(live("FirewallRule", "7"))).toMatch(/gatehouse:index:FirewallRule::7$/);
    expect(managed.ownerOf(live("PublicKey", "bb"))).toBeUndefined();
    expect(managed.ownerOf(live("PublicKey", "cc"))).toBeUndefined();
  });

  it("covers all tags of a device with DeviceTags, and single tags with attachments", () => {
    const managed = managedBy(
      resource("DeviceTags", uid("1")),
      resource("DeviceTagAttachment", `${uid("2")}/prod`),
    );
    const tag = (id: string) => managed.ownerOf(live("DeviceTagAttachment", id));
    expect(tag(`${uid("1")}/anything`)).toBeDefined();
    expect(tag(`${uid("2")}/prod`)).toBeDefined();
    expect(tag(`${uid("2")}/other`)).toBeUndefined();
    expect(tag(`${uid("3")}/prod`)).toBeUndefined();
  });

  it("finds a renamed API key by its creation time, and also finds the API keys that it replaced", () => {
    const creation = (second: number) => ({
      createdAt: `2026-11-23T07:00:0${second}.000Z`,
      createdBy: "507f1f77bcf86cd799439011",
    });
    const managed = managedBy(
      resource("ApiKey", "ci", {
        ...creation(1),
        name: "ci",
        previous: [{ tenant: TENANT, name: "x", ...creation(2) }],
      }),
    );
    const key = (name: string, second: number) =>
      managed.ownerOf(live("ApiKey", name, { name, previous: [], ...creation(second) }));
    expect(key("renamed", 1)).toBeDefined();
    expect(key("replaced", 2)).toBeDefined();
    expect(key("ci", 3)).toBeUndefined();
  });

  it("contains only objects of the evaluated service if a program has providers for several services", () => {
    const instance = (url: string) =>
      ({
        urn: `urn:pulumi:prod::p::pulumi:providers:gatehouse::${url}`,
        id: "1",
        type: "",
        inputs: { url },
      }) as const;
    const there = instance("https://other.example.org");
    const here = instance("https://access.example.org/");
    const of = (name: string, { urn, id }: typeof there) => ({
      ...resource("PublicKey", name, {}, "gatehouse:index:"),
      provider: `${urn}::${id}`,
    });
    const managed = managedBy(there, here, of("aa", here), of("bb", there));
    expect(managed.ownerOf(live("PublicKey", "aa"))).toBeDefined();
    expect(managed.ownerOf(live("PublicKey", "bb"))).toBeUndefined();
  });
});

describe("an exception in access.ignore", () => {
  const exception = (kind: string, id: string, until = "2026-12-31"): Exception => ({
    kind,
    id,
    until,
    reason: "why",
    line: 1,
  });
  const now = new Date("2026-11-23T12:00:00Z");

  it("is valid until the end of its day", () => {
    const one = exception("PublicKey", "aa", "2026-11-23");
    expect(isExceptionOver(one, new Date("2026-11-23T23:59:59.999Z"))).toBe(false);
    expect(isExceptionOver(one, new Date("2026-11-24T00:00:00Z"))).toBe(true);
  });

  it("applies to an id, and for a member also to the address, but never to a name, since users can choose names", () => {
    const found = (object: LiveObject, ...some: Exception[]) => exceptionFor(some, object, now);
    const key = live("PublicKey", "73:d4", undefined, "vendor");
    expect(found(key, exception("PublicKey", "73:d4"))).toBeDefined();
    expect(found(key, exception("PublicKey", "vendor"))).toBeUndefined();
    expect(found(key, exception("FirewallRule", "73:d4"))).toBeUndefined();
    expect(found(key, exception("PublicKey", "*"))).toBeDefined();
    const dave = live("Member", "507f1f77bcf86cd799439011", undefined, "Dave@example.org");
    expect(found(dave, exception("Member", "dave@example.org"))).toBeDefined();
    const both = [exception("PublicKey", "*", "2020-01-01"), exception("PublicKey", "73:d4")];
    expect(found(key, ...both)).toBe(both[1]);
  });

  it("is printed in the format of the file", () => {
    expect(exceptionLine(live("ApiKey", "legacy-ci"), "2026-12-24", "old pipeline")).toBe(
      "ApiKey legacy-ci until 2026-12-24: old pipeline",
    );
    expect(exceptionLine(live("ApiKey", 'a "b" c'), "2026-12-24", "x")).toBe(
      'ApiKey "a \\"b\\" c" until 2026-12-24: x',
    );
  });
});

describe("declarable objects", () => {
  const key = { tenant: TENANT, name: "ana", data: sshKeyLine(), username: ".*", filter: { hostname: ".*" } };

  it("have valid inputs; objects that cannot be declared have a reason", () => {
    const { declarable: possible, undeclarable } = declarable([
      live("PublicKey", "aa", { ...key, fingerprint: "aa", createdAt: "" }),
      live("PublicKey", "bb", { ...key, username: "(" }),
      { ...live("PublicKey", "cc"), reason: "of no known form" },
      live("Member", "removed", { tenant: TENANT, email: "", role: "observer" }),
    ]);
    expect(possible).toMatchObject([{ id: `${TENANT}/aa`, inputs: { name: "ana", username: ".*" } }]);
    expect(Object.keys(possible[0]?.inputs ?? {}).sort()).toEqual(["data", "filter", "name", "username"]);
    expect(undeclarable.map(({ reason }) => reason)).toEqual([
      expect.stringMatching(/^PublicKey\.username /),
      "of no known form",
      expect.stringMatching(/^Member\.email /),
    ]);
  });

  it("refer to a device by the shortest unambiguous selector", () => {
    const device = (digit: string, name: string, mac: string, status = "accepted") =>
      ({ uid: uid(digit), name, identity: { mac }, status, tags: ["prod"] }) as unknown as Device;
    const found = selectorsOf([
      device("1", "web-01", "02:00:00:00:00:01"),
      device("2", "same", "02:00:00:00:00:02"),
      device("3", "SAME", "02:00:00:00:00:03", "pending"),
      device("4", "", "02:00:00:00:00:04"),
      device("5", "", ""),
      // The name of this device equals the MAC address of another device.
      device("6", "02:00:00:00:00:01", "02:00:00:00:00:06"),
      device("7", uid("1"), "02:00:00:00:00:06"),
    ]);
    expect(found.map(({ selector }) => selector)).toEqual([
      "web-01",
      "same",
      "02:00:00:00:00:03",
      "02:00:00:00:00:04",
      uid("5"),
      "02:00:00:00:00:06",
      uid("7"),
    ]);
  });
});
