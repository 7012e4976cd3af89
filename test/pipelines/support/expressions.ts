import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

/** The contexts that an expression can read, such as `github`, `inputs` and `steps`, as plain values. */
export type Contexts = Readonly<Record<string, unknown>>;

/** Whether a previous step or job failed. The status functions, such as `failure()`, read it. */
interface Status {
  readonly failed: boolean;
}

/** Evaluates an expression of GitHub Actions with GitHub's own evaluator. */
function evaluate(expression: string, contexts: Contexts, { failed }: Status = { failed: false }) {
  const status = (name: string, value: boolean) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(value),
  });
  const functions = [
    status("success", !failed),
    status("failure", failed),
    status("always", true),
    status("cancelled", false),
  ];
  const { tokens } = new Lexer(expression).lex();
  const parsed = new Parser(tokens, Object.keys(contexts), functions).parse();
  const context = JSON.parse(JSON.stringify(contexts), data.reviver) as data.Dictionary;
  return new Evaluator(parsed, context, new Map(functions.map((one) => [one.name, one]))).evaluate();
}

/** Replaces each `${{ }}` in a text with the value of its expression, like a GitHub runner. */
export function expand(text: string, contexts: Contexts): string {
  return text.replaceAll(/\$\{\{(.*?)\}\}/gs, (_, expression: string) =>
    evaluate(expression, contexts).coerceString(),
  );
}

/**
 * Returns true if a step or job with this `if` condition runs. A condition without a status function also requires that
 * the previous steps or jobs succeeded.
 */
export function isMet(condition: unknown, contexts: Contexts, status: Status): boolean {
  if (condition === undefined) return !status.failed;
  const text = String(condition).replace(/^\s*\$\{\{(.*)\}\}\s*$/s, "$1");
  const namesStatus = /\b(success|failure|always|cancelled)\(\)/.test(text);
  const value = evaluate(text, contexts, status).coerceString();
  return (namesStatus || !status.failed) && !["false", "", "0"].includes(value);
}
