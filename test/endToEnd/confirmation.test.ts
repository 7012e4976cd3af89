import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { testFolder } from "../support/folder.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const fleet = sharedFleet();
const program = sharedProgram();
afterEach(() => fleet.clear());

const key = (name: string) => publicKey(name, "^root$", { hostname: ".*" });
const keys = async () => (await fleet.client.getPublicKeys()).map(({ name }) => name).sort();

it("without a terminal, commands write nothing unless --yes is set or a plan was reviewed", async () => {
  const stack = program.stack({ env: fleet.env });
  const policy = { ana: key("ana") };
  await stack.apply(policy);
  const both = policyEnv({ ...policy, bob: key("bob") });
  for (const command of ["up", "up --skip-preview --json", "refresh", "destroy", "drift --repair"])
    expect(await stack.run(command.split(" "), both), command).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Add --yes"),
    });
  expect(await keys()).toEqual(["ana"]);
  const plan = join(testFolder(), "plan");
  expect(await stack.run(["review", "--save", plan], both)).toMatchObject({ code: 0 });
  expect(await stack.run(["up", "--plan", plan], both)).toMatchObject({ code: 0 });
  expect(await keys()).toEqual(["ana", "bob"]);
});
