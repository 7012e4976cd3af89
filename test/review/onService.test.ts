import { describe, expect, test } from "vitest";
import type { ResourceValues, Step } from "../../provider/engine/index.ts";
import { onService, stepsOf } from "../../provider/plan/steps.ts";
import { missingPermissions } from "../../provider/review/guards/planProblems.ts";
import { planOf } from "./support/steps.ts";

const HERE = "https://here.example.org";
const THERE = "https://there.example.org";
const HOME = "00000000-0000-4000-8000-000000000001";
const OTHER = "00000000-0000-4000-8000-000000000002";

const on = (url: string | undefined): ResourceValues => ({
  inputs: {},
  outputs: {},
  provider: { ...(url !== undefined && { url }) },
});

function step(op: Step["op"], name: string, before?: ResourceValues, after?: ResourceValues): Step {
  const type = "gatehouse:index:PublicKey";
  const urn = `urn:pulumi:test::fleet::${type}::${name}`;
  const values = { ...(before && { before }), ...(after && { after }) };
  return { op, urn, type, name, id: `id of ${name}`, fields: [], ...values };
}

const onThis = (...steps: Step[]) => onService(planOf(...steps), HERE);
const seen = (...steps: Step[]) => {
  const { plan, notEvaluated, unknown } = onThis(...steps);
  return { left: plan.steps.map(({ op, name, id }) => [op, name, id]), notEvaluated, unknown };
};

describe("a plan limited to one service", () => {
  test.each([
    ["of the default instance", undefined],
    ["of an instance of this service", HERE],
    ["of an instance with another spelling of the address", `${HERE}:443/`],
  ])("includes resources %s", (_, url) => {
    const { left, notEvaluated, unknown } = seen(step("update", "ana", on(url), on(url)));
    expect([left, notEvaluated, unknown]).toEqual([[["update", "ana", "id of ana"]], [], []]);
  });

  test("includes resources without values, which refer to no instance", () => {
    const values = { inputs: {}, outputs: {} };
    expect(seen(step("same", "ana", values, values)).left).toHaveLength(1);
  });

  test("reports omitted resources, also if they are unchanged", () => {
    const one = seen(step("create", "ana", undefined, on(THERE)));
    expect(one).toEqual({
      left: [],
      unknown: [],
      notEvaluated: [`PublicKey "ana": not evaluated, since it is on another service (${THERE})`],
    });
    const names = ["a", "b", "c", "d", "e", "f"];
    const many = seen(...names.map((name) => step("same", name, on(THERE), on(THERE))));
    expect(many.notEvaluated).toEqual([]);
    expect(many.unknown).toEqual([
      `PublicKey "a", PublicKey "b", PublicKey "c", PublicKey "d", PublicKey "e" and 1 more: not evaluated, since they are on another service (${THERE})`,
    ]);
  });

  test.each(["[unknown]", "[secret]"])("omits resources of a service with an unknown address: %s", (url) => {
    expect(seen(step("create", "ana", undefined, on(url)))).toEqual({
      left: [],
      unknown: [],
      notEvaluated: [
        'PublicKey "ana": not evaluated, since it is on a service whose address is secret or unknown before the apply',
      ],
    });
  });

  test.each(["[unknown]", "[secret]"])(
    "assigns no namespace to resources of an instance with an unknown namespace: %s",
    (tenant) => {
      const values = { inputs: {}, outputs: {}, provider: { url: HERE, tenant } };
      const before = { inputs: {}, outputs: { tenant: HOME } };
      const { plan } = onThis(
        step("create", "ana", undefined, values),
        step("update", "bob", before, values),
      );
      const found = stepsOf(plan, HOME, HOME);
      const kept = tenant === "[secret]" ? ["bob"] : [];
      expect(found.steps.map(({ step }) => step.name)).toEqual(kept);
      expect(found.notEvaluated).toEqual([
        'PublicKey "ana": its namespace is secret or unknown before the apply; access is evaluated without this resource',
        ...(kept.length > 0
          ? []
          : [
              'PublicKey "bob": its namespace is unknown before the apply; access is evaluated with its object unchanged',
            ]),
      ]);
    },
  );

  test("assigns no namespace if the instance's own credential determines the namespace", () => {
    const values = { inputs: {}, outputs: {}, provider: { url: HERE, apiKey: "[secret]" } };
    const named = { ...values, inputs: { tenant: HOME } };
    const steps = [step("create", "ana", undefined, values), step("create", "bob", undefined, named)];
    const found = stepsOf(onThis(...steps).plan, HOME, HOME);
    expect(found.steps.map(({ title }) => title)).toEqual(['PublicKey "bob"']);
    expect(found.notEvaluated).toEqual([expect.stringContaining('PublicKey "ana": its namespace is secret')]);
    // The review does not know the permissions of the instance's own credential, so it reports none as missing.
    const missingFor = (...of: readonly Step[]) => {
      const actor = { kind: "user", role: "observer" } as const;
      return missingPermissions(actor, stepsOf(onThis(...of).plan, HOME, HOME).steps, []);
    };
    expect(missingFor(...steps)).toEqual([]);
    const usual = { ...named, provider: { url: HERE } };
    expect(missingFor(step("create", "eve", undefined, usual))).toMatchObject([{ resources: ["eve"] }]);
  });

  test("assigns resources without a namespace to the namespace of their instance", () => {
    const values = { inputs: {}, outputs: {}, provider: { url: HERE, tenant: OTHER } };
    const { plan } = onThis(step("create", "ana", undefined, values));
    expect([stepsOf(plan, HOME, HOME).steps, stepsOf(plan, OTHER, HOME).steps]).toMatchObject([[], [{}]]);
  });

  test("includes only the part of a move that is on this service", () => {
    const away = seen(step("replace", "ana", on(HERE), on(THERE)));
    expect(away.left).toEqual([["delete", "ana", "id of ana"]]);
    const back = seen(step("replace", "ana", on(THERE), on(HERE)));
    expect(back.left).toEqual([["create", "ana", undefined]]);
    expect([...away.notEvaluated, ...back.notEvaluated]).toHaveLength(2);
  });
});
