import { expect, test } from "vitest";
import { HeldPlan } from "../../provider/engine/embedded/deploy/deployment.ts";
import type { FieldChange, Plan, Step, StepOp } from "../../provider/engine/index.ts";

const step = (op: StepOp, ...fields: FieldChange[]): Step => ({
  op,
  urn: "urn:a",
  type: "t",
  name: "a",
  fields,
});
const held = (...steps: Step[]) => new HeldPlan({ steps } as unknown as Plan);
const login = (now: FieldChange["new"]): FieldChange => ({ path: "username", old: "^ana$", new: now });
const filter = (now: FieldChange["new"]): FieldChange => ({ path: "filter", new: now });
const UNKNOWN = "[unknown]";

test.each<[string, Step, Step]>([
  ["a planned change", step("update", login("^root$")), step("update", login("^root$"))],
  ["a change of an unknown value", step("update", login(UNKNOWN)), step("update", login("^root$"))],
  ["no change if an unknown value stays the same", step("update", login(UNKNOWN)), step("same")],
  [
    "a change of a part of an unknown value",
    step("update", filter(UNKNOWN)),
    step("update", { path: "filter.hostname", new: "^web" }),
  ],
  [
    "another planned change next to an unknown value",
    step("update", filter({ tags: [UNKNOWN] }), login("^root$")),
    step("update", filter({ tags: ["prod"] }), login("^root$")),
  ],
])("accepts %s", (_, planned, done) => {
  held(planned).require(done);
});

test.each<[string, Step, Step, string]>([
  [
    "another value",
    step("update", login("^root$")),
    step("update", login("^.*$")),
    "Username differs from the plan",
  ],
  ["an additional field", step("update"), step("update", login("^.*$")), "Username differs from the plan"],
  [
    "a missing field",
    step("update", login("^root$"), filter({})),
    step("update", filter({})),
    "Username differs",
  ],
  [
    "a change of an unchanged resource",
    step("same"),
    step("update", login("^.*$")),
    "The plan has same, but the run requires update",
  ],
  ["a replacement", step("update", login(UNKNOWN)), step("replace", login("a")), "the run requires replace"],
  [
    "another value next to an unknown value",
    step("update", filter(UNKNOWN), login("^root$")),
    step("update", filter({}), login("^.*$")),
    "Username differs from the plan",
  ],
])("rejects %s", (_, planned, done, message) => {
  expect(() => held(planned).require(done)).toThrow(message);
});

test("accepts only the creations and deletions of the plan", () => {
  const plan = held(step("same"), { ...step("delete"), urn: "urn:deleted" });
  expect(() => plan.require({ ...step("create"), urn: "urn:new" })).toThrow("Create is not in the plan");
  expect(() => plan.requireDeletion("urn:a")).toThrow("The plan has same, but the run requires delete");
  plan.requireDeletion("urn:deleted");
});
