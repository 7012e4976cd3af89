import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleOf } from "../../provider/providers/generate/exampleOf.ts";
import { definitions } from "../../provider/resources/index.ts";
import { changesOf, describeEngines, Stack } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("../../examples/resources", import.meta.url));

it.each(definitions.map(({ name }) => name))("the examples contain %s", (name) => {
  expect(exampleOf(name)).toContain(`new ${name}(`);
});

describeEngines("the examples", {}, (engine) => {
  const fleet = sharedFleet(["carla"]);
  let stack: Stack;
  let folder: string;
  beforeAll(async () => {
    for (const name of ["edge-01", "edge-02", "web-01"]) await fleet.enroll(name);
    await fleet.enroll("gate-old", "02:00:00:00:0a:01");
    folder = mkdtempSync(join(tmpdir(), "gatehouse-examples-"));
    stack = new Stack({ program: PROGRAM, folder, engine, env: fleet.env });
  });
  afterAll(() => {
    stack?.dispose();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  // The SDK compiles each example and checks its types.
  const options = { timeout: 180_000, tags: ["long"] };
  it("are applied without changes to their code, and the next plan is empty", options, async () => {
    const up = await stack.result(["up", "--yes", "--skip-preview"]);
    const created = changesOf(up).filter((line) => line.startsWith("create "));
    // `up` creates one resource for each resource type of this server, and four more: the stack resource, which the Pulumi CLI also
    // counts, the tags of a second gateway, a second firewall rule, and a second trusted workload.
    expect(created).toHaveLength(1 + ownDefinitions.length + 3);
    expect(changesOf(await stack.result(["preview"]))).toEqual([]);
    expect((await stack.run(["drift"])).code).toBe(0);
    await stack.result(["destroy", "--yes"]);
    expect(await fleet.client.getPublicKeys()).toEqual([]);
  });
});
