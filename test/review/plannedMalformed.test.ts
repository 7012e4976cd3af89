import { describe, expect, test } from "vitest";
import { EngineError, type Step } from "../../provider/engine/index.ts";
import { keyId, keyInputs, keyState, plan, step } from "./support/planned.ts";

describe("a plan without the values of a step is rejected", () => {
  test.each<[string, Step, string]>([
    ["a delete", step("delete", "PublicKey", "a", { id: keyId }), "before and after the step"],
    [
      "a delete with only new values",
      step("delete", "PublicKey", "a", { id: keyId, after: keyInputs }),
      "before",
    ],
    [
      "an update without old values",
      step("update", "PublicKey", "a", { id: keyId, after: keyInputs }),
      "before",
    ],
    ["an update without new values", step("update", "PublicKey", "a", keyState), "after the step"],
    ["a replacement without new values", step("replace", "PublicKey", "a", keyState), "after the step"],
    ["a create", step("create", "PublicKey", "a", {}), "before and after the step"],
  ])("for %s", (_what, one, values) => {
    expect(() => plan(one)).toThrow(EngineError);
    expect(() => plan(one)).toThrow(`::a: the plan has no values ${values}`);
  });
});

// These values cause a raw error in `canonicalInputs`, from the canonical forms of the definitions. Plans of Terraform do
// not contain them, since their reader rejects invalid values.
describe("a Pulumi plan with an invalid value has a finding that contains the resource and the input", () => {
  test.todo("for data that is no public key, of a PublicKey and of a ServiceAccount");
  test.todo("for data, an owner, an email or a device that is no text");
  test.todo("for the tags of DeviceTags that are null");
  test.todo("for a filter that is null");
});
