import * as pulumi from "@pulumi/pulumi";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";

/** A resource that a program registered with the engine. */
interface Registered {
  readonly name: string;
  readonly inputs: Record<string, unknown>;
}

let registered: Registered[] = [];
let gatehouse: typeof import("../../provider/index.ts");

beforeAll(async () => {
  await pulumi.runtime.setMocks(
    {
      newResource: ({ name, type, inputs }) => {
        registered.push({ name: `${type.split(":").at(-1)} ${name}`, inputs });
        return { id: `${name}-id`, state: inputs };
      },
      call: ({ inputs }) => inputs,
    },
    "project",
    "stack",
  );
  gatehouse = await import("../../provider/index.ts");
});
beforeEach(() => {
  registered = [];
});

class OtherProvider extends pulumi.ProviderResource {}

const args = { device: "web-01", tags: ["prod"] };
/**
 * An explicit provider instance. A user may try to select another service with it, which dynamic resources do not
 * support.
 */
const other = () => new OtherProvider("pulumi-nodejs", "other", { url: "https://other.example" });
const refusal = /^DeviceTags "tags": .* has no effect: .*GATEHOUSE_URL.*a separate stack for each/;

describe("a resource of a program", () => {
  it("rejects an explicit provider, since it could not select the service", () => {
    expect(() => new gatehouse.DeviceTags("tags", args, { provider: other() })).toThrow(refusal);
  });

  it("rejects an explicit provider of its parent", () => {
    const parent = new pulumi.ComponentResource("test:index:Group", "group", {}, { providers: [other()] });
    expect(() => new gatehouse.DeviceTags("tags", args, { parent })).toThrow(refusal);
  });

  it("accepts a parent with providers of other packages", async () => {
    const aws = new OtherProvider("aws", "east", {});
    const parent = new pulumi.ComponentResource("test:index:Group", "group", {}, { providers: [aws] });
    const tags = new gatehouse.DeviceTags("others", args, { parent });
    await new Promise((resolve) => tags.urn.apply(resolve));
    expect(registered.map(({ name }) => name)).toContain("DeviceTags others");
  });

  it("registers no state identity in unit tests of a program", async () => {
    const tags = new gatehouse.DeviceTags("alone", args);
    await new Promise((resolve) => tags.urn.apply(resolve));
    expect(registered.map(({ name }) => name)).toEqual(["DeviceTags alone"]);
  });
});

describe("the runs of programs in one process", () => {
  const run = async (name: string) => {
    registered = [];
    await pulumi.runtime.runInPulumiStack(async () => {
      for (const part of ["one", "two"]) new gatehouse.DeviceTags(`${part}-${name}`, args);
    });
    await pulumi.runtime.disconnect();
    return registered;
  };

  it.each(["a", "b"])("have a separate state identity for each run: %s", async (name) => {
    const resources = await run(name);
    expect(resources.map((resource) => resource.name).sort()).toEqual([
      `DeviceTags one-${name}`,
      `DeviceTags two-${name}`,
      "Stack project-stack",
      "StateIdentity gatehouse",
    ]);
    const tags = resources.filter((resource) => resource.name.startsWith("DeviceTags"));
    expect(tags.map(({ inputs }) => inputs.__stateId)).toEqual(["gatehouse-id", "gatehouse-id"]);
  });
});
