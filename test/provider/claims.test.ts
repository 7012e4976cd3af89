import { describe, expect, it } from "vitest";
import { UNKNOWN } from "../../provider/engineMarks.ts";
import { Claims, DuplicateDeclarationError } from "../../provider/lifecycle/claims.ts";
import { definitionNamed } from "../../provider/namespace/liveObjects.ts";

const TENANT = "00000000-0000-4000-8000-000000000000";
const urnOf = (kind: string, name: string) => `urn:pulumi:prod::fleet::gatehouse:index:${kind}::${name}`;
const member = definitionNamed("Member");
const tags = definitionNamed("DeviceTags");
const attachment = definitionNamed("DeviceTagAttachment");
const [ana, bob] = [urnOf("Member", "ana"), urnOf("Member", "bob")];
const inputs = (email: string) => ({ tenant: TENANT, email, role: "operator" });

describe("two resources of one program", () => {
  it("may not declare the same object", () => {
    const claims = new Claims();
    claims.declare(member, ana, inputs("ana@example.com"));
    claims.declare(member, bob, inputs("bob@example.com"));
    expect(() => claims.declare(member, bob, inputs("ana@example.com"))).toThrow(DuplicateDeclarationError);
    expect(() => claims.declare(member, bob, inputs("ana@example.com"))).toThrow(
      'Member "bob" and Member "ana" manage the same object. Remove one of the two resources',
    );
  });

  it("may not hold the same object", () => {
    const claims = new Claims();
    claims.hold(member, ana, `${TENANT}/1`);
    expect(() => claims.hold(member, ana, `${TENANT}/1`)).not.toThrow();
    expect(() => claims.hold(member, bob, `${TENANT}/1`)).toThrow(DuplicateDeclarationError);
  });

  it("of two types may not manage the tags of one device, and tags of one type share the device", () => {
    const claims = new Claims();
    const on = (tag: string) => ({ tenant: TENANT, device: "web-1", tag });
    claims.declare(attachment, urnOf("DeviceTagAttachment", "a"), on("prod"));
    claims.declare(attachment, urnOf("DeviceTagAttachment", "b"), on("web"));
    const whole = { tenant: TENANT, device: "web-1", tags: ["lab"] };
    expect(() => claims.declare(tags, urnOf("DeviceTags", "c"), whole)).toThrow(DuplicateDeclarationError);
    expect(() => claims.declare(attachment, urnOf("DeviceTagAttachment", "d"), on("prod"))).toThrow(
      DuplicateDeclarationError,
    );
  });
});

describe("a resource", () => {
  it("with an unknown identity claims no object", () => {
    const claims = new Claims();
    claims.declare(member, ana, inputs(UNKNOWN));
    expect(() => claims.declare(member, bob, inputs(UNKNOWN))).not.toThrow();
  });

  it("drops the claim of its earlier inputs", () => {
    const claims = new Claims();
    claims.declare(member, ana, inputs("ana@example.com"));
    claims.declare(member, ana, inputs("other@example.com"));
    expect(() => claims.declare(member, bob, inputs("ana@example.com"))).not.toThrow();
  });

  it("holds its object until it releases the object, so that no other resource deletes the object", () => {
    const claims = new Claims();
    const id = `${TENANT}/1`;
    claims.hold(member, ana, id);
    expect([claims.isHeld(member, id), claims.isHeld(member, id, bob)]).toEqual([true, true]);
    // The resource itself may delete its object.
    expect(claims.isHeld(member, id, ana)).toBe(false);
    claims.releaseObject(ana);
    expect(claims.isHeld(member, id)).toBe(false);
  });

  it("keeps replaced API keys that still work", () => {
    const claims = new Claims();
    const apiKey = definitionNamed("ApiKey");
    const key = (name: string) => ({ tenant: TENANT, name, createdAt: name, createdBy: "ana" });
    const state = { ...key("new"), previous: [{ ...key("old"), until: "2100-01-01T00:00:00Z" }] };
    claims.keep(apiKey, ana, state);
    const kept = apiKey.rotation?.keeps(state) ?? [];
    expect(kept).toHaveLength(1);
    expect(kept.every((one) => claims.isHeldAlone(one))).toBe(true);
    expect(kept.some((one) => claims.isHeldAlone(one, ana))).toBe(false);
  });
});
