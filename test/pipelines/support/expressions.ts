import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

/** What expressions can name: `github`, `inputs`, `steps` and the like, as plain values. */
export type Contexts = Readonly<Record<string, unknown>>;

/** How the steps or jobs before went. */
export interface Status {
  readonly failed: boolean;
}

/** What an expression of GitHub Actions evaluates to, by GitHub's own evaluator. */
export function evaluate(expression: string, contexts: Contexts, { failed }: Status = { failed: false }) {
  const status = (name: string, value: boolean) => ({
    ...{ name, minArgs: 0, maxArgs: 0 },
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

/** A text with expressions in `${{ }}`, as a runner replaces them. */
export function expand(text: string, contexts: Contexts): string {
  return text.replaceAll(/\$\{\{(.*?)\}\}/gs, (_, expression: string) =>
    evaluate(expression, contexts).coerceString(),
  );
}

/** Whether an `if` lets a step or job run: without a function of the status, only after success. */
export function isMet(condition: unknown, contexts: Contexts, status: Status): boolean {
  if (condition === undefined) return !status.failed;
  const text = String(condition).replace(/^\s*\$\{\{(.*)\}\}\s*$/s, "$1");
  const namesStatus = /\b(success|failure|always|cancelled)\(\)/.test(text);
  const value = evaluate(text, contexts, status).coerceString();
  return (namesStatus || !status.failed) && !["false", "", "0"].includes(value);
}
