import { readFileSync } from "node:fs";
import type { z } from "zod";
import { jsonSchema } from "../../provider/model/jsonSchema.ts";
import { apiKey } from "../../sdk/contract/apiKeys.ts";
import { member } from "../../sdk/contract/namespaces.ts";
import { trustedWorkload } from "../../sdk/contract/trustedWorkloads.ts";
import {
  type Documented,
  declarationSection,
  exportedDeclarations,
  interfaceSection,
} from "./exportedDeclarations.ts";
import { table, typeName } from "./table.ts";

/** Returns the functions and types of the policy-test API. */
const declarations = (): Documented[] => [
  ...["index", "types"].flatMap((file) => exportedDeclarations(`provider/policyTests/api/${file}.ts`)),
  ...["decisions", "expiry", "identity", "namespacePolicy"].flatMap((file) =>
    exportedDeclarations(`sdk/policy/${file}.ts`),
  ),
];

/** Returns the examples in the doc comments of the policy-test API. */
export const policyTestExamples = (): string[] =>
  declarations().flatMap(({ examples, members }) => [
    ...examples,
    ...members.flatMap((each) => each.examples),
  ]);

/** Returns the table of the fields of an object that the service returns, as the client names them. */
function modelTable(model: z.ZodType): string {
  const { properties = {}, required = [] } = jsonSchema(model);
  const rows = Object.entries(properties).map(([name, field]) => {
    const own = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [`\`${own}${required.includes(name) ? "" : "?"}\``, typeName(field), field.description ?? ""];
  });
  return table(["Field", "Type", "Meaning"], rows);
}

/** Returns the page of the policy-test API, generated from its doc comments. */
export function policyTestApiPage(note: string): string {
  const all = declarations();
  const find = (name: string) => {
    const found = all.find((each) => each.name === name);
    if (!found) throw new Error(`the policy-test API has no ${name}`);
    return found;
  };
  const section = (name: string) => declarationSection(find(name));
  const fields = (name: string) => interfaceSection(find(name), all);
  const methods = (name: string) => {
    const { text, parents, members } = find(name);
    const more = parents
      .filter((parent) => parent.endsWith("Matchers"))
      .map((parent) => ` Also has the matchers of [${parent}](#${parent.toLowerCase()}).`);
    return [
      `### ${name}`,
      `${text}${more.join("")}`,
      ...members.map((each) => declarationSection(each, "####")),
    ].join("\n\n");
  };
  const example = readFileSync(
    new URL("../../examples/fleet-access/access.policy.ts", import.meta.url),
    "utf8",
  );
  return [
    note,
    "# Policy test API",
    "`@gatehouse-access/provider/policy` exports these functions and types. [Policy tests](../guides/policy-tests.md) describes the files, the commands and the reports.",
    `\`\`\`ts\n${example.trim()}\n\`\`\``,
    "This example is `examples/fleet-access/access.policy.ts`. A test runs it.",
    "## Functions",
    ...["policyTest", "untested", "expect"].map(section),
    fields("PolicyTestOptions"),
    section("TIME_LIMIT"),
    section("PolicyTestBody"),
    "## Matchers",
    section("Expectation"),
    ...["AccessMatchers", "MemberMatchers", "ApiKeyMatchers", "ListMatchers", "ValueMatchers"].map(methods),
    "## Queries",
    ...["AccessQuery", "DeviceQuery", "Decision"].map(fields),
    "## Subjects",
    fields("PolicySubjects"),
    methods("TimedAccess"),
    ...["NamespacePolicy", "AccessDevice", "AccessKey", "AccessRule", "AccessMember"].map(fields),
    ...[
      "DeviceFilter",
      "EvaluatedLogins",
      "IdentityRules",
      "AccessPolicy",
      "PolicySubject",
      "Principal",
      "SshIdentity",
    ].map(fields),
    section("Outcome"),
    section("PolicyMember"),
    modelTable(member),
    section("PolicyApiKey"),
    modelTable(apiKey),
    section("PolicyWorkload"),
    modelTable(trustedWorkload),
    "The subject `workloads` has the fields `id`, `name`, `issuer`, `audience`, `claims`, `role`, `maxSessionMinutes` and `singleUse`.",
    section("PolicySettings"),
    "[Namespace](resources.md#namespace) describes the settings.",
    ...["MemberFacts", "ApiKeyFacts"].map(section),
    "## Results",
    table(
      ["Exit code", "Cause"],
      [
        ["0", "all tests pass, also with warnings"],
        ["2", "a test fails, or the check is incomplete"],
        [
          "1",
          "the tests cannot run: there is no `*.policy.ts`, or the command cannot connect or cannot read the devices, keys or rules",
        ],
      ],
    ),
    "**A test fails** if an assertion fails, if the test or a predicate throws an error, if the test exceeds its time limit, or if its file cannot be loaded. **A warning** reports an assertion that passes but proves nothing, and a test without an assertion.",
    "**An incomplete check** does not cover the whole namespace. The report lists the missing parts as `not checked`; with `--json`, in `notEvaluated`. Causes are a value that is unknown before `up`, such as a computed pattern, and firewall rules that a proxy hides. The tests run without these parts. `--allow-incomplete` accepts an incomplete check: the exit code is then 0 if all tests pass. Lines that start with `unknown` list other facts that the command cannot read, such as sessions, and do not change the exit code.",
  ].join("\n\n");
}
