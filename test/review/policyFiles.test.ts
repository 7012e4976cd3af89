import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { factsOf, IMPORT, runFiles, smallPolicy } from "./support/policyFiles.ts";

const PASSES = 'policyTest("passes", ({ access }) => { expect(access).toAllow({}); });';

test("finds policy files of every module format in the project directory and in policy/, and in no other folder", async () => {
  const source = `${IMPORT}\n${PASSES}`;
  const common = `const { expect, policyTest } = require("@gatehouse-access/provider/policy");\n${PASSES}`;
  const [report] = await runFiles({
    // Node.js loads policy tests as ES modules, independent of the program's module type.
    "package.json": '{ "type": "commonjs" }',
    "a.policy.ts": source,
    "b.policy.mts": source,
    "c.policy.js": source,
    "d.policy.mjs": source,
    "f.policy.cjs": common,
    "policy/g.policy.ts": source,
    "h.policy.d.ts": "broken(",
    "policy.ts": "broken(",
    "index.ts": "broken(",
    "policy/helper.ts": "broken(",
    "policy/deeper/i.policy.ts": "broken(",
    "node_modules/j.policy.ts": "broken(",
  });
  expect(report?.tests.map(({ file, ok, line, failures }) => [file, ok, line, failures])).toEqual(
    ["a.policy.ts", "b.policy.mts", "c.policy.js", "d.policy.mjs", "f.policy.cjs", "policy/g.policy.ts"].map(
      (file) => [file, true, 2, []],
    ),
  );
});

test("a folder without policy tests passes", async () => {
  expect(await runFiles({ "index.ts": "broken(" })).toEqual([{ ok: true, tests: [] }]);
});

test("reports the name and line of files that cannot be loaded, and runs the other files", async () => {
  const [report] = await runFiles({
    "a.policy.ts": `${IMPORT}\nconst = 3;\n`,
    "b.policy.ts": `${IMPORT}\n\nenum Color { red }\n`,
    "c.policy.ts":
      'import { policyTest } from "@gatehouse-access/provider/policy";\nimport "./missing.ts";\n',
    "d.policy.ts": `${IMPORT}\nimport { nothing } from "./helper.mts";\npolicyTest("never", () => nothing);\n`,
    "e.policy.ts": `${IMPORT}\n\n\nthrow new RangeError("at the top");\n`,
    "f.policy.ts": "export const nothing = 1;\n",
    "g.policy.ts": `${IMPORT}\nimport { broken } from "./broken.mts";\npolicyTest("never", () => broken);\n`,
    "h.policy.ts": `${IMPORT}\npolicyTest("", () => {});\n`,
    "i.policy.ts": `${IMPORT}\npolicyTest("no body");\n`,
    "j.policy.ts": `${IMPORT}\npolicyTest("no time", () => {}, { timeLimit: 0 });\n`,
    "k.policy.cts": "",
    "z.policy.ts": `${IMPORT}\n${PASSES}\n`,
    "helper.mts": "export const something = 1;\n",
    "broken.mts": "\nexport const broken = ;\n",
  });
  expect(report?.ok).toBe(false);
  const seen = report?.tests.map(({ name, ok, line, failures: [failure] }) => ({
    name,
    ok,
    line,
    text: failure?.message,
  }));
  const text = (part: string) => expect.stringContaining(part);
  expect(seen).toMatchObject([
    { name: "a.policy.ts", ok: false, line: 2, text: text("SyntaxError: ") },
    { name: "b.policy.ts", ok: false, line: 3, text: text("TypeScript enum is not supported") },
    { name: "c.policy.ts", ok: false, text: text("missing.ts") },
    { name: "d.policy.ts", ok: false, line: 2, text: text("'nothing'") },
    { name: "e.policy.ts", ok: false, line: 4, text: "RangeError: at the top" },
    { name: "f.policy.ts", ok: false, text: "the file declares no policyTest" },
    { name: "g.policy.ts", ok: false, text: expect.stringMatching(/SyntaxError: .*broken\.mts:2\)$/) },
    { name: "h.policy.ts", ok: false, line: 2, text: text("needs a name") },
    { name: "i.policy.ts", ok: false, line: 2, text: text("needs a function to run") },
    { name: "j.policy.ts", ok: false, line: 2, text: text("timeLimit must be a positive number of seconds") },
    { name: "k.policy.cts", ok: false, text: text("rename the file to *.policy.ts or .mts") },
    { name: "passes", ok: true },
  ]);
});

test("reports a thrown error at its line in the test file, and a failure in a helper at the line of the call", async () => {
  const [report] = await runFiles({
    "a.policy.ts": `${IMPORT}
import assert from "node:assert";
import { closed } from "./helper.mts";
policyTest("throws", () => {
  JSON.parse("{");
});
policyTest("asserts", ({ policy }) => {
  assert.equal(policy.devices.length, 4, "four devices");
});
policyTest("helped", ({ access }) => {

  closed(access);
});
policyTest("throws text", () => {
  throw "text";
});
policyTest("asserts nothing", () => {});
policyTest("all of it", ({ access }) => {
  expect(access).toAllow({ key: "nobody" });
  expect(access).toAllow({ key: "contractor-*" });
  expect(access).toAllow({ login: "nobody", key: "Ana*" });
});`,
    "helper.mts": `${IMPORT}\nexport const closed = (access) => expect(access).not.toAllow({});\n`,
  });
  const seen = report?.tests.map(({ failures }) => failures.map(({ message, line }) => [message, line]));
  expect(seen).toEqual([
    [[expect.stringContaining("SyntaxError: "), 5]],
    [[expect.stringContaining("four devices"), 8]],
    [["9 cases are allowed", 12]],
    [["threw 'text'", 14]],
    [],
    [
      ["no matching login is allowed: the query matched no key", 19],
      ["no matching login is allowed", 21],
    ],
  ]);
  expect(report?.tests[4]).toMatchObject({
    ok: true,
    warnings: [{ message: "the test makes no assertion with expect()", line: 17 }],
  });
});

test("tests can wait until their time limit, and failures of later tests are still reported", async () => {
  const [report] = await runFiles({
    "a.policy.ts": `${IMPORT}
policyTest("waits", async ({ access }) => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(access).not.toAllow({});
});
policyTest("rejects", async () => {
  await null;
  throw new Error("later");
});
let late;
policyTest("never ends", async ({ access }) => {
  late = () => expect(access).not.toAllow({});
  await new Promise(() => {});
}, { timeLimit: 0.05 });
policyTest("asserts too late", () => late());
`,
  });
  expect(report?.tests).toMatchObject([
    { ok: false, failures: [{ message: "9 cases are allowed", line: 4 }] },
    { ok: false, failures: [{ message: "later", line: 8 }] },
    { ok: false, line: 11, failures: [{ message: "timed out after 0.05 seconds", line: 11 }] },
    { ok: false, failures: [{ line: 12 }] },
  ]);
});

test("one process runs the same files for several states, for example before and after a change", async () => {
  const source = `${IMPORT}\npolicyTest("no web", ({ access }) => { expect(access).not.toAllow({ device: { tag: "web" } }); });`;
  const without = { ...smallPolicy, keys: smallPolicy.keys.slice(1, 2) };
  const reports = await runFiles({ "a.policy.ts": source }, factsOf(without), factsOf(smallPolicy));
  expect(reports.map(({ ok, tests }) => [ok, tests.length])).toEqual([
    [true, 1],
    [false, 1],
  ]);
});

test("the module that policy files import loads no other module, and works only in gatehouse", () => {
  const script = `
import { registerHooks } from "node:module";
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
const { expect, policyTest } = await import("@gatehouse-access/provider/policy");
const messages = [() => policyTest("alone", () => {}), () => expect([]).exactlyOneOwner()].map((call) => {
  try { call(); } catch (error) { return error.message; }
});
console.log(JSON.stringify({ loaded, messages }));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const { loaded, messages }: Record<"loaded" | "messages", string[]> = JSON.parse(output);
  expect(loaded.length).toBeGreaterThan(1);
  const others = loaded.filter((url) => !/^node:|\/provider\/dist\/policyTests\/api\//.test(url));
  expect(others).toEqual([]);
  expect(messages).toEqual([
    expect.stringContaining("gatehouse did not load this file"),
    "expect(…).exactlyOneOwner() was called outside a policy test. Call it inside policyTest()",
  ]);
});
