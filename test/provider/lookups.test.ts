import * as pulumi from "@pulumi/pulumi";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import type { FirewallRuleArgs, PublicKey, PublicKeyArgs } from "../../provider/index.ts";
import * as provider from "../../provider/index.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { sshKeyLine } from "./support/programs.ts";

const line = sshKeyLine();
const before = { ...process.env };

const fleet = sharedFleet();
beforeAll(async () => {
  await fleet.enroll("web-01");
  const data = Buffer.from(line).toString("base64");
  const body = { name: "ana", username: "^root$", filter: { hostname: ".*" }, data };
  await fleet.client.createPublicKey({ body });
  Object.assign(process.env, fleet.env);
});
afterAll(() => {
  for (const name of Object.keys(fleet.env)) delete process.env[name];
  Object.assign(process.env, before);
});

const valueIn = <T>(output: pulumi.Output<T>) => new Promise((resolve) => output.apply(resolve));

describe("lookups", () => {
  it("return a key in the format of PublicKey", async () => {
    expect((await provider.getPublicKeys()).map(({ data }) => data)).toEqual([line]);
  });

  it("accept outputs in every lookup", async () => {
    const tenant = pulumi.output(fleet.tenant);
    const one = await valueIn(provider.getDevicesOutput({ tenant, name: pulumi.output("WEB-01") }));
    expect(one).toMatchObject([{ name: "web-01" }]);
    expect(await valueIn(provider.getDevicesOutput({ tags: [pulumi.output("none")] }))).toEqual([]);
    expect(await valueIn(provider.getNamespaceOutput())).toMatchObject({ tenantId: fleet.tenant });

    const lookups = Object.entries(provider).filter(([name]) => /^get\w+(?<!Output)$/.test(name));
    expect(lookups.length).toBeGreaterThan(6);
    for (const [name, lookup] of lookups as [string, (args: object) => Promise<unknown>][]) {
      const ofOutputs = (provider as unknown as Record<string, typeof provider.getTagsOutput>)[
        `${name}Output`
      ];
      expect(await valueIn(ofOutputs?.({ tenant }) as pulumi.Output<unknown>), name).toEqual(
        await lookup({ tenant: fleet.tenant }),
      );
    }
  });

  it("have the types of their results", () => {
    const devices = () => provider.getDevicesOutput({ status: pulumi.output("pending" as const) });
    expectTypeOf(devices).returns.toExtend<pulumi.Output<{ name: string }[]>>();
    // @ts-expect-error there is no such status
    expect(() => provider.getDevicesOutput({ status: "lost" })).toBeTypeOf("function");
  });
});

describe("a filter", () => {
  type Filter = pulumi.Unwrap<FirewallRuleArgs["filter"]>;

  it("requires exactly one of hostname and tags in its type", () => {
    expectTypeOf<{ tags: string[] }>().toExtend<Filter>();
    expectTypeOf<{ hostname: string }>().toExtend<Filter>();
    expectTypeOf<{ hostname: string; tags: undefined }>().toExtend<Filter>();
    expectTypeOf<{ hostname: string; tags: string[] }>().not.toExtend<Filter>();
    expectTypeOf<Record<never, never>>().not.toExtend<Filter>();
    const args = { name: "ana", data: line, username: "root" };
    const good: PublicKeyArgs = { ...args, filter: { tags: [pulumi.output("prod")] } };
    // @ts-expect-error a filter has hostname or tags, not both
    const both: PublicKeyArgs = { ...args, filter: { hostname: "web", tags: ["prod"] } };
    // @ts-expect-error a filter has hostname or tags
    const none: PublicKeyArgs = { ...args, filter: {} };
    expect([good, both, none]).toHaveLength(3);
    expectTypeOf<PublicKey["filter"]>().toExtend<pulumi.Output<{ tags?: string[]; hostname?: string }>>();
  });
});
