import * as pulumi from "@pulumi/pulumi";
import { beforeAll, describe, expect, it } from "vitest";
import type { DeviceTags as DeviceTagsClass } from "../../provider/dist/index.js";

const made: string[] = [];
let DeviceTags: typeof DeviceTagsClass;
beforeAll(async () => {
  await pulumi.runtime.setMocks({
    newResource: ({ name, type, inputs }) => {
      made.push(`${type} ${name}`);
      return { id: `${name}-id`, state: inputs };
    },
    call: ({ inputs }) => inputs,
  });
  ({ DeviceTags } = await import("../../provider/dist/index.js"));
});

class OtherProvider extends pulumi.ProviderResource {}

const args = { device: "web-01", tags: ["prod"] };
/** A provider of the package that dynamic resources are of, as somebody would try to name another service by. */
const other = () => new OtherProvider("pulumi-nodejs", "other", { url: "https://other.example" });
const refusal = /^DeviceTags "tags": .* would have no effect: .*GATEHOUSE_URL.*a stack for each/;

describe("a resource of a program", () => {
  it("refuses a provider of its own: it would be on another service than the one that is named", () => {
    expect(() => new DeviceTags("tags", args, { provider: other() })).toThrow(refusal);
  });

  it("refuses that of its parent", () => {
    const parent = new pulumi.ComponentResource("test:index:Group", "group", {}, { providers: [other()] });
    expect(() => new DeviceTags("tags", args, { parent })).toThrow(refusal);
  });

  it("is made where a parent has providers for others", async () => {
    const aws = new OtherProvider("aws", "east", {});
    const parent = new pulumi.ComponentResource("test:index:Group", "group", {}, { providers: [aws] });
    const tags = new DeviceTags("others", args, { parent });
    await new Promise((resolve) => tags.urn.apply(resolve));
    expect(made).toContain("pulumi-nodejs:dynamic/gatehouse:DeviceTags others");
  });

  it("shares with all others what tells this state from others, on which none of them depends", async () => {
    const tags = ["one", "two"].map((name) => new DeviceTags(name, args));
    await Promise.all(tags.map(({ urn }) => new Promise((resolve) => urn.apply(resolve))));
    const identities = made.filter((resource) => resource.includes("StateIdentity"));
    expect(identities).toEqual(["pulumi-nodejs:dynamic/gatehouse:StateIdentity gatehouse"]);
  });
});
