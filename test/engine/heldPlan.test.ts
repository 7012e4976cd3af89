import { expect, test } from "vitest";
import { HeldPlan } from "../../provider/engine/embedded/deploy/deployment.ts";
import type { FieldChange, Plan, Step, StepOp } from "../../provider/engine/index.ts";

const step = (op: StepOp, ...fields: FieldChange[]): Step => ({
  ...{ op, urn: "urn:a", type: "t", name: "a", fields },
});
const held = (...steps: Step[]) => new HeldPlan({ steps } as unknown as Plan);
const login = (now: FieldChange["new"]): FieldChange => ({ path: "username", old: "^ana$", new: now });
const filter = (now: FieldChange["new"]): FieldChange => ({ path: "filter", new: now });
const UNKNOWN = "[unknown]";

test.each<[string, Step, Step]>([
  ["what was planned", step("update", login("^root$")), step("update", login("^root$"))],
  ["what was not known", step("update", login(UNKNOWN)), step("update", login("^root$"))],
  ["nothing, where what was not known is as it was", step("update", login(UNKNOWN)), step("same")],
  [
    "a part of what was not known",
    step("update", filter(UNKNOWN)),
    step("update", { path: "filter.hostname", new: "^web" }),
  ],
  [
    "what else was planned beside",
    step("update", filter({ tags: [UNKNOWN] }), login("^root$")),
    step("update", filter({ tags: ["prod"] }), login("^root$")),
  ],
])("a run may do %s", (_, planned, done) => {
  held(planned).require(done);
});

test.each<[string, Step, Step, string]>([
  [
    "another value",
    step("update", login("^root$")),
    step("update", login("^.*$")),
    "username differs from the plan",
  ],
  ["a field more", step("update"), step("update", login("^.*$")), "username differs from the plan"],
  [
    "a field less",
    step("update", login("^root$"), filter({})),
    step("update", filter({})),
    "username differs",
  ],
  ["a change", step("same"), step("update", login("^.*$")), "the plan has same, but the run needs update"],
  ["a replacement", step("update", login(UNKNOWN)), step("replace", login("a")), "the run needs replace"],
  [
    "another value beside what was not known",
    step("update", filter(UNKNOWN), login("^root$")),
    step("update", filter({}), login("^.*$")),
    "username differs from the plan",
  ],
])("a run may not do %s", (_, planned, done, message) => {
  expect(() => held(planned).require(done)).toThrow(message);
});

test("a run may make and delete what the plan makes and deletes, and nothing else", () => {
  const plan = held(step("same"), { ...step("delete"), urn: "urn:gone" });
  expect(() => plan.require({ ...step("create"), urn: "urn:new" })).toThrow("create is not in the plan");
  expect(() => plan.requireDeletion("urn:a")).toThrow("the plan has same, but the run needs delete");
  plan.requireDeletion("urn:gone");
});
