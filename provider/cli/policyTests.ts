import { relative, resolve } from "node:path";
import type { Command } from "@commander-js/extra-typings";
import { EngineError, fileError, type Plan } from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import { policyTestFiles } from "../policyTests/policyFiles.ts";
import type {
  EvaluatedCases,
  PolicyCounterexample,
  PolicyFailure,
  PolicyTestReport,
  PolicyTestResult,
} from "../policyTests/results.ts";
import { namespaceText } from "../policyTests/testCoverage.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { Connection, FrontEnd } from "../service/connection.ts";
import {
  addressWord,
  CONDITIONS,
  counted,
  firstOf,
  loginWord,
  printable,
  printableLines,
  ruleText,
  untilText,
} from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import {
  addConfigurationFlags,
  allowIncompleteOption,
  type FlagsOf,
  FOLDER,
  JSON_RESULT,
  terraformOption,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { planOrConfiguration } from "./planFiles.ts";
import { type Colors, colors } from "./render.ts";
import { configuredResources, withConnection } from "./service.ts";

type Flags = FlagsOf<typeof testCommand>;

const testCommand = (program: Command) =>
  addConfigurationFlags(program.command("test"))
    .addOption(terraformOption("Test the namespace after this plan of Terraform or OpenTofu"))
    .argument("[folder]", FOLDER, ".")
    .addOption(allowIncompleteOption())
    .option("--json", JSON_RESULT);

export function addTestCommand(program: Command, action: ActionOf): void {
  addHelp(testCommand(program).action(action(test)), {
    group: "Review access:",
    summary: "Run the policy tests (*.policy.ts) on live namespaces.",
    description:
      "Runs each test on its namespaces. With --stack, a namespace with resources of the stack and without a test is " +
      "not checked. Exits 2 if a test fails, or if a part could not be checked.",
    examples: ["gatehouse test policy", "gatehouse test --terraform plan.json"],
    page: "docs/guides/policy-tests.md",
  });
}

async function test(io: Io, folder: string, flags: Flags): Promise<CommandOutput> {
  if (!(await hasPolicyTests(folder))) {
    throw new EngineError(
      "policy_tests",
      `The project ${folder} has no policy tests. Add a file named *.policy.ts, in the project directory or in policy/.`,
    );
  }
  const { terraform, configuration } = await planOrConfiguration(io, folder, flags);
  if (terraform) return runPolicyTests(io, folder, flags, configuration, { planned: terraform }, "terraform");
  return runPolicyTests(io, folder, flags, configuration, {
    own: (connection) => configuredResources(io, folder, flags, connection),
  });
}

export const TESTING = "Runs the policy tests (*.policy.ts) of the project on the";

/**
 * Returns true if a command must run policy tests.
 * @throws EngineError (`project`) if the program's folder cannot be read
 */
export async function hasPolicyTests(
  folder: string,
  { tests = true, offline = false }: { readonly tests?: boolean; readonly offline?: boolean } = {},
): Promise<boolean> {
  if (!tests || offline) return false;
  const files = await policyTestFiles(folder).catch((error: NodeJS.ErrnoException) =>
    fileError("project", "read", error.path ?? folder)(error),
  );
  return files.length > 0;
}

/** The state of the namespaces that policy tests check: the planned state or the live state. */
export interface TestedState {
  /**
   * The plan, the parts of the plan that could not be checked, and notes about the limits of the plan. Without a plan,
   * the tests check live namespaces.
   */
  readonly planned?: {
    readonly plan: Plan;
    readonly notEvaluated?: readonly string[];
    readonly notes?: readonly string[];
  };
  /**
   * Returns the resources of the stack. The tests must check the live namespaces of these resources.
   * @default no resources
   */
  readonly own?: (connection: Connection) => Promise<readonly OwnResource[]>;
}

/**
 * Runs the policy tests of a project.
 * @param state the state of the namespaces that the tests check
 * @param frontEnd the front end, Pulumi or Terraform. The remedies in errors contain its settings.
 * @throws ConfigurationError, RequestError and other errors of the connection
 */
export async function runPolicyTests(
  io: Io,
  folder: string,
  { allowIncomplete = false }: { readonly allowIncomplete?: boolean },
  configuration: ReadonlyMap<string, string>,
  { planned, own }: TestedState,
  frontEnd?: FrontEnd,
): Promise<CommandOutput<TestedNamespace>> {
  // Imported here because projects without policy tests do not need this module, and the import would slow down their
  // commands.
  const { testLive, testPlan } = await import("../review/testedNamespace.ts");
  const tested = await withConnection(
    io,
    configuration,
    async (connection) =>
      planned
        ? testPlan(connection, folder, planned.plan, planned.notEvaluated)
        : testLive(connection, folder, await own?.(connection)),
    frontEnd,
  );
  const result = { ...tested, unknown: [...(planned?.notes ?? []), ...tested.unknown] };
  const { ok, untested, notEvaluated, unknown } = result;
  const c = colors(io.stdout, io.env);
  return {
    result,
    text: () =>
      [
        policyTestsText(c, result, folder),
        ...untested.map(({ namespace, reason }) =>
          c.yellow(`untested: ${printable(`the namespace ${namespace}: ${reason}`)}`),
        ),
        ...notEvaluated.map((sentence) => c.red(`not checked: ${printable(sentence)}`)),
        ...unknown.map((sentence) => c.yellow(`unknown: ${printable(sentence)}`)),
      ].join("\n"),
    exitCode: ok && (notEvaluated.length === 0 || allowIncomplete) ? 0 : BLOCKED,
  };
}

const LISTED_MAX = 8;

/**
 * Returns the results of policy tests as text, similar to the output of a test runner.
 * @param folder the project directory. If the working folder contains this directory, the paths of test files are
 *   relative to the working folder. Otherwise they are relative to this directory.
 */
export function policyTestsText(c: Colors, { tests }: PolicyTestReport, folder: string): string {
  const failed = tests.filter(({ ok }) => !ok).length;
  const passed = tests.length - failed;
  const warnings = tests.reduce((sum, test) => sum + test.warnings.length, 0);
  const counts = [
    failed > 0 && c.red(`${failed} failed`),
    passed > 0 && c.green(`${passed} passed`),
    warnings > 0 && c.yellow(counted(warnings, "warning")),
  ].filter((count) => count !== false);
  const path = relative("", resolve(folder));
  const prefix = path === "" || path.startsWith("..") ? "" : `${path}/`;
  const lines = tests.flatMap((test, index) => [
    ...headingLines(c, test, tests[index - 1]),
    ...testLines(c, test, prefix),
  ]);
  return [...lines, counts.length > 0 ? counts.join(", ") : "No policy test ran."].join("\n");
}

/** Returns the namespace of a test as a heading. Returns no line if the previous test has the same namespace. */
function headingLines(
  c: Colors,
  { namespace }: PolicyTestResult,
  last: PolicyTestResult | undefined,
): string[] {
  if (!namespace || namespace.tenant === last?.namespace?.tenant) return [];
  return [c.bold(printable(`Tested ${namespaceText(namespace)}:`))];
}

function testLines(c: Colors, test: PolicyTestResult, prefix: string): string[] {
  const { name, file, ok, failures, warnings, durationMs } = test;
  const at = (line: number | undefined) =>
    c.dim(printable(`${prefix}${file}${line === undefined ? "" : `:${line}`}`));
  const head = ok
    ? `${c.green("  ok ")} ${printable(name)} ${c.dim(`(${durationMs} ms)`)}`
    : `${c.red("FAIL ")} ${printable(name)}`;
  return [
    `${head}  ${at(test.line)}`,
    ...failures.flatMap((failure) => [
      ...(failure.assertion === undefined ? [] : [`       ${printable(failure.assertion)}`]),
      `       ${c.red(printableLines(failure.message))}${exampleNote(failure)}  ${at(failure.line)}`,
      ...failure.counterexamples.map(
        (example) => `         ${printable(exampleText(example, failure.evaluated?.otherAddress))}`,
      ),
      ...(failure.evaluated ? [`       ${c.dim(printable(evaluatedText(failure.evaluated)))}`] : []),
    ]),
    ...warnings.map(
      ({ assertion, message, line }) =>
        `       ${c.yellow(`warning: ${assertion === undefined ? "" : `${printable(assertion)} `}${printableLines(message)}`)}  ${at(line)}`,
    ),
  ];
}

function exampleNote({ cases, counterexamples }: PolicyFailure): string {
  if (counterexamples.length === 0) return "";
  return cases > counterexamples.length ? `, ${counterexamples.length} of them:` : ":";
}

function exampleText(example: PolicyCounterexample, other: string | undefined): string {
  const { login, address, device, key, principal, rule, policy, outcome = "allow", deniedBy } = example;
  const end = example.until ? `, ${untilText(example.until)}` : "";
  const way = key
    ? `with the key ${JSON.stringify(key.name)} (${key.fingerprint})`
    : `by the ${principal?.kind} ${principal?.name}`;
  const who = `${loginWord(login)} on ${device.name} from ${addressWord(address, other)} ${way}`;
  switch (deniedBy) {
    case "login":
      return `${who}: refused, the key does not allow this login`;
    case "device":
      return `${who}: refused, the key does not allow this device`;
    case "type":
      return `${who}: refused, the service refuses keys of this type`;
    case "expired":
      return `${who}: refused, the key has expired`;
    case "owner":
      return `${who}: refused, the owner of the key is not a member`;
    case "key":
      return `${who}: refused, since no SSH key is valid`;
    case "policies":
    case "default":
      return `${who}: refused, since no access policy allows it`;
    default: {
      const rules = rule ? `rule ${ruleText(rule)}` : "no rule";
      const decides = principal ? `the access policy ${policy?.name}` : rules;
      return deniedBy === undefined
        ? `${who}, by ${decides}${CONDITIONS[outcome]}${end}`
        : `${who}: refused by ${decides}`;
    }
  }
}

function evaluatedText({
  keys,
  principals,
  devices,
  logins,
  addresses,
  otherAddress,
}: EvaluatedCases): string {
  const subjects =
    principals === undefined
      ? counted(keys, "key")
      : counted(principals, "user or service account", "users and service accounts");
  const names = addresses.map((address) => addressWord(address, otherAddress));
  return `evaluated ${subjects} and ${counted(devices, "device")}, as ${listed(logins.map(loginWord))}, from ${listed(names)}`;
}

const listed = (texts: readonly string[]): string =>
  texts.length === 0 ? "nothing" : firstOf(texts, LISTED_MAX);
