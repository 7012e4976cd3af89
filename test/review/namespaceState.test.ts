import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../provider/model/object.ts";
import { watchedIn } from "../../provider/namespace/liveObjects.ts";
import { byKey } from "../../provider/namespace/namespaceState.ts";
import { definitionsByName, kindNamed } from "../../provider/resources/index.ts";
import { identityFixture, namespaceOf } from "./support/namespace.ts";
import { device, estate } from "./support/planned.ts";
import { serviceAccount } from "./support/policyObjects.ts";
import { TENANT } from "./support/steps.ts";

describe("the keys of objects", () => {
  const tag = (name: string): LiveObject => ({
    definition: definitionsByName.Tag,
    id: `${TENANT}/${name}`,
    name,
    state: {},
  });

  it("have a number if they are equal, and stay different from other keys", () => {
    const tags = ["web-2", "web", "web", "web (3)", "web", "db"].map(tag);
    expect([...byKey(tags).keys()]).toEqual(["web-2", "web", "web (2)", "web (3)", "web (4)", "db"]);
  });

  it("of 20,000 equal objects are found in linear time", { timeout: 5_000 }, () => {
    expect(byKey(Array.from({ length: 20_000 }, () => tag("web"))).size).toBe(20_000);
  });
});

it("the attachments of a namespace without readable devices are unread", () => {
  const { what, missed } = kindNamed("Device").reading ?? { what: "", missed: "" };
  const state = namespaceOf(estate).with({
    unread: new Map([["Device", { what, missed, reason: "permission denied" }]]),
  });
  expect(watchedIn(state)).toMatchObject({
    unread: ["DeviceTagAttachment"],
    unknown: ["objects of the kind DeviceTagAttachment could not be read: permission denied"],
  });
});

it("the selector of an attachment never matches another device", () => {
  const devices = [
    device("gate", ["prod"], { uid: "b".repeat(64), status: "pending", identity: { mac: "" } }),
    device("gate", [], { uid: "a".repeat(64), identity: { mac: "" } }),
  ];
  const attachments = watchedIn(namespaceOf({ ...estate, devices })).objects.filter(
    ({ definition }) => definition === definitionsByName.DeviceTagAttachment,
  );
  expect(attachments.map(({ state }) => [state.device, state.tag])).toEqual([["b".repeat(64), "prod"]]);
});

it("users and service accounts are sorted together, by name and id", () => {
  const serviceAccounts = [
    serviceAccount("zoe", { id: "1" }),
    serviceAccount("carl", { id: "3" }),
    serviceAccount("carl", { id: "2" }),
  ];
  const { policy } = namespaceOf({ ...estate, identity: identityFixture({ serviceAccounts }) });
  expect(policy.identity?.principals.map(({ name, id }) => `${name} ${id}`)).toEqual([
    "bob@example.com user-bob",
    "carl 2",
    "carl 3",
    "owner@example.com user-owner",
    "zoe 1",
  ]);
});
